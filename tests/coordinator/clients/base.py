"""What all simulated clients share: one request at a time, by name of the action, with weights."""

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
        """Ask for something, unless an answer is awaited."""
        if not self.busy:
            self.world.chosen(self.actions())()

    @abstractmethod
    def actions(self) -> Mapping[Callable[[], None], int]:
        """What the client may do now, with weights."""

    def request(
        self, api: str, body: Mapping[str, Any], then: Callable[[Body], None], *, lowest: int = 0, highest: int = 99
    ) -> None:
        """Ask at some version and wait for the answer."""
        self.busy = True

        def answered(answer: Body) -> None:
            self.busy = False
            then(answer)

        versions = [version for version in versions_of(api) if lowest <= version <= highest]
        self.world.ask(api, body, version=self.random.choice(versions), client=self.name, then=answered)


def ignore(*_: object) -> None:
    """Do nothing, or take no notice of an answer."""
