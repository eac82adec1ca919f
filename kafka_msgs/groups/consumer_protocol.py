"""Subscriptions and assignments of members of the classic protocol as bytes: Kafka's ``ConsumerProtocol``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar
from uuid import UUID

from kafka_msgs.codec import codec_for
from kafka_msgs.errors import DecodeError
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.message import Message
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.versioned import encode_versioned

__all__ = ["CONSUMER_PROTOCOL", "decode_subscription", "encode_assignment", "read_assignment"]

M = TypeVar("M", bound=Message)

CONSUMER_PROTOCOL: Final = "consumer"
"""The protocol type of members whose subscriptions and assignments have this format."""

_VERSION_SIZE: Final = 2


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Decode the subscription of a member. Raises ``DecodeError``."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Decode the assignment of a member. Raises ``DecodeError``."""
    return _read(ConsumerProtocolAssignment, data)


def encode_assignment(
    partitions: Mapping[UUID, Iterable[int]], image: TopicsImage, metadata: bytes, user_data: bytes | None = None
) -> bytes:
    """Encode an assignment at the version of the member's ``metadata``. Unknown topics are omitted.

    Raises ``DecodeError`` if the metadata has no version.
    """
    assigned = tuple(
        TopicPartition(topic=image.by_id[topic].name, partitions=tuple(each))
        for topic, each in partitions.items()
        if topic in image.by_id
    )
    version = _version(ConsumerProtocolAssignment, metadata)
    return encode_versioned(ConsumerProtocolAssignment(assigned_partitions=assigned, user_data=user_data), version)


def _read(cls: type[M], data: bytes) -> M:
    """Decode a message after its version. Surplus bytes are ignored, as in Kafka."""
    message, _ = codec_for(cls, _version(cls, data)).read(data, _VERSION_SIZE)
    return message


def _version(cls: type[Message], data: bytes) -> int:
    """Return the version at the start of the data. A newer version counts as the highest supported version."""
    version = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    if len(data) < _VERSION_SIZE or version < 0:
        reason = "the bytes do not begin with a version"
        raise DecodeError(message=cls.INFO.name, version=None, path="version", offset=0, reason=reason)
    return min(version, cls.INFO.versions.highest)
