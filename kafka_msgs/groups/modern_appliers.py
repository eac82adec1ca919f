"""Appliers for records that consumer groups and share groups have in common.

Each function applies a record to its group: its arguments are the state, the changes, the group, and key and value of
the record. A value of None is a tombstone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import NumberTable, copy_capacity, hash_map_order
from kafka_msgs.groups.modern_group import (
    LEAVE_EPOCH,
    ModernGroup,
    group_of_record,
    remove_group,
    remove_target_metadata,
    set_target_metadata,
)
from kafka_msgs.groups.runtime.hard_state import Applier
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.groups.shard_state import ShardState

__all__ = ["apply_group", "apply_target", "apply_target_metadata", "for_group", "for_member", "in_order"]

G = TypeVar("G", bound=ModernGroup[Any, Any])
Effect: TypeAlias = Callable[[ShardState, Changes, G, Any, Any], None]


def for_group(cls: type[G], effect: Effect[G]) -> Applier:
    """Return the applier for the records of one kind of groups. A record with a value creates the group."""

    def apply(state: ShardState, changes: Changes, key: Any, value: Any) -> None:
        group = group_of_record(state, changes, cls, key.group_id, create=value is not None)
        if group is not None:
            effect(state, changes, group, key, value)

    return apply


def apply_group(state: ShardState, changes: Changes, group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    """Set the epoch of a group and the hash of its topics' metadata, or remove the group."""
    if value is None:
        remove_group(state, changes, group)
    else:
        changes.assign(group, "epoch", value.epoch)
        changes.assign(group, "metadata_hash", value.metadata_hash)


def for_member(new: Callable[[str], Any]) -> Effect[Any]:
    """Return the effect of a member's metadata record. ``new`` creates a member with an id."""

    def apply(state: ShardState, changes: Changes, group: Any, key: Any, value: Any) -> None:
        member = group.members.get(key.member_id)
        if value is not None:
            group.put_member(state, changes, evolve(member or new(key.member_id), metadata=value))
        elif member is not None:
            if member.epoch != LEAVE_EPOCH or key.member_id in group.targets:
                message = f"Unexpected tombstone of member {key.member_id}: it still has an assignment."
                raise GroupError(error=ErrorCode.UNKNOWN_SERVER_ERROR, message=message)
            group.remove_member(state, changes, member)

    return apply


def apply_target(state: ShardState, changes: Changes, group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    """Set or remove the target assignment of a member."""
    if value is None:
        changes.delete(group.targets, key.member_id)
    else:
        changes.set(group.targets, key.member_id, in_order(value.topic_partitions))


def apply_target_metadata(
    state: ShardState, changes: Changes, group: ModernGroup[Any, Any], key: Any, value: Any
) -> None:
    """Set or remove the epoch of the target assignment."""
    if value is None:
        remove_target_metadata(changes, group)
    else:
        set_target_metadata(changes, group, value.assignment_epoch, value.assignment_timestamp)


def in_order(topics: Iterable[Any]) -> Mapping[UUID, tuple[int, ...]]:
    """Return the partitions of a record by topic id, in the order of Kafka's maps and sets."""
    found: Mapping[UUID, tuple[int, ...]] = {each.topic_id: each.partitions for each in topics}
    return {
        topic: tuple(NumberTable(found[topic], capacity=copy_capacity(len(found[topic]))).walk())
        for topic in hash_map_order(found)
    }
