"""What the records of a share group change. Appliers are the only code that changes a group."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_order import NumberTable, copy_capacity, hash_map_order
from kafka_msgs.groups.journal import Changes
from kafka_msgs.groups.modern import (
    LEAVE_EPOCH,
    persisted,
    remove_group,
    remove_target_metadata,
    set_target_metadata,
)
from kafka_msgs.groups.share.group import Partitions, ShareGroup, ShareMember
from kafka_msgs.groups.state import Applier, State
from kafka_msgs.message import Message
from kafka_msgs.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kafka_msgs.messages.share_group_metadata_key import ShareGroupMetadataKey
from kafka_msgs.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kafka_msgs.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kafka_msgs.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey

__all__ = ["APPLIERS"]

_Change = Callable[[State, Changes, ShareGroup, Any, Any], None]


def _for_group(change: _Change) -> Applier:
    """Return the applier of records of a share group, which a record with a value makes."""

    def apply(state: State, changes: Changes, key: Any, value: Any) -> None:
        group = persisted(state, changes, ShareGroup, key.group_id, create=value is not None)
        if group is not None:
            change(state, changes, group, key, value)

    return apply


def _group(state: State, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    if value is None:
        remove_group(state, changes, group)
    else:
        changes.assign(group, "epoch", value.epoch)
        changes.assign(group, "metadata_hash", value.metadata_hash)


def _member(state: State, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member(state, changes, evolve(member or ShareMember(member_id=key.member_id), metadata=value))
    elif member is not None:
        if member.epoch != LEAVE_EPOCH or key.member_id in group.targets:
            message = f"Unexpected tombstone of member {key.member_id}: it still has an assignment."
            raise GroupError(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=message)
        group.drop_member(state, changes, member)


def _current(state: State, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        moved = evolve(
            member or ShareMember(member_id=key.member_id),
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=value.state,
            assigned=_in_order(value.assigned_partitions),
        )
        group.put_member(state, changes, moved)
    elif member is not None:
        left = evolve(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned={})
        group.put_member(state, changes, left)


def _target(state: State, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    if value is None:
        changes.delete(group.targets, key.member_id)
    else:
        changes.set(group.targets, key.member_id, _in_order(value.topic_partitions))


def _target_metadata(state: State, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    if value is None:
        remove_target_metadata(changes, group)
    else:
        set_target_metadata(changes, group, value.assignment_epoch, value.assignment_timestamp)


def _partitions(state: State, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    changes.assign(group, "partitions", value)
    changes.assign(group, "written_ms", state.now)


def _in_order(topics: Iterable[Any]) -> Partitions:
    found: Mapping[UUID, tuple[int, ...]] = {each.topic_id: each.partitions for each in topics}
    return {
        topic: NumberTable(found[topic], capacity=copy_capacity(len(found[topic]))).walk()
        for topic in hash_map_order(found)
    }


APPLIERS: Final[Mapping[type[Message], Applier]] = {
    ShareGroupMetadataKey: _for_group(_group),
    ShareGroupMemberMetadataKey: _for_group(_member),
    ShareGroupCurrentMemberAssignmentKey: _for_group(_current),
    ShareGroupTargetAssignmentMemberKey: _for_group(_target),
    ShareGroupTargetAssignmentMetadataKey: _for_group(_target_metadata),
    ShareGroupStatePartitionMetadataKey: _for_group(_partitions),
}
"""The effect of each record of a share group."""
