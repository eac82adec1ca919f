"""The state of topics in the metadata log: the placement of their partitions, and their configs.

This module applies the relevant records of the newest snapshot and of the log after it (KIP-630). The topic of the
metadata log is ``__cluster_metadata``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from attrs import define, field, frozen

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.log.file_scan import AnyBatch
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.messages.config_record import ConfigRecord
from kafka_msgs.messages.partition_change_record import PartitionChangeRecord
from kafka_msgs.messages.partition_record import PartitionRecord
from kafka_msgs.messages.remove_topic_record import RemoveTopicRecord
from kafka_msgs.messages.topic_record import TopicRecord as Topic

__all__ = ["METADATA_TOPIC", "MetadataLogState", "Placement", "read_metadata_log_state"]

METADATA_TOPIC: Final = "__cluster_metadata"

_TOPIC_RESOURCE, _BROKER_RESOURCE = 2, 4
_ALL_BROKERS: Final = ""
_SAME_LEADER: Final = -2
_OF_BROKERS: Final[Mapping[str, str]] = {
    "log.retention.ms": "retention.ms",
    "log.retention.bytes": "retention.bytes",
    "log.cleanup.policy": "cleanup.policy",
    "log.segment.bytes": "segment.bytes",
}
"""The broker configs that are cluster-wide defaults of topic configs, and the names of these topic configs."""


class Placement(NamedTuple):
    """The leader of a partition, -1 for none, and the brokers with its replicas."""

    leader: int
    replicas: tuple[int, ...]


@frozen(kw_only=True)
class MetadataLogState:
    """The placement of each partition, and the configs of each topic in the metadata log.

    Topics without a specific config inherit the cluster-wide default. Values from the configuration file of a broker
    are unknown.
    """

    placements: Mapping[tuple[str, int], Placement] = field(factory=dict)
    configs: Mapping[str, Mapping[str, str]] = field(factory=dict)


def read_metadata_log_state(partitions: Iterable[Partition]) -> MetadataLogState:
    """Return the state in the metadata log among ``partitions``, or an empty state without one.

    Unreadable records do not count. Raises ``OSError``.
    """
    state = _State()
    for partition in partitions:
        if partition.topic == METADATA_TOPIC:
            for message in _messages(partition):
                state.apply(message)
    return state.cluster()


def _messages(partition: Partition) -> Iterator[Any]:
    snapshot = partition.snapshots[-1] if partition.snapshots else None
    if snapshot is not None:
        yield from _decoded(snapshot.walk_batches())
    yield from _decoded(partition.walk_batches(snapshot.end_offset if snapshot else 0))


def _decoded(items: Iterable[AnyBatch | LogFileError]) -> Iterator[Any]:
    for item in items:
        try:
            if not isinstance(item, LogFileError):
                found = decode_batches(METADATA_TOPIC, [item])
                yield from (record.value for record in found if isinstance(record, TopicRecord))
        except KafkaMsgsError:
            continue


@define
class _State:
    """Topics by id, partitions by topic id, and the configs of resources."""

    topics: dict[UUID, str] = field(factory=dict)
    partitions: dict[UUID, dict[int, Placement]] = field(factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(factory=dict)

    def apply(self, message: Any) -> None:
        """Apply a record. Records of other types are ignored."""
        change = _CHANGES.get(type(message))
        if change is not None:
            change(self, message)

    def add_topic(self, record: Topic) -> None:
        self.topics[record.topic_id] = record.name

    def remove_topic(self, record: RemoveTopicRecord) -> None:
        name = self.topics.pop(record.topic_id, None)
        self.partitions.pop(record.topic_id, None)
        self.configs.pop((_TOPIC_RESOURCE, name or ""), None)

    def add_partition(self, record: PartitionRecord) -> None:
        placed = self.partitions.setdefault(record.topic_id, {})
        placed[record.partition_id] = Placement(record.leader, tuple(record.replicas))

    def change_partition(self, record: PartitionChangeRecord) -> None:
        placed = self.partitions.get(record.topic_id, {})
        before = placed.get(record.partition_id)
        if before is not None:
            leader = before.leader if record.leader == _SAME_LEADER else record.leader
            replicas = before.replicas if record.replicas is None else tuple(record.replicas)
            placed[record.partition_id] = Placement(leader, replicas)

    def configure(self, record: ConfigRecord) -> None:
        settings = self.configs.setdefault((record.resource_type, record.resource_name), {})
        if record.value is None:
            settings.pop(record.name, None)
        else:
            settings[record.name] = record.value

    def cluster(self) -> MetadataLogState:
        shared = self.configs.get((_BROKER_RESOURCE, _ALL_BROKERS), {})
        common = {_OF_BROKERS[name]: value for name, value in shared.items() if name in _OF_BROKERS}
        return MetadataLogState(
            placements={
                (self.topics[each], number): placement
                for each, placed in self.partitions.items()
                if each in self.topics
                for number, placement in placed.items()
            },
            configs={
                name: {**common, **self.configs.get((_TOPIC_RESOURCE, name), {})} for name in self.topics.values()
            },
        )


_CHANGES: Final[Mapping[type, Callable[[_State, Any], None]]] = {
    Topic: _State.add_topic,
    RemoveTopicRecord: _State.remove_topic,
    PartitionRecord: _State.add_partition,
    PartitionChangeRecord: _State.change_partition,
    ConfigRecord: _State.configure,
}
