"""The bytes that consumer group members store in the group's records, decoded on request."""

from __future__ import annotations

import pytest
from attrs import evolve

from kafka_msgs import (
    ConsumerGroupMemberMetadataValue,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DecodeError,
    GroupMetadataValue,
    UnsupportedVersionError,
    encode_versioned,
)
from kafka_msgs.errors import InvalidLengthError, TrailingDataError, TruncatedError
from kafka_msgs.internal_topics.consumer_protocol import (
    EmbeddedMessage,
    classic_subscriptions,
    consumer_members,
    decode_member,
)
from kafka_msgs.messages.consumer_group_member_metadata_value import ClassicMemberMetadata, ClassicProtocol
from kafka_msgs.messages.consumer_protocol_assignment import TopicPartition
from kafka_msgs.messages.group_metadata_value import MemberMetadata

SUBSCRIPTION = ConsumerProtocolSubscription(topics=("orders",))
ASSIGNMENT = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0, 2)),))
MEMBER = MemberMetadata(
    member_id="m-1", subscription=encode_versioned(SUBSCRIPTION, 1), assignment=encode_versioned(ASSIGNMENT, 0)
)
GROUP = GroupMetadataValue(protocol_type="consumer", members=(MEMBER,))


def test_members_are_opened() -> None:
    (member,) = consumer_members(GROUP)
    assert member.metadata is MEMBER
    assert member.subscription == EmbeddedMessage(version=1, message=SUBSCRIPTION)
    assert member.assignment == EmbeddedMessage(version=0, message=ASSIGNMENT)
    assert member.faults == ()


def test_member_that_waits_for_its_share_has_no_assignment() -> None:
    (member,) = consumer_members(evolve(GROUP, members=(evolve(MEMBER, assignment=b""),)))
    assert member.assignment == EmbeddedMessage()
    assert member.faults == ()


def test_newer_version_is_read_as_the_newest_known() -> None:
    newer = b"\0\x09" + SUBSCRIPTION.encode(3) + b"more"
    (member,) = consumer_members(evolve(GROUP, members=(evolve(MEMBER, subscription=newer),)))
    assert member.subscription == EmbeddedMessage(version=9, message=SUBSCRIPTION)


def test_members_of_other_groups_are_not_opened() -> None:
    connect = evolve(GROUP, protocol_type="connect")
    with pytest.raises(
        DecodeError, match=r"protocolType .*a group of type 'connect' do not speak the consumer protocol"
    ):
        consumer_members(connect)
    assert consumer_members(evolve(connect, members=())) == ()


WITHOUT_OWNED_PARTITIONS = bytes.fromhex("0001 00000001 0006 6f7264657273 00000000")
"""A subscription to ``orders`` as kafka-go and platformatic write it: version 1, without owned partitions."""


def test_a_subscription_without_owned_partitions_has_its_topics_and_its_fault() -> None:
    opened = decode_member(evolve(MEMBER, subscription=WITHOUT_OWNED_PARTITIONS))
    assert opened.subscription.version == 1
    assert opened.subscription.message == ConsumerProtocolSubscription(topics=("orders",), user_data=b"")
    (fault,) = opened.faults
    assert isinstance(fault, TruncatedError)
    assert "ConsumerProtocolSubscription v1: owned_partitions" in str(fault)
    assert opened.assignment == EmbeddedMessage(version=0, message=ASSIGNMENT)


def test_bytes_after_a_message_are_a_fault_beside_it() -> None:
    opened = decode_member(evolve(MEMBER, subscription=MEMBER.subscription + b"!", assignment=MEMBER.assignment + b"!"))
    assert (opened.subscription.message, opened.assignment.message) == (SUBSCRIPTION, ASSIGNMENT)
    assert [type(fault) for fault in opened.faults] == [TrailingDataError, TrailingDataError]


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\1", b"\0\1\0", b"\0\1\0\0\0\1\0\6or"])
def test_a_subscription_that_nothing_can_be_read_of_hides_no_assignment(data: bytes) -> None:
    opened = decode_member(evolve(MEMBER, subscription=data))
    assert opened.subscription.message is None
    assert isinstance(opened.subscription.fault, TruncatedError)
    assert opened.assignment.message == ASSIGNMENT


def test_a_malformed_assignment_hides_no_subscription() -> None:
    opened = decode_member(evolve(MEMBER, assignment=MEMBER.assignment[:-6]))
    assert opened.subscription.message == SUBSCRIPTION
    assert (opened.assignment.message, type(opened.assignment.fault)) == (None, InvalidLengthError)


def test_a_negative_version_is_a_fault_and_the_topics_are_read() -> None:
    opened = decode_member(evolve(MEMBER, subscription=b"\xff\xff" + SUBSCRIPTION.encode(0)))
    assert isinstance(opened.subscription.fault, UnsupportedVersionError)
    assert (opened.subscription.version, opened.subscription.message) == (-1, SUBSCRIPTION)


def test_member_of_a_new_group_may_speak_the_old_protocol() -> None:
    protocol = ClassicProtocol(name="range", metadata=MEMBER.subscription)
    member = ConsumerGroupMemberMetadataValue(
        classic_member_metadata=ClassicMemberMetadata(supported_protocols=(protocol,))
    )
    assert classic_subscriptions(member) == {"range": EmbeddedMessage(version=1, message=SUBSCRIPTION)}
    assert classic_subscriptions(evolve(member, classic_member_metadata=None)) == {}
