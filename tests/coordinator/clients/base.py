"""The base of all simulated clients: one request at a time, chosen from weighted actions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from tests.coordinator.request_bodies import versions_of
from tests.coordinator.script_state import Body, World

__all__ = ["Client", "ignore"]


class Client(ABC):
    """A client of one group; ``step`` adds its next request to the world's commands."""

    def __init__(self, world: World, group: str, name: str) -> None:
        self.world = world
        self.random = world.random
        self.group = group
        self.name = name
        self.busy = False

    def step(self) -> None:
        """Send a request, unless a response is pending."""
        if not self.busy:
            self.world.chosen(self.actions())()

    @abstractmethod
    def actions(self) -> Mapping[Callable[[], None], int]:
        """Return the possible next actions, with weights."""

    def request(
        self, api: str, body: Mapping[str, Any], then: Callable[[Body], None], *, lowest: int = 0, highest: int = 99
    ) -> None:
        """Send a request in a random version and wait for the response."""
        self.busy = True

        def answered(answer: Body) -> None:
            self.busy = False
            then(answer)

        versions = [version for version in versions_of(api) if lowest <= version <= highest]
        self.world.ask(api, body, version=self.random.choice(versions), client=self.name, then=answered)


def ignore(*_: object) -> None:
    """Do nothing, or ignore a response."""
