"""The records that consumer groups, share groups and streams groups have in common, and their appliers.

Each kind has a record for the group, for each member, for the target assignment of each member, for the epoch of the
target assignment, and for the current assignment of each member. The classes differ, but most of their fields are the
same. A request bases its decisions on the state before it, collects its records, and emits them at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, TypeVar, cast

from attrs import evolve, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.assignment_builder import assigned_partitions
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.member_timers import stop_member_timers
from kafka_msgs.groups.modern_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ModernGroup,
    ModernMember,
    fenced_epoch,
    unreleased_instance,
)
from kafka_msgs.groups.operation import OperationContext, ShardState
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.runtime.undo_log import Applier, Changes
from kafka_msgs.groups.topics_image import group_hash
from kafka_msgs.message import Message

__all__ = ["ModernRecords", "apply_group", "apply_target_metadata", "for_group"]

G = TypeVar("G", bound=ModernGroup[Any, Any])
M = TypeVar("M", bound=ModernMember)
Effect: TypeAlias = Callable[[ShardState, Changes, G, Any, Any], None]


_NO_EPOCH: Final = -1


def for_group(cls: type[G], effect: Effect[G]) -> Applier:
    """Return the applier for the records of one kind of groups.

    A record with a value creates the group; a tombstone needs no group. A group that only has offsets is replaced by a
    group of the record's kind. The applier raises ``GroupError`` for a group of another kind.
    """

    def apply(state: ShardState, changes: Changes, key: Any, value: Any) -> None:
        group = state.groups.get(key.group_id)
        if isinstance(group, cls):
            effect(state, changes, group, key, value)
        elif group is not None and not group.is_simple:
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {key.group_id} is not a {cls.kind} group")
        elif group is not None or value is not None:
            made = cls(key.group_id)
            entry: Group = made
            changes.set(state.groups, key.group_id, entry)
            effect(state, changes, made, key, value)

    return apply


def apply_group(state: ShardState, changes: Changes, group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    """Set the epoch of a group and the hash of its topics' metadata, or remove the group."""
    if value is None:
        _require(not group.members, group, "the group has members")
        _require(not group.targets, group, "the target assignment has members")
        _require(group.assignment_epoch == _NO_EPOCH, group, "the target assignment has an epoch")
        changes.delete(state.groups, group.group_id)
    else:
        changes.assign(group, "epoch", value.epoch)
        changes.assign(group, "metadata_hash", value.metadata_hash)


def apply_target_metadata(
    state: ShardState, changes: Changes, group: ModernGroup[Any, Any], key: Any, value: Any
) -> None:
    """Set or remove the epoch of the target assignment."""
    _require(value is not None or not group.targets, group, "the target assignment has members")
    changes.assign(group, "assignment_epoch", _NO_EPOCH if value is None else value.assignment_epoch)
    changes.assign(group, "assignment_timestamp", 0 if value is None else value.assignment_timestamp)


def _require(condition: bool, group: ModernGroup[Any, Any], reason: str) -> None:
    if not condition:
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Unexpected tombstone of group {group.group_id}: {reason}.")


