"""The records that consumer groups and share groups have in common, and methods that emit them.

Each kind has a record for the group, for each member, for the target assignment of each member, for the epoch of the
target assignment, and for the current assignment of each member. The classes differ, but their fields are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import UUID

from attrs import evolve, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import NumberTable, copy_capacity, hash_map_order
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.modern_group import (
    LEAVE_EPOCH,
    ModernGroup,
    group_of_record,
    remove_group,
    remove_target_metadata,
    set_target_metadata,
)
from kafka_msgs.groups.operation import ShardState
from kafka_msgs.groups.runtime.undo_log import Applier, Changes
from kafka_msgs.message import Message

__all__ = [
    "ModernRecords",
    "apply_group",
    "apply_target",
    "apply_target_metadata",
    "for_group",
    "for_member",
    "in_order",
]

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
                raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
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


class _Reporting(Protocol):
    """A member with its metadata."""

    @property
    def member_id(self) -> str: ...
    @property
    def metadata(self) -> Message: ...


@frozen(kw_only=True)
class ModernRecords:
    """The record classes of one kind of groups: keys, values, and the element of a target assignment.

    Each method emits records of one group.
    """

    group_key: type[Any]
    group_value: type[Any]
    member_key: type[Any]
    target_key: type[Any]
    target_value: type[Any]
    target_topic: type[Any]
    target_metadata_key: type[Any]
    target_metadata_value: type[Any]
    current_key: type[Any]

    def emit_member(self, op: GroupOperation, group_id: str, member: _Reporting) -> None:
        """Record the metadata of a member."""
        op.emit(self.member_key(group_id=group_id, member_id=member.member_id), member.metadata)

    def emit_epoch(self, op: GroupOperation, group_id: str, epoch: int, metadata_hash: int) -> None:
        """Record the epoch of a group and the hash of its topics' metadata."""
        op.emit(self.group_key(group_id=group_id), self.group_value(epoch=epoch, metadata_hash=metadata_hash))

    def emit_target(
        self, op: GroupOperation, group_id: str, member_id: str, target: Mapping[UUID, Sequence[int]]
    ) -> None:
        """Record the target assignment of a member."""
        topics = tuple(self.target_topic(topic_id=topic, partitions=tuple(each)) for topic, each in target.items())
        key = self.target_key(group_id=group_id, member_id=member_id)
        op.emit(key, self.target_value(topic_partitions=topics))

    def emit_target_metadata(self, op: GroupOperation, group_id: str, epoch: int, timestamp: int) -> None:
        """Record the epoch of the target assignment and the time at which it was computed, in ms."""
        value = self.target_metadata_value(assignment_epoch=epoch, assignment_timestamp=timestamp)
        op.emit(self.target_metadata_key(group_id=group_id), value)

    def emit_removal(self, op: GroupOperation, group_id: str, member_id: str) -> None:
        """Emit the tombstones of a member."""
        for key in (self.current_key, self.target_key, self.member_key):
            op.emit(key(group_id=group_id, member_id=member_id), None)

    def emit_tombstones(
        self, op: GroupOperation, group_id: str, members: Sequence[str], others: Iterable[Message]
    ) -> None:
        """Emit the tombstones of all records of a group: its members, the keys in ``others``, and the group.

        They have an order in which each of them is valid.
        """
        for key in (self.current_key, self.target_key):
            for member_id in members:
                op.emit(key(group_id=group_id, member_id=member_id), None)
        op.emit(self.target_metadata_key(group_id=group_id), None)
        for member_id in members:
            op.emit(self.member_key(group_id=group_id, member_id=member_id), None)
        for other in others:
            op.emit(other, None)
        op.emit(self.group_key(group_id=group_id), None)
