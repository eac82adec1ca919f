"""Classes of Kafka in one Java process that answers commands, a line each.

They need a JDK (17 or newer) and Maven.
"""

from __future__ import annotations

from typing import Any, ClassVar

from tests.support.line_process import LineProcess
from tests.support.maven import JavaProject, OracleUnavailableError

__all__ = ["JavaOracle"]


class JavaOracle:
    """A process that runs ``PROJECT``. Its Java source lists the commands."""

    PROJECT: ClassVar[JavaProject]

    def __init__(self) -> None:
        """Start the process, building it first; raises ``OracleUnavailableError`` where it cannot run."""
        self._process = LineProcess(self.PROJECT.command("-Dorg.slf4j.simpleLogger.defaultLogLevel=off"))

    @classmethod
    def available(cls) -> tuple[bool, str]:
        """Whether it can run here, and if not why; builds it where needed."""
        try:
            cls.PROJECT.command()
        except OracleUnavailableError as reason:
            return False, str(reason)
        return True, ""

    def ask(self, commands: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run commands and return their answers."""
        return self._process.ask(commands)

    def close(self) -> None:
        """End the process."""
        self._process.close()
