"""A node of Kafka that runs on a log directory which somebody else wrote."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Self

from kafka_msgs.log.writing.files import format_meta_properties
from tests.support.kafka_cluster import KafkaCluster

__all__ = ["KafkaNode", "claim_for_node"]

_PROPERTIES = {
    "node.id": "1",
    "directory.id": "ufmw1HbNRoCHVFGlWRPmIQ",
    "version": "1",
    "cluster.id": "a2Fma2EtbXNncy10ZXN0cw",
}


def claim_for_node(directory: Path) -> None:
    """Make a log directory without content, which belongs to the only node of a ``KafkaNode``."""
    directory.mkdir()
    (directory / "meta.properties").write_bytes(format_meta_properties(_PROPERTIES, 0))


class KafkaNode(KafkaCluster):
    """A cluster of one node, with a copy of the log directory at ``directory``."""

    def __init__(self, directory: Path) -> None:
        super().__init__(nodes=1)
        self._directory = directory

    def _prepare(self, node: int) -> None:
        super()._prepare(node)
        shutil.rmtree(self.log_dir(node))
        shutil.copytree(self._directory, self.log_dir(node))

    def __enter__(self) -> Self:
        super().__enter__()
        return self

    def stopped(self) -> Path:
        """Stop the node in an orderly way, and return its log directory."""
        (node,) = self.nodes
        self.stop(node)
        return self.log_dir(node)
