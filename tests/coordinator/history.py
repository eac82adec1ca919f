"""Runs scripts and says where two coordinators part: the first command whose results differ."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from attrs import frozen

from tests.coordinator.comparison import alike, differences
from tests.coordinator.oracle import Command, Result
from tests.coordinator.script_state import Script

__all__ = ["Coordinator", "Difference", "History", "compare", "record"]


class Coordinator(Protocol):
    """What runs commands: Kafka's coordinator or ours."""

    def run(self, commands: Iterable[Command]) -> list[Result]:
        """Return what each command led to; a ``start`` command makes a new coordinator."""


@frozen
class History:
    """The commands of a script and what they led to."""

    commands: list[Command]
    results: list[Result]


@frozen
class Difference:
    """The first command whose results differ."""

    at: int
    command: Command
    places: list[str]
    """The paths that differ, each with both values."""

    @property
    def kind(self) -> str:
        """What is the same for differences of one cause, more or less: the command and the first path in its result."""
        what = self.command.get("api", self.command["op"])
        path = re.sub(r"\[\d+\]", "[]", self.places[0].split(": ", 1)[0])
        return f"{what} {path}"


def record(script: Script, coordinator: Coordinator) -> History:
    """Run a script to its end."""
    history = History([], [])
    try:
        commands = next(script)
        while True:
            results = coordinator.run(commands)
            history.commands.extend(commands)
            history.results.extend(results)
            commands = script.send(results)
    except StopIteration:
        return history


def compare(history: History, coordinator: Coordinator) -> Difference | None:
    """Run the commands of a history again, on another coordinator; return the first difference."""
    pairs = zip(history.commands, history.results, coordinator.run(history.commands), strict=True)
    for at, (command, before, after) in enumerate(pairs):
        if not alike(before, after):
            return Difference(at, command, differences(before, after))
    return None
