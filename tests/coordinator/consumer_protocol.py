"""The byte fields of JoinGroup and SyncGroup, as classic consumers and their leader encode them, in base64."""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence

from kafka_msgs.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription, consumer_protocol_assignment
from kafka_msgs.messages import consumer_protocol_subscription as subscription_classes

__all__ = ["assigned", "assignment", "subscribed_topics", "subscription"]


def subscription(
    topics: Sequence[str],
    owned: Mapping[str, Sequence[int]] | None = None,
    *,
    version: int = 3,
    generation: int = -1,
    rack: str | None = None,
) -> str:
    """Return the subscription of a consumer."""
    partitions = tuple(
        subscription_classes.TopicPartition(topic=topic, partitions=tuple(numbers))
        for topic, numbers in (owned or {}).items()
    )
    value = ConsumerProtocolSubscription(
        topics=tuple(topics),
        user_data=None,
        owned_partitions=partitions if version >= 1 else (),
        generation_id=generation if version >= 2 else -1,
        rack_id=rack if version >= 3 else None,
    )
    return _text(struct.pack(">h", version) + value.encode(version))


def subscribed_topics(text: str) -> tuple[str, ...]:
    """Return the topics of a subscription."""
    data = b64decode(text)
    (version,) = struct.unpack_from(">h", data)
    return ConsumerProtocolSubscription.decode(data[2:], version).topics


def assignment(partitions: Mapping[str, Sequence[int]], *, version: int = 3) -> str:
    """Return the assignment of one member."""
    value = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            consumer_protocol_assignment.TopicPartition(topic=topic, partitions=tuple(numbers))
            for topic, numbers in partitions.items()
        ),
        user_data=None,
    )
    return _text(struct.pack(">h", version) + value.encode(version))


def assigned(text: str) -> dict[str, list[int]]:
    """Return the partitions of an assignment; an empty assignment has none."""
    data = b64decode(text)
    if len(data) < 2:
        return {}
    (version,) = struct.unpack_from(">h", data)
    value = ConsumerProtocolAssignment.decode(data[2:], version)
    return {entry.topic: list(entry.partitions) for entry in value.assigned_partitions}


def _text(data: bytes) -> str:
    return b64encode(data).decode()