def _apply_target(state: ShardState, changes: Changes, group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        changes.delete(group.targets, key.member_id)
    else:
        changes.set(group.targets, key.member_id, assigned_partitions(value.topic_partitions))


def _apply_member(state: ShardState, changes: Changes, group: ModernGroup[Any, Any], key: Any, value: Any) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member(state, changes, evolve(member or group.new_member(key.member_id), metadata=value))
    elif member is not None:
        is_free = member.epoch == LEAVE_EPOCH and key.member_id not in group.targets
        _require(is_free, group, f"member {key.member_id} has an assignment")
        group.remove_member(state, changes, member)


@frozen(kw_only=True)
class ModernRecords:
    """The records of one kind of groups: the classes of the keys, and the values of a target and of a member's state.

    ``no_target`` is an empty target. ``with_current`` returns a member with the assignment of a record. Methods that
    return records do not emit them.
    """

    group_key: type[Any]
    member_key: type[Any]
    target_key: type[Any]
    target_metadata_key: type[Any]
    current_key: type[Any]
    no_target: Any
    target_value: Callable[[Any], Message]
    current_value: Callable[[Any], Message]
    with_current: Callable[[Any, Any], Any]

    def member(self, group_id: str, member: Any) -> Record:
        """Return the record of a member's metadata."""
        return self.member_key(group_id=group_id, member_id=member.member_id), member.metadata

    def epoch(self, group_id: str, epoch: int, metadata_hash: int) -> Record:
        """Return the record of the epoch of a group and the hash of its topics' metadata."""
        value = self.group_key.value_class()(epoch=epoch, metadata_hash=metadata_hash)
        return self.group_key(group_id=group_id), value

    def next_epoch(
        self,
        op: OperationContext,
        group: ModernGroup[Any, Any],
        topics: Iterable[str],
        metric: str,
        written: list[Record],
        *,
        bump: bool,
    ) -> int:
        """Return the epoch of a group: a new one, with its record, if ``bump`` is set or its ``topics`` changed."""
        metadata_hash, epoch = group_hash(op.image, topics), group.epoch
        if bump or metadata_hash != group.metadata_hash:
            epoch += 1
            written.append(self.epoch(group.group_id, epoch, metadata_hash))
            op.count_metric(metric)
        group.refreshed(op.now, epoch)
        return epoch

    def target(self, group_id: str, member_id: str, target: Any) -> Record:
        """Return the record of a member's target assignment."""
        return self.target_key(group_id=group_id, member_id=member_id), self.target_value(target)

    def target_metadata(self, group_id: str, epoch: int, timestamp: int) -> Record:
        """Return the record of the epoch of the target assignment and the time at which it was computed, in ms."""
        value = self.target_metadata_key.value_class()(assignment_epoch=epoch, assignment_timestamp=timestamp)
        return self.target_metadata_key(group_id=group_id), value

    def current(self, group_id: str, member: Any) -> Record:
        """Return the record of a member's epoch and current assignment."""
        return self.current_key(group_id=group_id, member_id=member.member_id), self.current_value(member)

    def member_tombstones(self, group_id: str, member_id: str) -> Iterator[Record]:
        """Return the tombstones of a member."""
        for key in (self.current_key, self.target_key, self.member_key):
            yield key(group_id=group_id, member_id=member_id), None

    def replacing_member(self, group: ModernGroup[M, Any], old: Any, member_id: str, written: list[Record]) -> M:
        """Return the new member that takes over the membership and target of a static member.

        Its records are added to ``written``.
        """
        new: M = evolve(old, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        written += self.member_tombstones(group.group_id, old.member_id)
        written.append(self.member(group.group_id, new))
        written.append(self.target(group.group_id, member_id, group.targets.get(old.member_id, self.no_target)))
        written.append(self.current(group.group_id, new))
        return new

    def member_of_heartbeat(
        self,
        group: ModernGroup[M, Any],
        request: Any,
        member_id: str,
        written: list[Record],
        owns_only_assigned: Callable[[M], bool],
        *,
        takes_over: bool = False,
    ) -> M:
        """Return the member that sent a heartbeat, or a new member if it joins. Raises ``GroupError``.

        The previous epoch of a member is also valid if it ``owns_only_assigned`` partitions or tasks: then only the
        response with the new epoch was lost. A static member that joins replaces the member that left temporarily, or
        any member if the new or the old member uses the classic protocol, whose static members do not leave.
        ``takes_over`` is set if the new member does.
        """
        epoch, instance_id = request.member_epoch, request.instance_id
        if epoch != JOIN_EPOCH:
            member: Any = group.sender(member_id, instance_id)
            missed = member.epoch > epoch == member.previous_epoch
            if epoch != member.epoch and not (missed and owns_only_assigned(member)):
                raise fenced_epoch(group.kind, epoch, member.epoch)
            return cast(M, member)
        old: Any = group.static_member(instance_id)
        if old is None:
            return group.members.get(member_id) or cast(M, group.member_class(member_id=member_id))
        if old.classic is None and old.epoch != STATIC_LEAVE_EPOCH and not takes_over:
            raise unreleased_instance(member_id, instance_id, old.member_id)
        return self.replacing_member(group, old, member_id, written)

    def tombstones(self, group_id: str, members: Sequence[str], others: Iterable[Message] = ()) -> Iterator[Record]:
        """Return the tombstones of all records of a group: its members, the keys in ``others``, and the group.

        They have an order in which each of them is valid.
        """
        for key in (self.current_key, self.target_key):
            for member_id in members:
                yield key(group_id=group_id, member_id=member_id), None
        yield self.target_metadata_key(group_id=group_id), None
        for member_id in members:
            yield self.member_key(group_id=group_id, member_id=member_id), None
        for other in others:
            yield other, None
        yield self.group_key(group_id=group_id), None

    def remove_members(
        self,
        op: OperationContext,
        group: Any,
        members: Sequence[Any],
        others: Iterable[Record] = (),
        metadata: Callable[[int], Record] | None = None,
    ) -> None:
        """Emit the records of members that leave, and stop their timers.

        ``metadata`` returns the record of the group for its new epoch; by default it has the hash of the group's
        topics. ``others`` come before it.
        """
        group_id, epoch, is_last = group.group_id, group.epoch + 1, len(members) == len(group.members)
        for member in members:
            op.emit_all(self.member_tombstones(group_id, member.member_id))
        op.emit_all(others)
        if metadata is None:
            op.emit(*self.epoch(group_id, epoch, group_hash(op.image, group.topics)))
        else:
            op.emit(*metadata(epoch))
        if is_last:
            op.emit(*self.target_metadata(group_id, epoch, 0))
        for member in members:
            stop_member_timers(op, group_id, member.member_id)

    def appliers(self, cls: type[G], **effects: Effect[Any]) -> dict[type[Message], Applier]:
        """Return the appliers of the records of a class of groups. ``effects``, by key, replace the common ones."""
        common: dict[str, Effect[Any]] = {
            "group_key": apply_group,
            "member_key": _apply_member,
            "target_key": _apply_target,
            "target_metadata_key": apply_target_metadata,
            "current_key": self._apply_current,
        }
        return {getattr(self, key): for_group(cls, effect) for key, effect in (common | effects).items()}

    def _apply_current(
        self, state: ShardState, changes: Changes, group: ModernGroup[Any, Any], key: Any, value: Any
    ) -> None:
        member = group.members.get(key.member_id)
        if value is not None:
            updated = self.with_current(member or group.new_member(key.member_id), value)
            group.put_member(state, changes, updated)
        elif member is not None:
            left = evolve(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, **group.no_assignment)
            group.put_member(state, changes, left)
