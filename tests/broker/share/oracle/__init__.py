"""Kafka's own share partition; ``ShareOracle.java`` lists the commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.java_oracle import JavaOracle
from tests.support.maven import JavaProject

__all__ = ["ShareOracle"]


class ShareOracle(JavaOracle):
    """Kafka's ``SharePartition``. An ``open`` command creates a new one, so a process serves many scripts."""

    PROJECT = JavaProject(Path(__file__).resolve().parent, "kafka.server.share.ShareOracle")

    def run(self, **command: Any) -> dict[str, Any]:
        """Run one command and return its response."""
        return self.ask([command])[0]
