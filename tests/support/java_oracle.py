"""Kafka's classes in one Java process that runs commands, one per line.

Requires a JDK (17 or newer) and Maven.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.support.line_process import LineProcess
from tests.support.maven import JavaProject, OracleUnavailableError

__all__ = ["JavaOracle"]


class JavaOracle:
    """A process that runs ``PROJECT``. The Java source lists the commands."""

    PROJECT: ClassVar[JavaProject]

    def __init__(self) -> None:
        """Start the process, building it first; raises ``OracleUnavailableError`` if it cannot run."""
        self._process = LineProcess(self.PROJECT.command("-Dorg.slf4j.simpleLogger.defaultLogLevel=off"))

    @classmethod
    def available(cls) -> tuple[bool, str]:
        """Return whether it can run here, and the reason if not; builds it if needed."""
        try:
            cls.PROJECT.command()
        except OracleUnavailableError as reason:
            return False, str(reason)
        return True, ""

    def ask(self, commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run commands and return their results."""
        return self._process.ask(commands)

    def close(self) -> None:
        """End the process."""
        self._process.close()
