"""The parts of the metadata image, and ``MetadataDelta``, which describes the changes of a commit to listeners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from attrs import Factory, define, frozen

from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.register_broker_record import BrokerFeature
from kafka_msgs.versions import VersionRange

__all__ = [
    "METADATA_VERSION",
    "NO_LEADER",
    "STARTING_FEATURES",
    "SUPPORTED_FEATURES",
    "BrokerRegistration",
    "Endpoint",
    "LeaderChange",
    "MetadataDelta",
    "PartitionKey",
    "PartitionRegistration",
    "TopicImage",
]

METADATA_VERSION: Final = "metadata.version"
"""The feature that determines the record versions of the metadata log."""

SUPPORTED_FEATURES: Final[Mapping[str, VersionRange]] = {
    METADATA_VERSION: VersionRange(7, 33),
    "kraft.version": VersionRange(0, 1),
    "transaction.version": VersionRange(0, 2),
    "group.version": VersionRange(0, 1),
    "eligible.leader.replicas.version": VersionRange(0, 1),
    "share.version": VersionRange(0, 2),
    "streams.version": VersionRange(0, 1),
}
"""The feature levels that Kafka 4.4.0 supports."""

STARTING_FEATURES: Final[Mapping[str, int]] = {
    name: levels.highest for name, levels in SUPPORTED_FEATURES.items() if name != "kraft.version"
}
"""The feature levels of a cluster formatted by Kafka 4.4.0. Its voters are static, so ``kraft.version`` is 0."""


NO_LEADER: Final = -1

PartitionKey = tuple[UUID, int]
"""A partition key: the topic id and the partition number."""


@frozen
class Endpoint:
    """The address of a broker's listener. ``security_protocol`` is its number in metadata records."""

    host: str
    port: int
    security_protocol: int = 0


@frozen(kw_only=True)
class BrokerRegistration:
    """A registered broker. A fenced broker is registered but not running. ``endpoints`` are by listener name."""

    id: int
    epoch: int
    incarnation: UUID
    endpoints: Mapping[str, Endpoint]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[UUID, ...] = ()
    features: tuple[BrokerFeature, ...] = ()

    @property
    def alive(self) -> bool:
        """Whether the broker runs."""
        return not self.fenced


@frozen(kw_only=True)
class PartitionRegistration:
    """A partition: its replicas, in-sync replicas, leader and epochs. ``leader`` is -1 without a leader."""

    topic_id: UUID
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    leader_recovery_state: int = 0
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    directories: tuple[UUID, ...] = ()
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @property
    def key(self) -> PartitionKey:
        """The topic id and the partition number."""
        return self.topic_id, self.partition


@define
class TopicImage:
    """A topic with its partitions, in order."""

    name: str
    id: UUID
    partitions: list[PartitionRegistration] = Factory(list)


@frozen
class LeaderChange:
    """A leader change of a partition: its registration before and after, or None for a nonexistent partition."""

    topic: str
    before: PartitionRegistration | None
    after: PartitionRegistration | None


@define
class MetadataDelta:
    """The changes of one commit.

    ``created`` and ``deleted`` hold topics by id. ``storage`` maps each changed partition to its registration before
    and after the commit; after is None for a deleted partition. ``config_entries`` lists the resources (type, name)
    whose configs changed.
    """

    records: list[MetadataRecord] = Factory(list)
    created: dict[UUID, TopicImage] = Factory(dict)
    deleted: dict[UUID, TopicImage] = Factory(dict)
    partitions: dict[PartitionKey, LeaderChange] = Factory(dict)
    brokers: set[int] = Factory(set)
    configs: set[tuple[int, str]] = Factory(set)

    def leader_changes(self) -> Iterator[LeaderChange]:
        """Yield the partitions that were created or deleted, or whose leader or leader epoch changed."""
        for change in self.partitions.values():
            before, after = change.before, change.after
            if before is None or after is None or _term(before) != _term(after):
                yield change

    def note(
        self, topic: str, key: PartitionKey, before: PartitionRegistration | None, after: PartitionRegistration | None
    ) -> None:
        """Record the new registration of a partition, keeping the one before its first change."""
        known = self.partitions.get(key)
        self.partitions[key] = LeaderChange(topic, known.before if known else before, after)


def _term(state: PartitionRegistration) -> tuple[int, int]:
    return state.leader, state.leader_epoch
