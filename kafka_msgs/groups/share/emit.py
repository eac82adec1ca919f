"""The records of a share group, as they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

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

if TYPE_CHECKING:
    from kafka_msgs.groups.share.group import ShareMember
    from kafka_msgs.groups.transaction import Transaction

__all__ = [
    "emit_current_assignment",
    "emit_epoch",
    "emit_member",
    "emit_removal",
    "emit_target",
    "emit_target_metadata",
    "emit_tombstones",
]


def emit_member(tx: Transaction, group_id: str, member: ShareMember) -> None:
    """Record what a member reported."""
    tx.emit(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), member.metadata)


def emit_epoch(tx: Transaction, group_id: str, epoch: int, metadata_hash: int) -> None:
    """Record the epoch of a group and the hash of its topics' metadata."""
    value = ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    tx.emit(ShareGroupMetadataKey(group_id=group_id), value)


def emit_target(tx: Transaction, group_id: str, member_id: str, target: Mapping[UUID, Sequence[int]]) -> None:
    """Record the target assignment of a member."""
    topics = tuple(TopicPartition(topic_id=topic, partitions=tuple(each)) for topic, each in target.items())
    value = ShareGroupTargetAssignmentMemberValue(topic_partitions=topics)
    tx.emit(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def emit_target_metadata(tx: Transaction, group_id: str, epoch: int, timestamp: int) -> None:
    """Record the epoch of the target assignment and the time at which it was computed, in ms."""
    value = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
    tx.emit(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def emit_current_assignment(tx: Transaction, group_id: str, member: ShareMember) -> None:
    """Record what a member reads."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=tuple(
            TopicPartitions(topic_id=topic, partitions=tuple(each)) for topic, each in member.assigned.items()
        ),
    )
    tx.emit(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def emit_removal(tx: Transaction, group_id: str, member_id: str) -> None:
    """Emit the tombstones of a member."""
    tx.emit(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    tx.emit(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    tx.emit(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def emit_tombstones(tx: Transaction, group_id: str, members: Sequence[str]) -> None:
    """Emit the tombstones of all records of a group with these members."""
    for member_id in members:
        tx.emit(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    for member_id in members:
        tx.emit(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    tx.emit(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    for member_id in members:
        tx.emit(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
    tx.emit(ShareGroupStatePartitionMetadataKey(group_id=group_id), None)
    tx.emit(ShareGroupMetadataKey(group_id=group_id), None)
