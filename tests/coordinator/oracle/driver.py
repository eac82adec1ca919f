"""Runs Kafka's group coordinator and its assignors: JSON lines in, JSON lines out, many per round trip.

``CoordinatorOracle.java`` documents the commands. The tests decide whether a response is right for this library.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.support.line_process import Command, LineProcess, Result
from tests.support.maven import JavaProject, OracleUnavailableError

__all__ = ["AssignorOracle", "Command", "CoordinatorOracle", "Result"]

PROJECT: Final = JavaProject(Path(__file__).resolve().parent, "org.apache.kafka.coordinator.group.CoordinatorOracle")
_PROPERTIES: Final = (
    # Random seeds come from the counted ids as well, so two runs of a script are byte-identical.
    "-Djava.util.secureRandomSeed=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
)


class CoordinatorOracle:
    """Kafka's group coordinator. A ``start`` command creates a new one, so a process serves many scripts."""

    _shared: CoordinatorOracle | None = None
    _unavailable: str | None = None

    def __init__(self) -> None:
        """Start the process; raises ``OracleUnavailableError`` if it cannot run."""
        self._process = LineProcess(PROJECT.command(*_PROPERTIES))

    @classmethod
    def available(cls) -> tuple[bool, str]:
        """Return whether the oracle can run, and the reason if not; build the oracle if necessary."""
        if cls._shared is None and cls._unavailable is None:
            try:
                cls._shared = cls()
            except OracleUnavailableError as reason:
                cls._unavailable = str(reason)
        return cls._shared is not None, cls._unavailable or ""

    @classmethod
    def shared(cls) -> CoordinatorOracle:
        """Return the shared oracle of this process; raises ``OracleUnavailableError`` if it cannot run."""
        available, reason = cls.available()
        if not available or cls._shared is None:
            raise OracleUnavailableError(reason)
        return cls._shared

    def run(self, commands: Iterable[Command]) -> list[Result]:
        """Run commands in order and return their results; the result of an invalid command is its ``error``."""
        return self._process.ask(commands)

    def close(self) -> None:
        """End the process."""
        self._process.close()


class AssignorOracle:
    """Kafka's assignors as functions; ``AssignorOracle.java`` documents their inputs."""

    def __init__(self) -> None:
        """Start the process; raises ``OracleUnavailableError`` if it cannot run."""
        self._process = LineProcess([*PROJECT.command(*_PROPERTIES), "assign"])

    def assign(self, inputs: Iterable[Command]) -> list[Result]:
        """Return each input's assignment by member, or ``error`` if the assignor refuses it."""
        return self._process.ask(inputs)

    def close(self) -> None:
        """End the process."""
        self._process.close()
