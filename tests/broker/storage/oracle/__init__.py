"""Kafka's own partition log; ``StorageOracle.java`` lists the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.java_oracle import JavaOracle
from tests.support.maven import JavaProject

__all__ = ["StorageOracle"]


class StorageOracle(JavaOracle):
    """Kafka's ``UnifiedLog``. An ``open`` command creates a new one, so a process serves many scripts."""

    PROJECT = JavaProject(Path(__file__).resolve().parent, "org.apache.kafka.storage.internals.log.StorageOracle")

    def run(self, **command: Any) -> dict[str, Any]:
        """Run one command and return its response."""
        return self.ask([command])[0]
