"""The bytes that members of a classic consumer group send each other: subscriptions and assignments.

The broker carries them without a look inside, so every client of a group must write the same form. It is that of
Kafka's ``ConsumerProtocol``: version 3, topics and owned partitions sorted, an int16 version in front. The values here
are plain; ``assignors`` and ``sticky_assignor`` compute with them.
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
"""The generation of a member that is not in a group yet, or that does not say which one it was in."""

_VERSION: Final = 3

_GENERATION_SIZE: Final = 4

Assigned: TypeAlias = dict[str, list[TopicPartition]]
"""What each member of a group gets, by member id."""


class UserData(Enum):
    """What the user data of a subscription says."""

    NOTHING = "nothing"
    GENERATION = "generation"
    """The generation in which the member owned its partitions (``CooperativeStickyAssignor``)."""
    PARTITIONS = "partitions"
    """The partitions that the member had, and the generation. A member that gives up all of its partitions before a
    rebalance says so what it would like to keep (``StickyAssignor``).
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
    """A member as the leader of its group sees it.

    ``owned`` are the partitions that it had in ``generation``. ``instance_id`` is that of a static member (KIP-345).
    """

    member_id: str
    topics: frozenset[str]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    instance_id: str | None = None
    rack: str | None = None

    @property
    def rank(self) -> tuple[bool, str]:
        """The place among members: static members come first, by instance id (Kafka's ``MemberInfo``)."""
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
    """Return the user data of a subscription: what the member had, and in which generation."""
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
    """Return the member whose subscription has these bytes. A newer version is read as the newest known one.

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
    """Return a member as ``decode_member`` does. One whose subscription cannot be read gets no partitions, and is
    logged.

    So a foreign member does not stop the group of a leader.
    """
    try:
        return decode_member(member_id, instance_id, data, user_data)
    except (DecodeError, UnsupportedVersionError) as error:
        log.warning("the subscription of member %s cannot be read; it gets no partitions: %s", member_id, error)
        return AssignorMember(member_id, frozenset(), instance_id=instance_id)


def _sticky_user_data(data: bytes) -> StickyUserData:
    """Read user data, which have no version. Bytes after them are ignored, and others mean that the member had nothing.

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
    """Return the partitions of an assignment; no bytes mean no partitions. Raises ``DecodeError``."""
    if not data:
        return []
    message = decode_versioned(ConsumerProtocolAssignment, data, newer="lenient").message
    return [TopicPartition(each.topic, number) for each in message.assigned_partitions for number in each.partitions]


def _by_topic(cls: Any, partitions: Iterable[TopicPartition]) -> tuple[Any, ...]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return tuple(cls(topic=topic, partitions=tuple(numbers)) for topic, numbers in topics.items())
