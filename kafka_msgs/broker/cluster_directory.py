"""The log directory of a cluster: its metadata log and the logs of all partitions, in Kafka's own files.

A node of Kafka that runs alone, as broker and controller, can open the directory when the cluster is closed. Its id
must be the one in ``meta.properties``, which is that of the first virtual broker. The directory of such a node can be
opened as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from kafka_msgs.broker.partitions import LogDirectoryStore
from kafka_msgs.broker.partitions.metadata_log import MetadataLog
from kafka_msgs.broker.partitions.stores import PartitionStore
from kafka_msgs.errors import LogFileError
from kafka_msgs.log import MetaProperties
from kafka_msgs.log.writing.files import uuid_text
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord

__all__ = ["ClusterDirectory"]

_KRAFT_VERSION: Final = "kraft.version"
"""The feature whose level is not in a record of its kind, but in the control records of the metadata log."""


class ClusterDirectory:
    """The directory at ``path``, which is made if it is new. Only then ``cluster_id`` and ``directory_id`` are used.

    ``now`` is in milliseconds since the epoch. Raises ``OSError`` and ``LogFileError``.
    """

    def __init__(self, path: Path, *, cluster_id: str, directory_id: UUID, now: int) -> None:
        properties = {
            "node.id": "0",
            "directory.id": uuid_text(directory_id),
            "version": "1",
            "cluster.id": cluster_id,
        }
        meta = MetaProperties(
            version=1, cluster_id=cluster_id, node_id=0, directory_id=directory_id, properties=properties
        )
        self._store = LogDirectoryStore(path, meta, now=now)
        try:
            found = self._store.meta
            if found.cluster_id is None or found.node_id is None or found.directory_id is None:
                reason = "an id of the cluster, the node or the directory is missing"
                raise LogFileError(file=str(path / "meta.properties"), position=0, skipped=0, reason=reason)
            self.cluster_id: str = found.cluster_id
            self.node_id: int = found.node_id
            self.directory_id: UUID = found.directory_id
            self._metadata = MetadataLog(self._store, self.node_id, now=now)
        except BaseException:
            self._store.close(clean=False)
            raise

    @property
    def is_new(self) -> bool:
        """Whether there was no cluster in the directory."""
        return self._metadata.is_new

    def open_store(self, topic: str, topic_id: UUID, partition: int) -> PartitionStore:
        """Return the place of a partition; raises ``OSError`` and ``LogFileError``."""
        return self._store.open(topic, topic_id, partition)

    def records(self) -> Iterator[MetadataRecord]:
        """Yield the metadata records of the cluster; raises what ``MetadataLog.records`` raises."""
        return self._metadata.records()

    def write_bootstrap(self, records: Sequence[MetadataRecord], now: int) -> None:
        """Write what a new cluster begins with; raises ``OSError``."""
        self._metadata.write_bootstrap(list(filter(_belongs, records)), now)

    def append(self, records: Sequence[MetadataRecord], now: int) -> None:
        """Write metadata records, before they take effect; raises ``RefusedError``."""
        self._metadata.append(list(filter(_belongs, records)), now)

    def checkpoint(self) -> None:
        """Write the checkpoint files with what the logs last gave. Raises ``OSError``."""
        self._store.write_checkpoints()

    def close(self, broker_epoch: int) -> None:
        """Close the directory, after the logs. ``broker_epoch`` is that of the first broker. Raises ``OSError``."""
        self._metadata.close()
        self._store.close(broker_epoch=broker_epoch)


def _belongs(record: MetadataRecord) -> bool:
    return not (isinstance(record, FeatureLevelRecord) and record.name == _KRAFT_VERSION)
