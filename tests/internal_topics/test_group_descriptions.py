"""Groups as their coordinator describes them, from the records of a real coordinator."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerProtocolAssignment,
    GroupMetadataKey,
    GroupMetadataValue,
    Message,
    encode_versioned,
)
from kafka_msgs.internal_topics.group_descriptions import GroupDescription, describe_group
from kafka_msgs.internal_topics.records import TopicRecord, decode_record
from kafka_msgs.internal_topics.replay import replay
from kafka_msgs.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.consumer_group_current_member_assignment_value import ConsumerGroupCurrentMemberAssignmentValue
from kafka_msgs.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafka_msgs.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kafka_msgs.messages.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey
from kafka_msgs.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)
from kafka_msgs.messages.consumer_protocol_assignment import TopicPartition
from kafka_msgs.messages.group_metadata_value import MemberMetadata
from tests.support.recorded_records import read_records
from tests.support.recordings import OFFSETS as OFFSETS_RECORDING

OFFSETS = "__consumer_offsets"


@pytest.fixture(scope="module")
def groups() -> dict[str, GroupDescription]:
    records = (decode_record(OFFSETS, record.key, record.value) for record in read_records(OFFSETS_RECORDING))
    return {name: describe_group(group) for name, group in replay(records).groups().items()}


def described(*records: tuple[Message, Message]) -> GroupDescription:
    """Return the description of the only group in these keys and values, which have their lowest versions."""
    typed = (TopicRecord(topic=OFFSETS, key=key, value=value, version=0) for key, value in records)
    (group,) = replay(typed).groups().values()
    return describe_group(group)


def test_groups_of_all_kinds_have_their_kind_and_state(groups: dict[str, GroupDescription]) -> None:
    assert {name: (each.kind, each.state) for name, each in groups.items()} == {
        "billing": ("classic", "Empty"),
        "packing": ("share", "Empty"),
        "totals": ("streams", "Empty"),
        "audit": ("classic", "Empty"),
        "ledger": ("classic", "Stable"),
        "stock": ("consumer", "Reconciling"),
    }


def test_classic_member_is_described_with_what_the_bytes_inside_say(groups: dict[str, GroupDescription]) -> None:
    (member,) = groups["ledger"].members
    assert (member.member_id, member.instance_id, member.epoch) == (groups["ledger"].leader, "ledger-1", 1)
    assert member.subscribed_topics == ("orders",)
    assert [(each.status, each.topic, each.partition) for each in member.assigned] == [
        ("current", "orders", 0),
        ("current", "orders", 1),
    ]


def test_static_member_that_left_for_a_while_keeps_its_target(groups: dict[str, GroupDescription]) -> None:
    (member,) = groups["stock"].members
    assert member.epoch == -2
    assert [(each.status, each.partition) for each in member.assigned] == [
        ("current", 0),
        ("current", 1),
        ("target", 0),
        ("target", 1),
    ]


def test_streams_group_without_members_keeps_its_topology(groups: dict[str, GroupDescription]) -> None:
    topology = groups["totals"].topology
    assert topology is not None
    assert [each.source_topics for each in topology.subtopologies] == [("orders",), ()]


def test_classic_member_whose_bytes_are_damaged_is_there_with_the_reason() -> None:
    member = MemberMetadata(member_id="m", subscription=b"\0\1\0\0\0\x7f", assignment=b"")
    value = GroupMetadataValue(protocol_type="consumer", members=(member,))
    (found,) = described((GroupMetadataKey(group="tea"), value)).members
    assert (found.subscribed_topics, found.assigned) == (None, ())
    assert found.problem is not None
    assert found.problem.startswith("ConsumerProtocolSubscription v1: topics at byte 2:")


def test_classic_member_with_a_malformed_subscription_keeps_its_assignment() -> None:
    without_owned_partitions = bytes.fromhex("0001 00000001 0003 746561 00000000")
    assignment = encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="tea", partitions=(0, 3)),)), 1
    )
    member = MemberMetadata(member_id="m", subscription=without_owned_partitions, assignment=assignment)
    value = GroupMetadataValue(protocol_type="consumer", members=(member,))
    (found,) = described((GroupMetadataKey(group="tea"), value)).members
    assert found.subscribed_topics == ("tea",)
    assert [(each.topic, each.partition) for each in found.assigned] == [("tea", 0), ("tea", 3)]
    assert found.problem is not None
    assert found.problem.startswith("ConsumerProtocolSubscription v1: owned_partitions at byte 15:")


def test_members_of_another_protocol_are_left_closed() -> None:
    member = MemberMetadata(member_id="worker", subscription=b"\xff", assignment=b"\xff")
    value = GroupMetadataValue(protocol_type="connect", members=(member,))
    (found,) = described((GroupMetadataKey(group="connect"), value)).members
    assert (found.member_id, found.problem, found.assigned) == ("worker", None, ())


@pytest.mark.parametrize(
    ("group_epoch", "assignment_epoch", "member_epoch", "member_state", "state"),
    [
        (3, 2, 2, 0, "Assigning"),
        (3, 3, 2, 0, "Reconciling"),
        (3, 3, 3, 1, "Reconciling"),
        (3, 3, 3, 0, "Stable"),
    ],
)
def test_state_of_a_consumer_group_follows_from_its_epochs(
    group_epoch: int, assignment_epoch: int, member_epoch: int, member_state: int, state: str
) -> None:
    """The rules of ``ConsumerGroup.maybeUpdateGroupState`` in Kafka's group coordinator."""
    member: dict[str, Any] = {"group_id": "tea", "member_id": "m"}
    current = ConsumerGroupCurrentMemberAssignmentValue(member_epoch=member_epoch, state=member_state)
    target = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=assignment_epoch)
    found = described(
        (ConsumerGroupMemberMetadataKey(**member), ConsumerGroupMemberMetadataValue()),
        (ConsumerGroupMetadataKey(group_id="tea"), ConsumerGroupMetadataValue(epoch=group_epoch)),
        (ConsumerGroupTargetAssignmentMetadataKey(group_id="tea"), target),
        (ConsumerGroupCurrentMemberAssignmentKey(**member), current),
    )
    assert found.state == state
