"""The subscriptions and assignments that members of consumer groups sent, which the group's records carry as bytes.

This module decodes those bytes. The broker stores them without a change. In groups of another protocol type (Kafka
Connect's, for example) they have another meaning. Each embedded message is read separately, so a malformed one does not
hide the others. ``records`` reads the records themselves.
"""

from __future__ import annotations

from typing import Final, Generic, TypeAlias, TypeVar

from attrs import frozen

from kafka_msgs.codec import codec_for
from kafka_msgs.errors import DecodeError, UnsupportedVersionError
from kafka_msgs.message import Message
from kafka_msgs.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafka_msgs.versioned import decode_versioned

__all__ = [
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


@frozen(kw_only=True)
class EmbeddedMessage(Generic[M]):
    """A message embedded in a record: an int16 version, then the message.

    ``version`` and ``message`` are None if nothing can be read, or if there are no bytes. ``fault`` is the error of
    bytes that are not a message of their version. Then ``message`` has the fields of version 0 that come before the
    fault. Kafka's group coordinator reads these fields, too.
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
    """Return the members of a classic group of consumers, opened as ``decode_member`` does.

    A group without members has none, whatever its protocol type. Raises ``DecodeError`` for the members of a group of
    another protocol type.
    """
    if group.members and group.protocol_type != "consumer":
        reason = f"members of a group of type {group.protocol_type!r} do not speak the consumer protocol"
        raise DecodeError(message=group.INFO.name, version=None, path="protocolType", offset=0, reason=reason)
    return tuple(decode_member(member) for member in group.members)


def decode_member(member: MemberMetadata) -> ConsumerMember:
    """Return one member of a classic group of consumers, with what its bytes hold and the faults in them.

    A version above the highest known one is read as that one, as consumers do (Kafka's ``ConsumerProtocol``). Some
    clients write a subscription of version 1 that ends before the owned partitions. Then the result has the topics and
    the fault, because the group coordinator reads only the fields of version 0 (``ClassicGroup``).
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
    """Return the subscriptions, by assignor, of a member that takes part in a new consumer group by the old protocol.

    Empty for a member that speaks the new one (KIP-848). The subscriptions are opened as those of ``decode_member``.
    """
    classic = member.classic_member_metadata
    return {
        protocol.name: decode_embedded(ConsumerProtocolSubscription, bytes(protocol.metadata))
        for protocol in (classic.supported_protocols if classic else ())
    }


def decode_embedded(cls: type[M], data: bytes) -> EmbeddedMessage[M]:
    """Return the message in the bytes of a member, or their fault, as ``decode_member`` does."""
    try:
        version, message = decode_versioned(cls, data, newer="clamp")
    except (DecodeError, UnsupportedVersionError) as fault:
        return _without_the_rest(cls, data, fault)
    return EmbeddedMessage(version=version, message=message)


def _without_the_rest(cls: type[M], data: bytes, fault: EmbeddedFault) -> EmbeddedMessage[M]:
    """Return the readable part of malformed bytes: the fields of the stated version, or only those of version 0."""
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
