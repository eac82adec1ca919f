"""Runs scripts and finds the first command whose results differ between two coordinators."""

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
    """An object that runs commands: Kafka's coordinator or this library's."""

    def run(self, commands: Iterable[Command]) -> list[Result]:
        """Return the result of each command; a ``start`` command creates a new coordinator."""


@frozen
class History:
    """The commands of a script and their results."""

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
        """A key that is mostly equal for differences with the same cause: the command and the first differing path."""
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
    """Run the commands of a history on another coordinator; return the first difference."""
    pairs = zip(history.commands, history.results, coordinator.run(history.commands), strict=True)
    for at, (command, before, after) in enumerate(pairs):
        if not alike(before, after):
            return Difference(at, command, differences(before, after))
    return None
