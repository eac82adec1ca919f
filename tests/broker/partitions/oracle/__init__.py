"""Kafka's own log of a partition in one Java process; ``StorageOracle.java`` lists the commands.

It needs a JDK (17 or newer) and Maven.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.support.line_process import LineProcess
from tests.support.maven import JavaProject, OracleUnavailableError

__all__ = ["StorageOracle"]

PROJECT: Final = JavaProject(Path(__file__).resolve().parent, "org.apache.kafka.storage.internals.log.StorageOracle")


class StorageOracle:
    """Kafka's ``UnifiedLog``. An ``open`` command makes a new one, so a process serves many scripts."""

    def __init__(self) -> None:
        """Start the process, building it first; raises ``OracleUnavailableError`` where it cannot run."""
        self._process = LineProcess(PROJECT.command("-Dorg.slf4j.simpleLogger.defaultLogLevel=off"))

    @classmethod
    def available(cls) -> tuple[bool, str]:
        """Whether it can run here, and if not why; builds it where needed."""
        try:
            PROJECT.command()
        except OracleUnavailableError as reason:
            return False, str(reason)
        return True, ""

    def run(self, **command: Any) -> dict[str, Any]:
        """Run one command and return its answer."""
        return self._process.ask([command])[0]

    def close(self) -> None:
        """End the process."""
        self._process.close()
