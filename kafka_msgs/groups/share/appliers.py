"""Appliers for the records of a share group. Only appliers change a group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import evolve

from kafka_msgs.groups.modern_appliers import (
    apply_group,
    apply_target,
    apply_target_metadata,
    for_group,
    for_member,
    in_order,
)
from kafka_msgs.groups.modern_group import LEAVE_EPOCH
from kafka_msgs.groups.runtime.hard_state import Applier
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.groups.shard_state import ShardState
from kafka_msgs.groups.share.group import ShareGroup
from kafka_msgs.groups.share.member import ShareMember
from kafka_msgs.message import Message
from kafka_msgs.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kafka_msgs.messages.share_group_metadata_key import ShareGroupMetadataKey
from kafka_msgs.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kafka_msgs.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kafka_msgs.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey

__all__ = ["APPLIERS"]


def _current(state: ShardState, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        moved = evolve(
            member or ShareMember(member_id=key.member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=in_order(value.assigned_partitions),
        )
        group.put_member(state, changes, moved)
    elif member is not None:
        left = evolve(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={})
        group.put_member(state, changes, left)


def _partitions(state: ShardState, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    changes.assign(group, "partitions", value)
    changes.assign(group, "written_ms", state.now)


APPLIERS: Final[Mapping[type[Message], Applier]] = {
    ShareGroupMetadataKey: for_group(ShareGroup, apply_group),
    ShareGroupMemberMetadataKey: for_group(ShareGroup, for_member(lambda member_id: ShareMember(member_id=member_id))),
    ShareGroupCurrentMemberAssignmentKey: for_group(ShareGroup, _current),
    ShareGroupTargetAssignmentMemberKey: for_group(ShareGroup, apply_target),
    ShareGroupTargetAssignmentMetadataKey: for_group(ShareGroup, apply_target_metadata),
    ShareGroupStatePartitionMetadataKey: for_group(ShareGroup, _partitions),
}
"""The effect of each record of a share group."""
