"""A share group (KIP-932), its members and its records: ``ShareGroup`` of Kafka. Only the appliers change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NoReturn, TypeAlias
from uuid import UUID

from attrs import field, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.group import CommitCheck, Committer, ExpiryCondition
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.modern_group import ModernGroup
from kafka_msgs.groups.modern_records import ModernRecords
from kafka_msgs.groups.operation import OperationContext, ShardState, subscribe
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.internal_topics.replay import GroupKind
from kafka_msgs.messages.share_group_current_member_assignment_key import ShareGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.share_group_current_member_assignment_value import (
    ShareGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kafka_msgs.messages.share_group_member_metadata_key import ShareGroupMemberMetadataKey
from kafka_msgs.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue
from kafka_msgs.messages.share_group_metadata_key import ShareGroupMetadataKey
from kafka_msgs.messages.share_group_metadata_value import ShareGroupMetadataValue
from kafka_msgs.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kafka_msgs.messages.share_group_state_partition_metadata_value import ShareGroupStatePartitionMetadataValue
from kafka_msgs.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kafka_msgs.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kafka_msgs.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey
from kafka_msgs.messages.share_group_target_assignment_metadata_value import (
    ShareGroupTargetAssignmentMetadataValue,
)

__all__ = [
    "Partitions",
    "ShareGroup",
    "ShareMember",
    "emit_current_assignment",
    "emit_epoch",
    "emit_member",
    "emit_removal",
    "emit_target",
    "emit_target_metadata",
    "emit_tombstones",
]

Partitions: TypeAlias = Mapping[UUID, Sequence[int]]
"""Partitions by topic id, in the order of Kafka's maps."""

_NEW_METADATA: Final = ShareGroupMemberMetadataValue(rack_id=None)
_STABLE: Final = 0


@frozen(kw_only=True)
class ShareMember:
    """A member. ``metadata`` is the value of its record. ``assigned`` are the partitions that it reads."""

    member_id: str
    metadata: ShareGroupMemberMetadataValue = _NEW_METADATA
    epoch: int = 0
    previous_epoch: int = -1
    state: int = _STABLE
    assigned: Partitions = field(factory=dict)

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target of that epoch."""
        return self.state == _STABLE and self.epoch == epoch


class ShareGroup(ModernGroup[ShareMember, Partitions]):
    """A share group.

    ``topics`` counts the subscribers of each topic. ``heterogeneous`` is set if members subscribe to different topics,
    as of the latest change of a member. ``partitions`` are the share partitions that have state or get it, and
    ``written_ms`` is the time when that record was applied, in ms.
    """

    __slots__ = ("heterogeneous", "partitions", "topics", "written_ms")

    kind: ClassVar[GroupKind] = "share"
    protocol_type: ClassVar[str] = "share"

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.topics: TimelineHashMap[str, int] = TimelineHashMap()
        self.heterogeneous = False
        self.partitions: ShareGroupStatePartitionMetadataValue | None = None
        self.written_ms = 0

    def state_name(self) -> str:
        """The name of the state: a share group with members is always stable."""
        return "Stable" if self.members else "Empty"

    def subscribes_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic."""
        return topic in self.topics

    def is_heterogeneous(self) -> bool:
        """Return whether members subscribe to different topics."""
        return any(count != len(self.members) for count in self.topics.values())

    def put_member(self, state: ShardState, changes: Changes, member: ShareMember) -> None:
        """Add or replace a member, and update the derived state. For appliers."""
        old = self.members.get(member.member_id)
        changes.set(self.members, member.member_id, member)
        self._recount(state, changes, old, member)

    def remove_member(self, state: ShardState, changes: Changes, member: ShareMember) -> None:
        """Remove a member, and update the derived state. For appliers."""
        changes.delete(self.members, member.member_id)
        self._recount(state, changes, member, None)

    def _recount(self, state: ShardState, changes: Changes, old: ShareMember | None, new: ShareMember | None) -> None:
        before = tuple(self.topics)
        for member, by in ((old, -1), (new, 1)):
            for topic in dict.fromkeys(member.metadata.subscribed_topic_names) if member is not None else ():
                count = self.topics.get(topic, 0) + by
                if count:
                    changes.set(self.topics, topic, count)
                else:
                    changes.delete(self.topics, topic)
        subscribe(state, changes, self.group_id, before, self.topics)
        changes.assign(self, "heterogeneous", self.is_heterogeneous())

    # The interface of each group to the coordinator

    def validate_offset_commit(self, op: GroupOperation, committer: Committer) -> CommitCheck | None:
        """Refuse: a share group has no committed offsets."""
        self._refuse_offsets()

    def validate_offset_fetch(self, op: GroupOperation, *, member_id: str | None, epoch: int) -> None:
        """Refuse: a share group has no committed offsets."""
        self._refuse_offsets()

    def validate_offset_delete(self, op: GroupOperation) -> None:
        """Refuse: a share group has no committed offsets."""
        self._refuse_offsets()

    def _refuse_offsets(self) -> NoReturn:
        raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a consumer group.")

    def emit_tombstones(self, op: GroupOperation) -> None:
        """Emit the tombstones of all records of the group."""
        emit_tombstones(op, self.group_id, iter_kafka_order(self.members))

    def offset_expiration(self) -> ExpiryCondition | None:
        """Return None: a share group has no committed offsets that could expire."""
        return None

    def expires(self, op: GroupOperation) -> bool:
        """Return False: an empty share group stays until it is deleted."""
        return False


_RECORDS: Final = ModernRecords(
    group_key=ShareGroupMetadataKey,
    group_value=ShareGroupMetadataValue,
    member_key=ShareGroupMemberMetadataKey,
    target_key=ShareGroupTargetAssignmentMemberKey,
    target_value=ShareGroupTargetAssignmentMemberValue,
    target_topic=TopicPartition,
    target_metadata_key=ShareGroupTargetAssignmentMetadataKey,
    target_metadata_value=ShareGroupTargetAssignmentMetadataValue,
    current_key=ShareGroupCurrentMemberAssignmentKey,
)

emit_member = _RECORDS.emit_member
emit_epoch = _RECORDS.emit_epoch
emit_target = _RECORDS.emit_target
emit_target_metadata = _RECORDS.emit_target_metadata
emit_removal = _RECORDS.emit_removal


def emit_current_assignment(op: OperationContext, group_id: str, member: ShareMember) -> None:
    """Record the current assignment of a member."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=tuple(
            TopicPartitions(topic_id=topic, partitions=tuple(each)) for topic, each in member.assigned.items()
        ),
    )
    op.emit(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def emit_tombstones(op: GroupOperation, group_id: str, members: Sequence[str]) -> None:
    """Emit the tombstones of all records of a group with these members."""
    _RECORDS.emit_tombstones(op, group_id, members, [ShareGroupStatePartitionMetadataKey(group_id=group_id)])
