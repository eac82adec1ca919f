"""What the image of a cluster consists of, and ``MetadataDelta``: what a commit changed, for those who follow the
image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final
from uuid import UUID

from attrs import Factory, define, frozen

from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.register_broker_record import BrokerFeature

__all__ = [
    "NO_LEADER",
    "BrokerRegistration",
    "Endpoint",
    "LeaderChange",
    "MetadataDelta",
    "PartitionKey",
    "PartitionRegistration",
    "TopicImage",
]

NO_LEADER: Final = -1

PartitionKey = tuple[UUID, int]
"""A partition: the id of its topic, and its number."""


@frozen
class Endpoint:
    """The address of a listener of a broker. ``security_protocol`` is the number that records have."""

    host: str
    port: int
    security_protocol: int = 0


@frozen(kw_only=True)
class BrokerRegistration:
    """A registered broker. A fenced broker is registered, but does not run. ``endpoints`` are by listener name."""

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
    """A partition: its replicas, those in sync, its leader, and the epochs. ``leader`` is -1 if there is none."""

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
        """The id of the topic, and the number of the partition."""
        return self.topic_id, self.partition


@define
class TopicImage:
    """A topic with its partitions, in order."""

    name: str
    id: UUID
    partitions: list[PartitionRegistration] = Factory(list)


@frozen
class LeaderChange:
    """A change of the leader of a partition: the states before and after. None is a partition that is not there."""

    topic: str
    before: PartitionRegistration | None
    after: PartitionRegistration | None


@define
class MetadataDelta:
    """What the records of one commit changed.

    ``created`` and ``deleted`` have topics by id. ``storage`` has each partition that changed, with its states before
    and after; after is None if it was deleted. ``config_entries`` has the resources (type, name) with other settings.
    """

    records: list[MetadataRecord] = Factory(list)
    created: dict[UUID, TopicImage] = Factory(dict)
    deleted: dict[UUID, TopicImage] = Factory(dict)
    partitions: dict[PartitionKey, LeaderChange] = Factory(dict)
    brokers: set[int] = Factory(set)
    configs: set[tuple[int, str]] = Factory(set)

    def leader_changes(self) -> Iterator[LeaderChange]:
        """Yield the partitions that have another leader or leader epoch, or that are new or gone."""
        for change in self.partitions.values():
            before, after = change.before, change.after
            if before is None or after is None or _term(before) != _term(after):
                yield change

    def note(
        self, topic: str, key: PartitionKey, before: PartitionRegistration | None, after: PartitionRegistration | None
    ) -> None:
        """Note the new state of a partition. Its state before the first change stays."""
        known = self.partitions.get(key)
        self.partitions[key] = LeaderChange(topic, known.before if known else before, after)


def _term(state: PartitionRegistration) -> tuple[int, int]:
    return state.leader, state.leader_epoch
