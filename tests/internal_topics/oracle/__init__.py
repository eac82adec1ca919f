"""Kafka's own metadata store for tiered storage; ``RemoteLogOracle.java`` lists the commands."""

from __future__ import annotations

from pathlib import Path

from tests.support.java_oracle import JavaOracle
from tests.support.maven import JavaProject

__all__ = ["RemoteLogOracle"]


class RemoteLogOracle(JavaOracle):
    """Kafka's ``RemotePartitionMetadataStore``. An ``open`` command creates a new store."""

    PROJECT = JavaProject(
        Path(__file__).resolve().parent, "org.apache.kafka.server.log.remote.metadata.storage.RemoteLogOracle"
    )
