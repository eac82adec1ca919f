"""The subscriptions and assignments of consumer group members, embedded as bytes in the group's records.

This module decodes these bytes, which the broker stores unchanged. Groups of another protocol type (such as Kafka
Connect) use other formats. Each embedded message is read separately, so a malformed one does not affect another.
``records`` reads the records themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Generic, TypeAlias, TypeVar

from attrs import frozen

from kafka_msgs.codec import codec_for
from kafka_msgs.errors import DecodeError, UnsupportedVersionError
from kafka_msgs.message import Message
from kafka_msgs.messages.consumer_group_member_metadata_value import ClassicProtocol, ConsumerGroupMemberMetadataValue
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.describe_groups_response import DescribedGroupMember
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafka_msgs.messages.join_group_request import JoinGroupRequestProtocol
from kafka_msgs.messages.join_group_response import JoinGroupResponseMember
from kafka_msgs.messages.sync_group_request import SyncGroupRequestAssignment
from kafka_msgs.messages.sync_group_response import SyncGroupResponse
from kafka_msgs.versioned import decode_versioned

__all__ = [
    "EMBEDDED_FIELDS",
    "ConsumerMember",
    "EmbeddedMessage",
    "classic_subscriptions",
    "consumer_members",
    "decode_embedded",
    "decode_member",
]

M = TypeVar("M", bound=Message)

EmbeddedFault: TypeAlias = DecodeError | UnsupportedVersionError

_VERSION_SIZE: Final = 2

EMBEDDED_FIELDS: Final[Mapping[tuple[type[Any], str], type[Message]]] = {
    (JoinGroupRequestProtocol, "metadata"): ConsumerProtocolSubscription,
    (JoinGroupResponseMember, "metadata"): ConsumerProtocolSubscription,
    (SyncGroupRequestAssignment, "assignment"): ConsumerProtocolAssignment,
    (SyncGroupResponse, "assignment"): ConsumerProtocolAssignment,
    (DescribedGroupMember, "member_metadata"): ConsumerProtocolSubscription,
    (DescribedGroupMember, "member_assignment"): ConsumerProtocolAssignment,
    (MemberMetadata, "subscription"): ConsumerProtocolSubscription,
    (MemberMetadata, "assignment"): ConsumerProtocolAssignment,
    (ClassicProtocol, "metadata"): ConsumerProtocolSubscription,
}
"""The message in the bytes of a field, by the class of the struct and the name of the field."""


@frozen(kw_only=True)
class EmbeddedMessage(Generic[M]):
    """A message embedded in a record: an int16 version, then the message.

    ``version`` and ``message`` are None if the bytes are unreadable or empty. ``fault`` is the error of bytes that are
    not a message of their version. In that case ``message`` contains the fields of version 0 before the fault, which
    Kafka's group coordinator also reads.
    """

    version: int | None = None
    message: M | None = None
    fault: EmbeddedFault | None = None


@frozen(kw_only=True)
class ConsumerMember:
    """A member of a classic consumer group: its record, and the messages embedded in it.

    ``assignment`` has no message and no fault while the member has no assignment.
    """

    metadata: MemberMetadata
    subscription: EmbeddedMessage[ConsumerProtocolSubscription] = EmbeddedMessage()
    assignment: EmbeddedMessage[ConsumerProtocolAssignment] = EmbeddedMessage()

    @property
    def faults(self) -> tuple[EmbeddedFault, ...]:
        """The faults of subscription and assignment."""
        return tuple(each.fault for each in (self.subscription, self.assignment) if each.fault is not None)


def consumer_members(group: GroupMetadataValue) -> tuple[ConsumerMember, ...]:
    """Return the members of a classic consumer group, decoded like ``decode_member``.

    A group without members returns none, regardless of its protocol type. Raises ``DecodeError`` for the members of a
    group of another protocol type.
    """
    if group.members and group.protocol_type != "consumer":
        reason = f"members of a group of type {group.protocol_type!r} do not speak the consumer protocol"
        raise DecodeError(message=group.INFO.name, version=None, path="protocolType", offset=0, reason=reason)
    return tuple(decode_member(member) for member in group.members)


def decode_member(member: MemberMetadata) -> ConsumerMember:
    """Return one member of a classic consumer group, with its decoded subscription and assignment, and their faults.

    Versions above the highest known one are read as that version, as in Kafka's ``ConsumerProtocol``. Some clients
    write a subscription of version 1 that ends before the owned partitions. In that case the result contains the topics
    and the fault, because the group coordinator reads only the fields of version 0 (``ClassicGroup``).
    """
    assigned = member.assignment
    return ConsumerMember(
        metadata=member,
        subscription=decode_embedded(ConsumerProtocolSubscription, bytes(member.subscription)),
        assignment=decode_embedded(ConsumerProtocolAssignment, bytes(assigned)) if assigned else EmbeddedMessage(),
    )


def classic_subscriptions(
    member: ConsumerGroupMemberMetadataValue,
) -> dict[str, EmbeddedMessage[ConsumerProtocolSubscription]]:
    """Return the subscriptions, by assignor, of a member that uses the classic protocol in a new consumer group.

    Empty for a member that uses the new protocol (KIP-848). The subscriptions are decoded like in ``decode_member``.
    """
    classic = member.classic_member_metadata
    return {
        protocol.name: decode_embedded(ConsumerProtocolSubscription, bytes(protocol.metadata))
        for protocol in (classic.supported_protocols if classic else ())
    }


def decode_embedded(cls: type[M], data: bytes) -> EmbeddedMessage[M]:
    """Return the message in the bytes of a member, or their fault, like ``decode_member``."""
    try:
        version, message = decode_versioned(cls, data, newer="clamp")
    except (DecodeError, UnsupportedVersionError) as fault:
        return _without_the_rest(cls, data, fault)
    return EmbeddedMessage(version=version, message=message)


def _without_the_rest(cls: type[M], data: bytes, fault: EmbeddedFault) -> EmbeddedMessage[M]:
    """Return the readable part of malformed bytes: the fields of their version, or only the fields of version 0."""
    if len(data) < _VERSION_SIZE:
        return EmbeddedMessage(fault=fault)
    stated = int.from_bytes(data[:_VERSION_SIZE], "big", signed=True)
    for version in (stated, 0) if stated in cls.INFO.versions else (0,):
        try:
            message, _ = codec_for(cls, version).read(data, _VERSION_SIZE)
        except DecodeError:
            continue
        return EmbeddedMessage(version=stated, message=message, fault=fault)
    return EmbeddedMessage(fault=fault)
