"""The state shared by the components of a consumer: its subscription, its partitions, and the signals between them."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, Final, TypeAlias
from uuid import UUID

from attrs import define, field, frozen

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import AssignedPartition, AssignedPartitions, OffsetResetStrategy
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.membership import Membership, Signal
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.group_metadata import ConsumerGroupMetadata
from kafka_msgs.client.offset_and_metadata import OffsetAndMetadata
from kafka_msgs.errors import OffsetPositionError, OptionError
from kafka_msgs.records import ConsumerRecord

__all__ = ["Callback", "ConsumerState", "Offsets", "Subscription", "offsets_to_commit", "refused"]

_LOG: Final = logging.getLogger("kafka_msgs.client.consumer")

Callback: TypeAlias = Callable[[list[TopicPartition]], object]
"""A user callback for assignment or revocation. For ``AsyncConsumer`` it may be a coroutine function."""

Offsets: TypeAlias = Mapping[TopicPartition, "int | OffsetAndMetadata"]
"""Positions to commit or to seek to."""


@frozen(kw_only=True)
class Subscription:
    """The subscription of a group member: topics, or a pattern matched by the client or by the broker (KIP-848)."""

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    broker_pattern: str | None = None
    on_assigned: Callback | None = None
    on_revoked: Callback | None = None
    on_lost: Callback | None = None

    def __bool__(self) -> bool:
        return bool(self.topics or self.pattern or self.broker_pattern)


@define(eq=False)
class ConsumerState:
    """The state of one consumer, excluding its background tasks."""

    client: ClientCore
    config: ConsumerConfig
    partitions: AssignedPartitions
    changed: Signal
    """Notified when the subscription, the metadata, the positions or the assignment change."""
    arrived: Signal
    """Notified when a poll has records to return or an error to raise."""
    drained: Signal
    """Notified when a poll has removed records from the buffers."""
    polled: Signal
    """Notified at every poll."""
    subscription: Subscription
    membership: Membership | None = None
    watched: frozenset[str] = frozenset()
    """Topics of all members, whose partitions this member assigns as the leader."""
    lock: Any = field(factory=RLock)
    """Guards positions and buffers: the I/O thread adds records, and the user's thread takes them."""
    returned_ids: dict[TopicPartition, UUID] = field(factory=dict)
    """The topic id of the last returned record or position of each partition."""
    metadata_at: float = 0.0
    """The time of the next metadata refresh, in seconds of the network's clock."""

    @classmethod
    def of(cls, client: ClientCore, config: ConsumerConfig) -> ConsumerState:
        """Return the state of a new consumer."""
        return cls(client, config, AssignedPartitions(), Signal(), Signal(), Signal(), Signal(), Subscription())

    @property
    def identity(self) -> ConsumerGroupMetadata:
        """The group metadata for commits: the current member, or the defaults without a membership."""
        group = ConsumerGroupMetadata(str(self.config.group_id))
        return group if self.membership is None else self.membership.identity

    def subscribe(self, subscription: Subscription) -> None:
        """Replace the subscription."""
        self.subscription = subscription
        self.metadata_at = 0.0
        self.changed.notify()

    def notice_topics(self) -> None:
        """Detect recreated topics by their topic ids, and restart their partitions at the first record.

        The old positions belong to the deleted topic. If ``auto_offset_reset`` is ``none``, polls raise
        ``OffsetPositionError``.
        """
        for each in self.partitions:
            topic_id = self.client.cluster.topic_id(each.name.topic)
            if topic_id is None or topic_id == each.topic_id:
                continue
            if each.topic_id is not None:
                self._begin_again(each)
            each.topic_id = topic_id

    def note_returned(self, partition: AssignedPartition) -> None:
        """Record the topic of returned records, or of a position that the user chose or requested."""
        if partition.topic_id is not None:
            self.returned_ids[partition.name] = partition.topic_id

    def is_current(self, partition: AssignedPartition) -> bool:
        """Whether the returned records of a partition belong to the topic that now has its name."""
        return self.returned_ids.get(partition.name, partition.topic_id) == partition.topic_id

    def _begin_again(self, partition: AssignedPartition) -> None:
        _LOG.warning("the topic of %s was deleted and created again", partition.name)
        with self.lock:
            partition.reset(OffsetResetStrategy.EARLIEST)
        if self.config.auto_offset_reset == "none":
            topic, number = partition.name
            reason = "the topic was deleted and created again, and auto_offset_reset is none"
            partition.error = OffsetPositionError(topic=topic, partition=number, reason=reason)
        self.changed.notify()

    def drop(self, partitions: frozenset[TopicPartition] | None = None) -> None:
        """Stop reading partitions; without an argument, all partitions."""
        with self.lock:
            self.partitions.remove(self.partitions.names if partitions is None else partitions)
        self.changed.notify()


def offsets_to_commit(offsets: Offsets | ConsumerRecord) -> Offsets:
    """Return the offsets to commit. A record stands for its offset plus one."""
    if isinstance(offsets, ConsumerRecord):
        return {TopicPartition(offsets.topic, offsets.partition): offsets.offset + 1}
    return offsets


def refused(option: str, value: object, reason: str) -> OptionError:
    """Return an ``OptionError`` for an operation that the consumer's configuration or state does not allow."""
    return OptionError(source="consumer", option=option, value=value, reason=reason)
