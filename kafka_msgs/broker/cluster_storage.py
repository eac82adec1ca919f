"""The log directories of a cluster: the metadata log and the logs of all partitions, in Kafka's own file formats.

A cluster of one broker has one log directory. A larger cluster has one per broker, with the broker's replicas and the
metadata log. Each directory belongs to a Kafka node that is both broker and controller, with the node id in
``meta.properties``: such nodes can open the directories after the cluster is closed, and the cluster can open the
directories of such nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from uuid import UUID

from kafka_msgs.broker.controller.image_types import MetadataDelta, PartitionKey, PartitionRegistration
from kafka_msgs.broker.storage import LogDirectoryStore, ReplicaSet
from kafka_msgs.broker.storage.log_directory_store import META_PROPERTIES
from kafka_msgs.broker.storage.metadata_log import MetadataLog
from kafka_msgs.broker.storage.open_files import OpenFileCache
from kafka_msgs.broker.storage.store import PartitionStore
from kafka_msgs.errors import LogFileError, OptionError
from kafka_msgs.log import MetaProperties
from kafka_msgs.log.writers.small_files import uuid_text
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord
from kafka_msgs.messages.register_broker_record import RegisterBrokerRecord

__all__ = ["ClusterStorage"]

_KRAFT_VERSION: Final = "kraft.version"
"""The feature whose level is stored in control records of the metadata log instead of a ``FeatureLevelRecord``."""


class ClusterStorage:
    """The log directories at ``path``, created if missing: ``path`` itself, or one subdirectory per broker.

    ``brokers`` is the minimum number of brokers, and ``broker_ids`` lists the nodes that are brokers. ``cluster_id`` is
    the id of a new cluster, and ``new_id`` generates the ids of new directories. ``now`` is in milliseconds since the
    epoch. With ``durable``, acknowledged data survives a machine crash. Raises ``OSError``, ``LogFileError`` and
    ``OptionError``.
    """

    def __init__(
        self,
        path: Path,
        brokers: int,
        *,
        cluster_id: str,
        new_id: Callable[[], UUID],
        now: int,
        durable: bool = False,
    ) -> None:
        self._stores: dict[int, LogDirectoryStore] = {}
        self._replicas: dict[PartitionKey, ReplicaSet] = {}
        self.cluster_id = cluster_id
        files = OpenFileCache(durable=durable)
        try:
            several = _log_directories(path, brokers)
            for number in range(max(len(several), brokers)):
                node = max(self._stores, default=-1) + 1
                place = several[number] if number < len(several) else path / f"broker-{node}"
                meta = _new_meta(node, self.cluster_id, new_id())
                self._add(LogDirectoryStore(place, meta, now=now, files=files))
            self._metadata = MetadataLog(tuple(self._stores.values()), now=now)
            self._records: tuple[MetadataRecord, ...] = tuple(self._metadata.records())
        except BaseException:
            for store in self._stores.values():
                store.close(clean=False)
            raise
        registered = {each.broker_id for each in self._records if isinstance(each, RegisterBrokerRecord)}
        known = [node for node in self._stores if node in registered]
        self.broker_ids: tuple[int, ...] = tuple(known if len(known) >= brokers else self._stores)

    def _add(self, store: LogDirectoryStore) -> None:
        """Add a log directory of the cluster. The first one determines the cluster id."""
        cluster, node = store.meta.cluster_id, store.meta.node_id
        if cluster is None or node is None or store.meta.directory_id is None:
            reason = "an id of the cluster, the node or the directory is missing"
        elif node in self._stores:
            reason = f"node {node} has another directory, {self._stores[node].path}"
        elif self._stores and cluster != self.cluster_id:
            reason = f"the cluster is {self.cluster_id}, not {cluster}"
        else:
            self.cluster_id, self._stores[node] = cluster, store
            return
        store.close(clean=False)
        raise LogFileError(file=str(store.path / META_PROPERTIES), position=0, skipped=0, reason=reason)

    @property
    def is_new(self) -> bool:
        """Whether the directories contained no cluster before."""
        return self._metadata.is_new

    @property
    def end_offset(self) -> int:
        """The offset of the next metadata record."""
        return self._metadata.end_offset

    def path_of(self, broker_id: int) -> Path:
        """Return the log directory of a broker."""
        return self._stores[broker_id].path

    def id_of(self, broker_id: int) -> UUID:
        """Return the id of the log directory of a broker."""
        found = self._stores[broker_id].meta.directory_id
        assert found is not None
        return found

    def records(self) -> Iterator[MetadataRecord]:
        """Yield the metadata records found in the directories. They can be read only once."""
        records, self._records = self._records, ()
        yield from records

    def write_bootstrap(self, records: Sequence[MetadataRecord], now: int) -> None:
        """Write the initial records of a new cluster. Raises ``OSError``."""
        self._metadata.write_bootstrap(list(filter(_belongs, records)), now)

    def append(self, records: Sequence[MetadataRecord], now: int) -> None:
        """Write metadata records before they take effect. Raises ``RequestRefusedError``."""
        self._metadata.append(list(filter(_belongs, records)), now)

    def open_store(self, topic: str, state: PartitionRegistration) -> PartitionStore:
        """Return the store of a partition. Raises ``OSError`` and ``LogFileError``."""
        in_sync = self._hosts((*state.isr, *state.eligible_leader_replicas))
        opened = ReplicaSet(topic, *state.key, self._hosts(state.replicas) or self._first(), in_sync)
        self._replicas[state.key] = opened
        return opened.partition

    def follow(self, delta: MetadataDelta) -> None:
        """Move partitions whose replicas changed. Raises ``OSError`` and ``LogFileError``."""
        for key, change in delta.partitions.items():
            if change.after is None:
                self._replicas.pop(key, None)
            elif change.before is not None and change.before.replicas != change.after.replicas:
                self._replicas[key].move(self._hosts(change.after.replicas) or self._first())

    def _hosts(self, replicas: Iterable[int]) -> list[LogDirectoryStore]:
        return [self._stores[each] for each in replicas if each in self._stores]

    def _first(self) -> list[LogDirectoryStore]:
        return [self._stores[self.broker_ids[0]]]

    def checkpoint(self) -> None:
        """Write the checkpoint files with the latest offsets from the logs. Raises ``OSError``."""
        for store in self._stores.values():
            store.write_checkpoints()

    def snapshot(self, records: Callable[[], Iterable[MetadataRecord]], now: int, *, after_bytes: int) -> None:
        """Write a metadata snapshot if the log has grown by ``after_bytes`` bytes since the last one.

        ``records`` returns the records that describe the image of the cluster. Raises ``OSError``.
        """
        if self._metadata.size >= after_bytes:
            self._metadata.write_snapshot(filter(_belongs, records()), now)

    def close(self, broker_epochs: Mapping[int, int]) -> None:
        """Close the directories, after the logs. ``broker_epochs`` maps broker ids to epochs. Raises ``OSError``."""
        self._metadata.close()
        for node, store in self._stores.items():
            store.close(broker_epoch=broker_epochs.get(node, -1))


def _log_directories(path: Path, brokers: int) -> list[Path]:
    """Return the log directories below a path, or the path itself for a single broker."""
    found = [each.parent for each in sorted(path.glob(f"*/{META_PROPERTIES}"))]
    if not (path / META_PROPERTIES).exists() and (found or brokers > 1):
        return found
    if brokers > 1:
        reason = f"{path} is the log directory of one node"
        raise OptionError(source="BrokerConfig", option="brokers", value=brokers, reason=reason)
    return [path]


def _new_meta(node: int, cluster_id: str, directory_id: UUID) -> MetaProperties:
    """Return the properties of a new directory."""
    properties = {
        "node.id": str(node),
        "directory.id": uuid_text(directory_id),
        "version": "1",
        "cluster.id": cluster_id,
    }
    return MetaProperties(
        version=1, cluster_id=cluster_id, node_id=node, directory_id=directory_id, properties=properties
    )


def _belongs(record: MetadataRecord) -> bool:
    return not (isinstance(record, FeatureLevelRecord) and record.name == _KRAFT_VERSION)
