"""The records of a consumer group, as they are written.

Tombstones of a group come in an order in which each of them is allowed: ``appliers`` refuses another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from kafka_msgs.groups.consumer.member import Member, current_assignment
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

if TYPE_CHECKING:
    from kafka_msgs.groups.transaction import Transaction

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


def emit_member(tx: Transaction, group_id: str, member: Member) -> None:
    """Record what a member reported."""
    tx.emit(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), member.metadata)


def emit_epoch(tx: Transaction, group_id: str, epoch: int, metadata_hash: int) -> None:
    """Record the epoch of a group and the hash of its topics' metadata."""
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    tx.emit(ConsumerGroupMetadataKey(group_id=group_id), value)


def emit_target(tx: Transaction, group_id: str, member_id: str, target: Mapping[UUID, Sequence[int]]) -> None:
    """Record the target assignment of a member."""
    topics = tuple(TopicPartition(topic_id=topic, partitions=tuple(each)) for topic, each in target.items())
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics)
    tx.emit(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def emit_target_metadata(tx: Transaction, group_id: str, epoch: int, timestamp: int) -> None:
    """Record the epoch of the target assignment and the time at which it was computed, in ms."""
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
    tx.emit(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def emit_current_assignment(tx: Transaction, group_id: str, member: Member) -> None:
    """Record what a member owns."""
    key = ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id)
    tx.emit(key, current_assignment(member))


def emit_regex(tx: Transaction, group_id: str, regex: str, value: ConsumerGroupRegularExpressionValue | None) -> None:
    """Record the topics of a regular expression; None if no member subscribes to it any more."""
    tx.emit(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=regex), value)


def emit_removal(tx: Transaction, group_id: str, member_id: str) -> None:
    """Emit the tombstones of a member."""
    tx.emit(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    tx.emit(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    tx.emit(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def remove_partition_metadata(tx: Transaction, group_id: str) -> None:
    """Emit the tombstone of the record of topics that releases before 4.1 wrote."""
    tx.emit(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def emit_tombstones(tx: Transaction, group_id: str, members: Sequence[str], regexes: Sequence[str]) -> None:
    """Emit the tombstones of all records of a group with these members and resolved regular expressions."""
    for member_id in members:
        tx.emit(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
    for member_id in members:
        tx.emit(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
    tx.emit(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None)
    for member_id in members:
        tx.emit(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
    for regex in regexes:
        emit_regex(tx, group_id, regex, None)
    remove_partition_metadata(tx, group_id)
    tx.emit(ConsumerGroupMetadataKey(group_id=group_id), None)
