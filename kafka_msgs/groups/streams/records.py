"""The records of a streams group: Kafka's ``StreamsCoordinatorRecordHelpers``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import evolve

from kafka_msgs.groups.modern_records import ModernRecords
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.streams.member import MemberState, StreamsGroupMember
from kafka_msgs.groups.streams.tasks import (
    NO_TARGET,
    TaskId,
    TasksTuple,
    TasksTupleWithEpochs,
    grouped,
    task_ids,
    task_set,
)
from kafka_msgs.messages import streams_group_current_member_assignment_value as current
from kafka_msgs.messages import streams_group_target_assignment_member_value as target
from kafka_msgs.messages.streams_group_current_member_assignment_key import StreamsGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.streams_group_current_member_assignment_value import StreamsGroupCurrentMemberAssignmentValue
from kafka_msgs.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kafka_msgs.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kafka_msgs.messages.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey
from kafka_msgs.messages.streams_group_target_assignment_member_value import StreamsGroupTargetAssignmentMemberValue
from kafka_msgs.messages.streams_group_target_assignment_metadata_key import StreamsGroupTargetAssignmentMetadataKey
from kafka_msgs.messages.streams_group_topology_key import StreamsGroupTopologyKey
from kafka_msgs.messages.streams_group_topology_value import StreamsGroupTopologyValue

__all__ = ["RECORDS", "group_tombstones", "topology_record"]


def topology_record(group_id: str, value: StreamsGroupTopologyValue) -> Record:
    """Return the record of the group's topology."""
    return StreamsGroupTopologyKey(group_id=group_id), value


def group_tombstones(group_id: str, member_ids: Sequence[str]) -> Iterator[Record]:
    """Return the tombstones of a group, in an order in which each can be applied."""
    yield from RECORDS.tombstones(group_id, member_ids)
    yield StreamsGroupTopologyKey(group_id=group_id), None


def _target_value(tasks: TasksTuple) -> StreamsGroupTargetAssignmentMemberValue:
    return StreamsGroupTargetAssignmentMemberValue(
        active_tasks=task_ids(target.TaskIds, tasks.active),
        standby_tasks=task_ids(target.TaskIds, tasks.standby),
        warmup_tasks=task_ids(target.TaskIds, tasks.warmup),
    )


def _current_value(member: StreamsGroupMember) -> StreamsGroupCurrentMemberAssignmentValue:
    assigned, revoking = member.assigned, member.revoking
    return StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        active_tasks=_active_ids(assigned),
        standby_tasks=task_ids(current.TaskIds, assigned.standby),
        warmup_tasks=task_ids(current.TaskIds, assigned.warmup),
        active_tasks_pending_revocation=_active_ids(revoking),
        standby_tasks_pending_revocation=task_ids(current.TaskIds, revoking.standby),
        warmup_tasks_pending_revocation=task_ids(current.TaskIds, revoking.warmup),
    )


def _active_ids(tasks: TasksTupleWithEpochs) -> tuple[current.TaskIds, ...]:
    return tuple(
        current.TaskIds(
            subtopology_id=key,
            partitions=partitions,
            assignment_epochs=tuple(tasks.active[key, partition] for partition in partitions),
        )
        for key, partitions in grouped(tasks.active)
    )


def _with_current(member: StreamsGroupMember, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsGroupMember:
    return evolve(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState.of(value.state),
        assigned=TasksTupleWithEpochs(
            _with_epochs(value.active_tasks, value.member_epoch),
            task_set(value.standby_tasks),
            task_set(value.warmup_tasks),
        ),
        revoking=TasksTupleWithEpochs(
            _with_epochs(value.active_tasks_pending_revocation, value.member_epoch),
            task_set(value.standby_tasks_pending_revocation),
            task_set(value.warmup_tasks_pending_revocation),
        ),
    )


def _with_epochs(groups: Iterable[current.TaskIds], member_epoch: int) -> dict[TaskId, int]:
    """Return active tasks with the epochs of their assignment. If a record lacks them, the member epoch is used."""
    tasks: dict[TaskId, int] = {}
    for group in groups:
        epochs = group.assignment_epochs
        if epochs is None or len(epochs) != len(group.partitions):
            epochs = (member_epoch,) * len(group.partitions)
        for partition, epoch in zip(group.partitions, epochs, strict=True):
            tasks[group.subtopology_id, partition] = epoch
    return tasks


RECORDS: Final = ModernRecords(
    group_key=StreamsGroupMetadataKey,
    member_key=StreamsGroupMemberMetadataKey,
    target_key=StreamsGroupTargetAssignmentMemberKey,
    target_metadata_key=StreamsGroupTargetAssignmentMetadataKey,
    current_key=StreamsGroupCurrentMemberAssignmentKey,
    no_target=NO_TARGET,
    target_value=_target_value,
    current_value=_current_value,
    with_current=_with_current,
)
