"""Kafka's own store of the metadata of tiered storage; ``RemoteLogOracle.java`` lists the commands."""

from __future__ import annotations

from pathlib import Path

from tests.support.java_oracle import JavaOracle
from tests.support.maven import JavaProject

__all__ = ["RemoteLogOracle"]


class RemoteLogOracle(JavaOracle):
    """Kafka's ``RemotePartitionMetadataStore``. An ``open`` command makes a new one."""

    PROJECT = JavaProject(
        Path(__file__).resolve().parent, "org.apache.kafka.server.log.remote.metadata.storage.RemoteLogOracle"
    )
