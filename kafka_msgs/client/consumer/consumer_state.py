"""What the parts of a consumer share: what it subscribes to, its partitions, and what they tell one another."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Any, Final, TypeAlias

from attrs import define, field, frozen

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import AssignedPartition, AssignedPartitions, OffsetResetStrategy
from kafka_msgs.client.consumer.config import ConsumerConfig
from kafka_msgs.client.consumer.membership import ConsumerGroupMetadata, Membership, Signal
from kafka_msgs.client.consumer.offsets import OffsetAndMetadata
from kafka_msgs.client.core import ClientCore
from kafka_msgs.errors import OffsetPositionError, OptionError
from kafka_msgs.records import ConsumerRecord

__all__ = ["Callback", "ConsumerState", "Offsets", "Subscription", "offsets_to_commit", "refused"]

_LOG: Final = logging.getLogger("kafka_msgs.client.consumer")

Callback: TypeAlias = Callable[[list[TopicPartition]], Any]
"""A function of the user for assignment or revocation. In the form for asyncio it may be a coroutine function."""

Offsets: TypeAlias = Mapping[TopicPartition, "int | OffsetAndMetadata"]
"""Positions to commit or to go to."""


@frozen(kw_only=True)
class Subscription:
    """What a member of a group asks for: topics, or a pattern that is matched here or by the broker (KIP-848)."""

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
    """The state of one consumer, without what runs by itself."""

    client: ClientCore
    config: ConsumerConfig
    partitions: AssignedPartitions
    changed: Signal
    """Given when the subscription, the metadata, the positions or the assignment changed."""
    arrived: Signal
    """Given when there is something for a poll."""
    drained: Signal
    """Given when a poll has taken something out of the buffers."""
    polled: Signal
    """Given at every poll."""
    subscription: Subscription
    membership: Membership | None = None
    watched: frozenset[str] = frozenset()
    """Topics of other members, whose partitions this one divides as the leader."""
    lock: Any = field(factory=RLock)
    """Guards positions and buffers: the thread of the user takes records, the I/O thread brings them."""
    metadata_at: float = 0.0
    """When metadata is asked for again, in seconds of the network's clock."""

    @classmethod
    def of(cls, client: ClientCore, config: ConsumerConfig) -> ConsumerState:
        """Return the state of a new consumer."""
        return cls(client, config, AssignedPartitions(), Signal(), Signal(), Signal(), Signal(), Subscription())

    @property
    def identity(self) -> ConsumerGroupMetadata:
        """Who commits: the member of the group, or nobody in particular."""
        return ConsumerGroupMetadata() if self.membership is None else self.membership.identity

    def subscribe(self, subscription: Subscription) -> None:
        """Take over a subscription."""
        self.subscription = subscription
        self.metadata_at = 0.0
        self.changed.notify()

    def notice_topics(self) -> None:
        """Compare topic ids: where a topic was made again, its partitions begin at their first record.

        Positions belong to the topic that was deleted. With ``auto_offset_reset`` set to ``none`` polls raise
        ``OffsetPositionError``.
        """
        for each in self.partitions:
            topic_id = self.client.cluster.topic_id(each.name.topic)
            if topic_id is None or topic_id == each.topic_id:
                continue
            if each.topic_id is not None:
                self._begin_again(each)
            each.topic_id = topic_id

    def _begin_again(self, partition: AssignedPartition) -> None:
        _LOG.warning("the topic of %s was deleted and created again", partition.name)
        with self.lock:
            partition.reset(OffsetResetStrategy.EARLIEST)
        if self.config.auto_offset_reset == "none":
            topic, number = partition.name
            reason = "the topic was deleted and created again, and auto_offset_reset is none"
            partition.error = OffsetPositionError(topic=topic, partition=number, reason=reason)

    def drop(self, partitions: frozenset[TopicPartition] | None = None) -> None:
        """Stop reading partitions; without an argument, all of them."""
        with self.lock:
            self.partitions.remove(self.partitions.names if partitions is None else partitions)
        self.changed.notify()


def offsets_to_commit(offsets: Offsets | ConsumerRecord | None) -> Offsets | None:
    """Return offsets. A record stands for the offset behind it."""
    if isinstance(offsets, ConsumerRecord):
        return {TopicPartition(offsets.topic, offsets.partition): offsets.offset + 1}
    return offsets


def refused(option: str, value: object, reason: str) -> OptionError:
    """Return the error for what a consumer cannot do."""
    return OptionError(source="consumer", option=option, value=value, reason=reason)
