"""The records of a consumer group, and functions that emit them.

The tombstones of a group have an order in which each of them is valid: ``appliers`` refuses any other order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafka_msgs.groups.consumer.member import ConsumerGroupMember, current_assignment
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.modern_records import ModernRecords
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafka_msgs.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafka_msgs.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kafka_msgs.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kafka_msgs.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kafka_msgs.messages.consumer_group_regular_expression_value import ConsumerGroupRegularExpressionValue
from kafka_msgs.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kafka_msgs.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kafka_msgs.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)
from kafka_msgs.messages.consumer_group_target_assignment_metadata_value import (
    ConsumerGroupTargetAssignmentMetadataValue,
)

__all__ = [
    "emit_current_assignment",
    "emit_epoch",
    "emit_member",
    "emit_regex",
    "emit_removal",
    "emit_target",
    "emit_target_metadata",
    "emit_tombstones",
    "remove_partition_metadata",
]


_RECORDS: Final = ModernRecords(
    group_key=ConsumerGroupMetadataKey,
    group_value=ConsumerGroupMetadataValue,
    member_key=ConsumerGroupMemberMetadataKey,
    target_key=ConsumerGroupTargetAssignmentMemberKey,
    target_value=ConsumerGroupTargetAssignmentMemberValue,
    target_topic=TopicPartition,
    target_metadata_key=ConsumerGroupTargetAssignmentMetadataKey,
    target_metadata_value=ConsumerGroupTargetAssignmentMetadataValue,
    current_key=ConsumerGroupCurrentMemberAssignmentKey,
)

emit_member = _RECORDS.emit_member
emit_epoch = _RECORDS.emit_epoch
emit_target = _RECORDS.emit_target
emit_target_metadata = _RECORDS.emit_target_metadata
emit_removal = _RECORDS.emit_removal


def emit_current_assignment(op: OperationContext, group_id: str, member: ConsumerGroupMember) -> None:
    """Record the current assignment of a member."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    op.emit(key, current_assignment(member))


def emit_regex(
    op: OperationContext, group_id: str, regex: str, value: ConsumerGroupRegularExpressionValue | None
) -> None:
    """Record the topics of a regular expression; None if no member subscribes to it any more."""
    op.emit(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


def remove_partition_metadata(op: OperationContext, group_id: str) -> None:
    """Emit the tombstone of the topics record that releases before 4.1 wrote."""
    op.emit(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def emit_tombstones(op: GroupOperation, group_id: str, members: Sequence[str], regexes: Sequence[str]) -> None:
    """Emit the tombstones of all records of a group with these members and resolved regular expressions."""
    patterns = (ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=each) for each in regexes)
    others = (*patterns, ConsumerGroupPartitionMetadataKey(group_id=group_id))
    _RECORDS.emit_tombstones(op, group_id, members, others)
