"""What the records of a consumer group change. Appliers are the only code that changes a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_order import hash_map_order
from kafka_msgs.groups.consumer.group import ConsumerGroup, Target
from kafka_msgs.groups.consumer.member import NOTHING, Member, from_current_assignment
from kafka_msgs.groups.consumer.tables import set_order
from kafka_msgs.groups.journal import Changes
from kafka_msgs.groups.modern import (
    LEAVE_EPOCH,
    persisted,
    remove_group,
    remove_target_metadata,
    set_target_metadata,
)
from kafka_msgs.groups.state import Applier, State
from kafka_msgs.message import Message
from kafka_msgs.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
)
from kafka_msgs.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafka_msgs.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kafka_msgs.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafka_msgs.messages.consumer_group_metadata_value import ConsumerGroupMetadataValue
from kafka_msgs.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kafka_msgs.messages.consumer_group_partition_metadata_value import ConsumerGroupPartitionMetadataValue
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

__all__ = ["APPLIERS"]


def _apply_group(
    state: State, changes: Changes, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> None:
    group = persisted(state, changes, ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        remove_group(state, changes, group)
    else:
        changes.assign(group, "epoch", value.epoch)
        changes.assign(group, "metadata_hash", value.metadata_hash)


def _apply_partition_metadata(
    state: State,
    changes: Changes,
    key: ConsumerGroupPartitionMetadataKey,
    value: ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group = persisted(state, changes, ConsumerGroup, key.group_id, create=value is not None)
    if group is not None:
        changes.assign(group, "has_partition_metadata", value is not None)


def _apply_member(
    state: State, changes: Changes, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> None:
    group = persisted(state, changes, ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    member = group.members.get(key.member_id)
    if value is not None:
        member = member or Member(member_id=key.member_id)
        group.put_member(state, changes, evolve(member, metadata=value))
    elif member is not None:
        if member.epoch != LEAVE_EPOCH or key.member_id in group.targets:
            message = f"Unexpected tombstone of member {key.member_id}: it still has an assignment."
            raise GroupError(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=message)
        group.drop_member(state, changes, member)


def _apply_target(
    state: State,
    changes: Changes,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    group = persisted(state, changes, ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        changes.delete(group.targets, key.member_id)
    else:
        changes.set(group.targets, key.member_id, _target(value.topic_partitions))


def _target(topics: Iterable[TopicPartition]) -> Target:
    found: Mapping[UUID, tuple[int, ...]] = {each.topic_id: each.partitions for each in topics}
    return {topic: _partition_order(found[topic]) for topic in hash_map_order(found)}


def _partition_order(partitions: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(set_order(partitions))


def _apply_target_metadata(
    state: State,
    changes: Changes,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group = persisted(state, changes, ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        remove_target_metadata(changes, group)
    else:
        set_target_metadata(changes, group, value.assignment_epoch, value.assignment_timestamp)


def _apply_current_assignment(
    state: State,
    changes: Changes,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    group = persisted(state, changes, ConsumerGroup, key.group_id, create=value is not None)
    if group is None:
        return
    member = group.members.get(key.member_id)
    if value is not None:
        member = member or Member(member_id=key.member_id)
        group.put_member(state, changes, from_current_assignment(member, value))
    elif member is not None:
        left = evolve(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NOTHING, revoking=NOTHING)
        group.put_member(state, changes, left)


def _apply_regex(
    state: State,
    changes: Changes,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> None:
    group = persisted(state, changes, ConsumerGroup, key.group_id, create=value is not None)
    if group is not None:
        group.resolve(state, changes, key.regular_expression, value)


APPLIERS: Final[Mapping[type[Message], Applier]] = {
    ConsumerGroupMetadataKey: _apply_group,
    ConsumerGroupPartitionMetadataKey: _apply_partition_metadata,
    ConsumerGroupMemberMetadataKey: _apply_member,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupTargetAssignmentMetadataKey: _apply_target_metadata,
    ConsumerGroupCurrentMemberAssignmentKey: _apply_current_assignment,
    ConsumerGroupRegularExpressionKey: _apply_regex,
}
"""The effect of each record of a consumer group."""
