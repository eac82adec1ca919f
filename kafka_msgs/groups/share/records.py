"""The records of a share group, and functions that emit them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.modern_records import ModernRecords
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.share.member import ShareMember
from kafka_msgs.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kafka_msgs.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kafka_msgs.messages.share_group_metadata_key import ShareGroupMetadataKey
from kafka_msgs.messages.share_group_metadata_value import ShareGroupMetadataValue
from kafka_msgs.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kafka_msgs.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kafka_msgs.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kafka_msgs.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from kafka_msgs.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)

__all__ = [
    "emit_current_assignment",
    "emit_epoch",
    "emit_member",
    "emit_removal",
    "emit_target",
    "emit_target_metadata",
    "emit_tombstones",
]


_RECORDS: Final = ModernRecords(
    group_key=ShareGroupMetadataKey,
    group_value=ShareGroupMetadataValue,
    member_key=ShareGroupMemberMetadataKey,
    target_key=ShareGroupTargetAssignmentMemberKey,
    target_value=ShareGroupTargetAssignmentMemberValue,
    target_topic=TopicPartition,
    target_metadata_key=ShareGroupTargetAssignmentMetadataKey,
    target_metadata_value=ShareGroupTargetAssignmentMetadataValue,
    current_key=ShareGroupCurrentMemberAssignmentKey,
)

emit_member = _RECORDS.emit_member
emit_epoch = _RECORDS.emit_epoch
emit_target = _RECORDS.emit_target
emit_target_metadata = _RECORDS.emit_target_metadata
emit_removal = _RECORDS.emit_removal


def emit_current_assignment(op: OperationContext, group_id: str, member: ShareMember) -> None:
    """Record the current assignment of a member."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=tuple(
            TopicPartitions(topic_id=topic, partitions=tuple(each)) for topic, each in member.assigned.items()
        ),
    )
    op.emit(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def emit_tombstones(op: GroupOperation, group_id: str, members: Sequence[str]) -> None:
    """Emit the tombstones of all records of a group with these members."""
    _RECORDS.emit_tombstones(op, group_id, members, [ShareGroupStatePartitionMetadataKey(group_id=group_id)])
