"""The records that consumer groups and share groups have in common, and methods that emit them.

Each kind has a record for the group, for each member, for the target assignment of each member, for the epoch of the
target assignment, and for the current assignment of each member. The classes differ, but their fields are the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from attrs import frozen

from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.message import Message

__all__ = ["ModernRecords"]


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
