"""Appliers for the records of a consumer group. Only appliers change a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import NO_PARTITIONS, ConsumerGroupMember, from_current_assignment
from kafka_msgs.groups.modern_appliers import apply_group, apply_target, apply_target_metadata, for_group, for_member
from kafka_msgs.groups.modern_group import LEAVE_EPOCH
from kafka_msgs.groups.runtime.hard_state import Applier
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.groups.shard_state import ShardState
from kafka_msgs.message import Message
from kafka_msgs.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafka_msgs.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafka_msgs.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kafka_msgs.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey
from kafka_msgs.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kafka_msgs.messages.consumer_group_target_assignment_metadata_key import (
    ConsumerGroupTargetAssignmentMetadataKey,
)

__all__ = ["APPLIERS"]


def _partition_metadata(state: ShardState, changes: Changes, group: ConsumerGroup, key: Any, value: Any) -> None:
    changes.assign(group, "has_partition_metadata", value is not None)


def _current(state: ShardState, changes: Changes, group: ConsumerGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        member = member or ConsumerGroupMember(member_id=key.member_id)
        group.put_member(state, changes, from_current_assignment(member, value))
    elif member is not None:
        left = evolve(
            member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NO_PARTITIONS, revoking=NO_PARTITIONS
        )
        group.put_member(state, changes, left)


def _regex(state: ShardState, changes: Changes, group: ConsumerGroup, key: Any, value: Any) -> None:
    group.resolve(state, changes, key.regular_expression, value)


APPLIERS: Final[Mapping[type[Message], Applier]] = {
    ConsumerGroupMetadataKey: for_group(ConsumerGroup, apply_group),
    ConsumerGroupPartitionMetadataKey: for_group(ConsumerGroup, _partition_metadata),
    ConsumerGroupMemberMetadataKey: for_group(
        ConsumerGroup, for_member(lambda member_id: ConsumerGroupMember(member_id=member_id))
    ),
    ConsumerGroupTargetAssignmentMemberKey: for_group(ConsumerGroup, apply_target),
    ConsumerGroupTargetAssignmentMetadataKey: for_group(ConsumerGroup, apply_target_metadata),
    ConsumerGroupCurrentMemberAssignmentKey: for_group(ConsumerGroup, _current),
    ConsumerGroupRegularExpressionKey: for_group(ConsumerGroup, _regex),
}
"""The effect of each record of a consumer group."""
