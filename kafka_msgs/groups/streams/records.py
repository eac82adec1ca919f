"""The records of a streams group: Kafka's ``StreamsCoordinatorRecordHelpers``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.tasks import TaskId, TasksTuple, TasksTupleWithEpochs, grouped
from kafka_msgs.message import CoordinatorValue, Message
from kafka_msgs.messages import streams_group_current_member_assignment_value as current
from kafka_msgs.messages import streams_group_target_assignment_member_value as target
from kafka_msgs.messages.streams_group_current_member_assignment_key import StreamsGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.streams_group_current_member_assignment_value import StreamsGroupCurrentMemberAssignmentValue
from kafka_msgs.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kafka_msgs.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kafka_msgs.messages.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey
from kafka_msgs.messages.streams_group_target_assignment_member_value import StreamsGroupTargetAssignmentMemberValue
from kafka_msgs.messages.streams_group_target_assignment_metadata_key import StreamsGroupTargetAssignmentMetadataKey
from kafka_msgs.messages.streams_group_target_assignment_metadata_value import StreamsGroupTargetAssignmentMetadataValue
from kafka_msgs.messages.streams_group_topology_key import StreamsGroupTopologyKey
from kafka_msgs.messages.streams_group_topology_value import StreamsGroupTopologyValue

__all__ = [
    "Record",
    "assignment_record",
    "current_record",
    "group_tombstones",
    "member_record",
    "member_tombstones",
    "target_record",
    "topology_record",
]

Record: TypeAlias = tuple[Message, CoordinatorValue | None]
"""A key and its value, or None for a tombstone."""


def topology_record(group_id: str, value: StreamsGroupTopologyValue) -> Record:
    """Return the record of the group's topology."""
    return StreamsGroupTopologyKey(group_id=group_id), value


def member_record(group_id: str, member: StreamsGroupMember) -> Record:
    """Return the record of a member's reported metadata."""
    return StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), member.metadata


def assignment_record(group_id: str, epoch: int, timestamp: int) -> Record:
    """Return the record of the epoch of the target assignment, and of the time when it was computed."""
    value = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp)
    return StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value


def target_record(group_id: str, member_id: str, tasks: TasksTuple) -> Record:
    """Return the record of a member's target."""
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_ids(tasks.active),
        standby_tasks=_target_ids(tasks.standby),
        warmup_tasks=_target_ids(tasks.warmup),
    )
    return StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value


def current_record(group_id: str, member: StreamsGroupMember) -> Record:
    """Return the record of a member's epoch and current assignment."""
    assigned, revoking = member.assigned, member.revoking
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_active_ids(assigned),
        standby_tasks=_current_ids(assigned.standby),
        warmup_tasks=_current_ids(assigned.warmup),
        active_tasks_pending_revocation=_active_ids(revoking),
        standby_tasks_pending_revocation=_current_ids(revoking.standby),
        warmup_tasks_pending_revocation=_current_ids(revoking.warmup),
    )
    return StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value


def _target_ids(tasks: Iterable[TaskId]) -> tuple[target.TaskIds, ...]:
    return tuple(target.TaskIds(subtopology_id=key, partitions=partitions) for key, partitions in grouped(tasks))


def _current_ids(tasks: Iterable[TaskId]) -> tuple[current.TaskIds, ...]:
    return tuple(current.TaskIds(subtopology_id=key, partitions=partitions) for key, partitions in grouped(tasks))


def _active_ids(tasks: TasksTupleWithEpochs) -> tuple[current.TaskIds, ...]:
    return tuple(
        current.TaskIds(
            subtopology_id=key,
            partitions=partitions,
            assignment_epochs=tuple(tasks.active[key, partition] for partition in partitions),
        )
        for key, partitions in grouped(tasks.active)
    )


_MEMBER_KEYS: Final = (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupMemberMetadataKey,
)


def member_tombstones(group_id: str, member_id: str) -> tuple[Record, ...]:
    """Return the tombstones of a member: its current assignment, its target, and its metadata."""
    return tuple((key(group_id=group_id, member_id=member_id), None) for key in _MEMBER_KEYS)


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> Iterator[Record]:
    """Return the tombstones of a group, in an order in which each can be applied."""
    members = list(member_ids)
    for key in _MEMBER_KEYS:
        if key is StreamsGroupMemberMetadataKey:
            yield StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None
        for member_id in members:
            yield key(group_id=group_id, member_id=member_id), None
    yield StreamsGroupMetadataKey(group_id=group_id), None
    yield StreamsGroupTopologyKey(group_id=group_id), None
