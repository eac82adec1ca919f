"""The bytes that members of consumer groups leave in the group's records, opened on request."""

from __future__ import annotations

import pytest
from attrs import evolve

from kafka_msgs import (
    ConsumerGroupMemberMetadataValue,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DecodeError,
    GroupMetadataValue,
    TruncatedError,
    Versioned,
    encode_versioned,
)
from kafka_msgs.messages.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from kafka_msgs.messages.consumer_protocol_assignment import TopicPartition
from kafka_msgs.messages.group_metadata_value import MemberMetadata
from kafka_msgs.topics.members import classic_subscriptions, consumer_members

SUBSCRIPTION = ConsumerProtocolSubscription(topics=("orders",))
ASSIGNMENT = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0, 2)),))
MEMBER = MemberMetadata(
    member_id="m-1", subscription=encode_versioned(SUBSCRIPTION, 1), assignment=encode_versioned(ASSIGNMENT, 0)
)
GROUP = GroupMetadataValue(protocol_type="consumer", members=(MEMBER,))


def test_members_are_opened() -> None:
    (member,) = consumer_members(GROUP)
    assert member.metadata is MEMBER
    assert member.subscription == Versioned(1, SUBSCRIPTION)
    assert member.assignment == Versioned(0, ASSIGNMENT)


def test_member_that_waits_for_its_share_has_no_assignment() -> None:
    (member,) = consumer_members(evolve(GROUP, members=(evolve(MEMBER, assignment=b""),)))
    assert member.assignment is None


def test_newer_version_is_read_as_the_newest_known() -> None:
    newer = b"\0\x09" + SUBSCRIPTION.encode(3) + b"more"
    (member,) = consumer_members(evolve(GROUP, members=(evolve(MEMBER, subscription=newer),)))
    assert member.subscription == Versioned(9, SUBSCRIPTION)


def test_members_of_other_groups_are_not_opened() -> None:
    connect = evolve(GROUP, protocol_type="connect")
    with pytest.raises(
        DecodeError, match=r"protocolType .*a group of type 'connect' do not speak the consumer protocol"
    ):
        consumer_members(connect)
    assert consumer_members(evolve(connect, members=())) == ()


def test_bytes_that_are_no_subscription_are_refused() -> None:
    with pytest.raises(TruncatedError, match="ConsumerProtocolSubscription v1: topics"):
        consumer_members(evolve(GROUP, members=(evolve(MEMBER, subscription=b"\0\1\0"),)))


def test_member_of_a_new_group_may_speak_the_old_protocol() -> None:
    protocol = ClassicProtocol(name="range", metadata=MEMBER.subscription)
    member = ConsumerGroupMemberMetadataValue(
        classic_member_metadata=ClassicMemberMetadata(supported_protocols=(protocol,))
    )
    assert classic_subscriptions(member) == {"range": Versioned(1, SUBSCRIPTION)}
    assert classic_subscriptions(evolve(member, classic_member_metadata=None)) == {}
