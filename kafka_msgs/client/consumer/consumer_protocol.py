"""The bytes that members of a classic consumer group send each other: subscriptions and assignments.

The broker does not parse these bytes, so all clients of a group must use the same encoding. This module writes the
encoding of Kafka's ``ConsumerProtocol``: version 3, an int16 version prefix, sorted topics and owned partitions. Its
values are plain data; ``assignors`` and ``sticky_assignor`` compute with them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from enum import Enum
from typing import Any, ClassVar, Final, TypeAlias

from attrs import frozen

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.codec import DEFAULT_OPTIONS, codec_for
from kafka_msgs.errors import DecodeError, UnsupportedVersionError
from kafka_msgs.message import DataMessage
from kafka_msgs.messages import consumer_protocol_assignment, consumer_protocol_subscription
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.schema import MessageInfo, field
from kafka_msgs.versioned import decode_versioned, encode_versioned

__all__ = [
    "NO_GENERATION",
    "Assigned",
    "AssignorMember",
    "UserData",
    "decode_assignment",
    "decode_member",
    "encode_assignment",
    "encode_subscription",
    "encode_user_data",
    "read_joined_member",
]  # fmt: skip

log: Final = logging.getLogger("kafka_msgs.client.group")

NO_GENERATION: Final = -1
"""The generation of a member before it joins a group, or of a member that does not report its generation."""

_VERSION: Final = 3

_GENERATION_SIZE: Final = 4

Assigned: TypeAlias = dict[str, list[TopicPartition]]
"""The assigned partitions of a group, by member id."""


class UserData(Enum):
    """The content of the user data in a subscription."""

    NOTHING = "nothing"
    GENERATION = "generation"
    """The generation in which the member owned its partitions (``CooperativeStickyAssignor``)."""
    PARTITIONS = "partitions"
    """The partitions that the member owned, and the generation (``StickyAssignor``). A member that gives up all of its
    partitions before a rebalance uses them to report the partitions that it prefers to keep.
    """


@frozen(kw_only=True, repr=False, eq=False, weakref_slot=False)
class StickyUserData(DataMessage):
    """The user data of Kafka's ``StickyAssignor``. Version 0 has no generation."""

    INFO: ClassVar[MessageInfo] = MessageInfo(name="StickyUserData", kind="data", versions="0-1", flexible="none")
    previous_assignment: tuple[consumer_protocol_assignment.TopicPartition, ...] = field(
        "PreviousAssignment", "[]TopicPartition", "0+", struct=consumer_protocol_assignment.TopicPartition, default=()
    )
    generation: int = field("Generation", "int32", "1+", default=NO_GENERATION, ignorable=True)


@frozen
class AssignorMember:
    """A group member as seen by the group leader.

    ``owned`` are the partitions that the member owned in ``generation``. ``instance_id`` is set for static members only
    (KIP-345).
    """

    member_id: str
    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    instance_id: str | None = None
    rack: str | None = None

    @property
    def rank(self) -> tuple[bool, str]:
        """The sort key among members: static members first, by instance id (Kafka's ``MemberInfo``)."""
        return (self.instance_id is None, self.member_id if self.instance_id is None else self.instance_id)


def encode_subscription(
    topics: Collection[str],
    owned: Collection[TopicPartition] = (),
    *,
    generation: int = NO_GENERATION,
    rack: str | None = None,
    user_data: bytes | None = None,
) -> bytes:
    """Return a subscription as Kafka's ``ConsumerProtocol.serializeSubscription`` writes it."""
    subscription = ConsumerProtocolSubscription(
        topics=tuple(sorted(topics)),
        user_data=user_data,
        owned_partitions=_by_topic(consumer_protocol_subscription.TopicPartition, sorted(owned)),
        generation_id=generation,
        rack_id=rack,
    )
    return encode_versioned(subscription, _VERSION)


def encode_user_data(kind: UserData, partitions: Collection[TopicPartition], generation: int) -> bytes | None:
    """Return the user data of a subscription: the generation, with the owned partitions for ``PARTITIONS``."""
    if kind is UserData.GENERATION:
        return generation.to_bytes(_GENERATION_SIZE, "big", signed=True)
    if kind is UserData.NOTHING or generation == NO_GENERATION:
        return None
    topics = _by_topic(consumer_protocol_assignment.TopicPartition, partitions)
    data: bytes = StickyUserData(previous_assignment=topics, generation=generation).encode(1)
    return data


def decode_member(
    member_id: str, instance_id: str | None, data: bytes, user_data: UserData = UserData.GENERATION
) -> AssignorMember:
    """Return the member with this encoded subscription. A newer version is decoded as the latest known version.

    Raises ``DecodeError``.
    """
    message = decode_versioned(ConsumerProtocolSubscription, data, newer="lenient").message
    owned: Iterable[Any] = message.owned_partitions
    generation = message.generation_id
    extra = message.user_data or b""
    if user_data is UserData.PARTITIONS:
        had = _sticky_user_data(bytes(extra))
        owned, generation = had.previous_assignment, had.generation
    elif generation < 0 and len(extra) == _GENERATION_SIZE:
        generation = int.from_bytes(extra, "big", signed=True)
    partitions = tuple(TopicPartition(each.topic, number) for each in owned for number in each.partitions)
    return AssignorMember(member_id, frozenset(message.topics), partitions, generation, instance_id, message.rack_id)


def read_joined_member(
    member_id: str, instance_id: str | None, data: bytes, user_data: UserData = UserData.GENERATION
) -> AssignorMember:
    """Return a member as ``decode_member`` does. Log an unreadable subscription, and return a member without topics.

    A member with an unknown encoding thus gets no partitions, and does not stop the group.
    """
    try:
        return decode_member(member_id, instance_id, data, user_data)
    except (DecodeError, UnsupportedVersionError) as error:
        log.warning("the subscription of member %s cannot be read; it gets no partitions: %s", member_id, error)
        return AssignorMember(member_id, frozenset(), instance_id=instance_id)


def _sticky_user_data(data: bytes) -> StickyUserData:
    """Decode user data, which contain no version. Trailing bytes are ignored; undecodable bytes mean no partitions.

    Kafka's ``StickyAssignor.deserializeTopicPartitionAssignment`` does the same.
    """
    for version in (1, 0):
        try:
            return codec_for(StickyUserData, version, DEFAULT_OPTIONS).read(data, 0)[0]
        except DecodeError:
            continue
    return StickyUserData()


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """Return an assignment as Kafka's ``ConsumerProtocol.serializeAssignment`` writes it."""
    assigned = _by_topic(consumer_protocol_assignment.TopicPartition, partitions)
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=assigned), _VERSION)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """Return the partitions of an encoded assignment; empty bytes contain no partitions. Raises ``DecodeError``."""
    if not data:
        return []
    message = decode_versioned(ConsumerProtocolAssignment, data, newer="lenient").message
    return [TopicPartition(each.topic, number) for each in message.assigned_partitions for number in each.partitions]


def _by_topic(cls: Any, partitions: Iterable[TopicPartition]) -> tuple[Any, ...]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return tuple(cls(topic=topic, partitions=tuple(numbers)) for topic, numbers in topics.items())
