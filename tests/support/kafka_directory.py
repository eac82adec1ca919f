"""Kafka nodes that run on existing log directories, and common properties of such directories."""

from __future__ import annotations

import filecmp
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Self
from uuid import UUID

from kafka_msgs.log import LogDirectory
from kafka_msgs.log.writers.small_files import format_meta_properties, uuid_text
from tests.support.kafka_cluster import KafkaCluster

__all__ = ["KafkaNodes", "assert_equal_replicas", "claim_for_node"]


def claim_for_node(directory: Path, node: int = 1) -> None:
    """Create an empty log directory that belongs to one of the nodes of a ``KafkaNodes``."""
    properties = {
        "node.id": str(node),
        "directory.id": uuid_text(UUID(int=node << 120 | 1)),
        "version": "1",
        "cluster.id": "a2Fma2EtbXNncy10ZXN0cw",
    }
    directory.mkdir(parents=True)
    (directory / "meta.properties").write_bytes(format_meta_properties(properties, 0))


class KafkaNodes(KafkaCluster):
    """A cluster with a copy of a log directory for each of its nodes. The node ids are 1, 2 and so on."""

    def __init__(self, *directories: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(nodes=len(directories), settings=settings)
        self._directories = dict(zip(self.nodes, directories, strict=True))

    def _prepare(self, node: int) -> None:
        super()._prepare(node)
        shutil.rmtree(self.log_dir(node))
        shutil.copytree(self._directories[node], self.log_dir(node))

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def stopped(self) -> Path:
        """Stop the only node in an orderly way, and return its log directory."""
        (node,) = self.nodes
        self.stop(node)
        return self.log_dir(node)


def assert_equal_replicas(path: Path) -> None:
    """Check that each partition has the same files in all log directories in ``path`` that contain it."""
    first: dict[str, Path] = {}
    for directory in sorted(path.iterdir()):
        for partition in LogDirectory(directory).partitions:
            other = first.setdefault(partition.path.name, partition.path)
            names = sorted(each.name for each in partition.path.iterdir())
            assert names == sorted(each.name for each in other.iterdir())
            assert filecmp.cmpfiles(other, partition.path, names, shallow=False) == (names, [], [])
