"""What the members of consumer groups told each other, which the group's records carry as bytes.

Owns opening those bytes: the broker keeps them as they came, and in groups that are not of consumers (Kafka Connect's,
say) they mean something else. Reading the records themselves is left to ``records``.
"""

from __future__ import annotations

from attrs import frozen

from kafka_msgs.errors import DecodeError
from kafka_msgs.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue, MemberMetadata
from kafka_msgs.versioned import Versioned, decode_versioned

__all__ = ["ConsumerMember", "classic_subscriptions", "consumer_members", "open_member"]


@frozen(kw_only=True)
class ConsumerMember:
    """A member of a classic consumer group: its record, and what the bytes in it say.

    ``assignment`` is None while the member has none.
    """

    metadata: MemberMetadata
    subscription: Versioned[ConsumerProtocolSubscription]
    assignment: Versioned[ConsumerProtocolAssignment] | None


def consumer_members(group: GroupMetadataValue) -> tuple[ConsumerMember, ...]:
    """Return the members of a classic group of consumers, opened; a group without members has none.

    Versions above the highest known one are read as that one, as consumers do. Raises ``DecodeError``, also for the
    members of a group of another protocol type.
    """
    if group.members and group.protocol_type != "consumer":
        reason = f"members of a group of type {group.protocol_type!r} do not speak the consumer protocol"
        raise DecodeError(message=group.INFO.name, version=None, path="protocolType", offset=0, reason=reason)
    return tuple(open_member(member) for member in group.members)


def open_member(member: MemberMetadata) -> ConsumerMember:
    """Return one member of a classic group of consumers, opened; raises ``DecodeError``."""
    subscription = decode_versioned(ConsumerProtocolSubscription, member.subscription, newer="clamp")
    assigned = member.assignment
    assignment = decode_versioned(ConsumerProtocolAssignment, assigned, newer="clamp") if assigned else None
    return ConsumerMember(metadata=member, subscription=subscription, assignment=assignment)


def classic_subscriptions(
    member: ConsumerGroupMemberMetadataValue,
) -> dict[str, Versioned[ConsumerProtocolSubscription]]:
    """Return the subscriptions, by assignor, of a member that takes part in a new consumer group by the old protocol.

    Empty for a member that speaks the new one. Raises ``DecodeError``.
    """
    classic = member.classic_member_metadata
    return {
        protocol.name: decode_versioned(ConsumerProtocolSubscription, protocol.metadata, newer="clamp")
        for protocol in (classic.supported_protocols if classic else ())
    }
