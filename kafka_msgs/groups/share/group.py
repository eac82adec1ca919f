"""A share group (KIP-932), its members and its records: ``ShareGroup`` of Kafka. Only the appliers change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, NoReturn

from attrs import evolve, field, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.assignment_builder import assigned_partitions
from kafka_msgs.groups.assignors.spec import Partitions
from kafka_msgs.groups.group import CommitCheck, Committer, ExpiryCondition
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.modern_group import ModernGroup
from kafka_msgs.groups.modern_records import ModernRecords
from kafka_msgs.groups.operation import ShardState, subscribe
from kafka_msgs.groups.partition_assignment import topic_partitions
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
from kafka_msgs.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kafka_msgs.messages.share_group_state_partition_metadata_value import ShareGroupStatePartitionMetadataValue
from kafka_msgs.messages.share_group_target_assignment_member_key import ShareGroupTargetAssignmentMemberKey
from kafka_msgs.messages.share_group_target_assignment_member_value import (
    ShareGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kafka_msgs.messages.share_group_target_assignment_metadata_key import ShareGroupTargetAssignmentMetadataKey

__all__ = ["RECORDS", "ShareGroup", "ShareMember", "is_heterogeneous", "topics_after"]

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
    instance_id: ClassVar[str | None] = None
    is_revoking: ClassVar[bool] = False

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target of that epoch."""
        return self.state == _STABLE and self.epoch == epoch


def topics_after(topics: Mapping[str, int], old: ShareMember | None, new: ShareMember | None) -> dict[str, int]:
    """Return the number of subscribers of each topic after a change of a member."""
    counts = dict(topics)
    for member, by in ((old, -1), (new, 1)):
        for topic in dict.fromkeys(member.metadata.subscribed_topic_names) if member is not None else ():
            counts[topic] = counts.get(topic, 0) + by
    return {topic: count for topic, count in counts.items() if count}


def is_heterogeneous(topics: Mapping[str, int], members: int) -> bool:
    """Return whether members subscribe to different topics."""
    return any(count != members for count in topics.values())


class ShareGroup(ModernGroup[ShareMember, Partitions]):
    """A share group.

    ``topics`` counts the subscribers of each topic. ``heterogeneous`` is set if members subscribe to different topics,
    as of the latest change of a member. ``partitions`` are the share partitions that have state or get it, and
    ``written_ms`` is the time when that record was applied, in ms.
    """

    __slots__ = ("heterogeneous", "partitions", "topics", "written_ms")

    kind: ClassVar[GroupKind] = "share"
    protocol_type: ClassVar[str] = "share"
    member_class: ClassVar[type[Any]] = ShareMember
    no_assignment: ClassVar[Mapping[str, Any]] = {"assigned": {}}

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

    def recount(self, state: ShardState, changes: Changes, old: ShareMember | None, new: ShareMember | None) -> None:
        """Update the number of subscribers of each topic."""
        before, after = tuple(self.topics), topics_after(self.topics, old, new)
        for topic in dict.fromkeys((*before, *after)):
            if topic not in after:
                changes.delete(self.topics, topic)
            elif after[topic] != self.topics.get(topic):
                changes.set(self.topics, topic, after[topic])
        subscribe(state, changes, self.group_id, before, self.topics)
        changes.assign(self, "heterogeneous", is_heterogeneous(self.topics, len(self.members)))

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
        others = [ShareGroupStatePartitionMetadataKey(group_id=self.group_id)]
        op.emit_all(RECORDS.tombstones(self.group_id, iter_kafka_order(self.members), others))

    def offset_expiration(self) -> ExpiryCondition | None:
        """Return None: a share group has no committed offsets that could expire."""
        return None

    def expires(self, op: GroupOperation) -> bool:
        """Return False: an empty share group stays until it is deleted."""
        return False


def _current_value(member: ShareMember) -> ShareGroupCurrentMemberAssignmentValue:
    return ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=topic_partitions(TopicPartitions, member.assigned),
    )


def _with_current(member: ShareMember, value: ShareGroupCurrentMemberAssignmentValue) -> ShareMember:
    return evolve(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=value.state,
        assigned=assigned_partitions(value.assigned_partitions),
    )


RECORDS: Final = ModernRecords(
    group_key=ShareGroupMetadataKey,
    member_key=ShareGroupMemberMetadataKey,
    target_key=ShareGroupTargetAssignmentMemberKey,
    target_metadata_key=ShareGroupTargetAssignmentMetadataKey,
    current_key=ShareGroupCurrentMemberAssignmentKey,
    no_target={},
    target_value=lambda target: ShareGroupTargetAssignmentMemberValue(
        topic_partitions=topic_partitions(TopicPartition, target)
    ),
    current_value=_current_value,
    with_current=_with_current,
)
