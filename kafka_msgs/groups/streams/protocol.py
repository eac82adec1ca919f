"""The streams group protocol for the coordinator: its apis, appliers and hooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import evolve

from kafka_msgs.groups.group_protocol import GroupProtocol, SingleGroupApi, TopicChange
from kafka_msgs.groups.modern_group import (
    LEAVE_EPOCH,
    remove_group,
)
from kafka_msgs.groups.modern_records import apply_group, apply_target_metadata, for_group
from kafka_msgs.groups.operation import OperationContext, ShardState, subscribe
from kafka_msgs.groups.runtime.undo_log import Applier, Changes
from kafka_msgs.groups.streams.describe import DESCRIBE
from kafka_msgs.groups.streams.description_cleanup import clean_up
from kafka_msgs.groups.streams.extension import streams_extension
from kafka_msgs.groups.streams.fencing import loaded
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.heartbeat import heartbeat
from kafka_msgs.groups.streams.heartbeat_response import creation_failed
from kafka_msgs.groups.streams.member import MemberState, StreamsGroupMember
from kafka_msgs.groups.streams.tasks import NO_TASKS, TaskId, TasksTuple, TasksTupleWithEpochs, task_set
from kafka_msgs.groups.streams.topology import StreamsTopology
from kafka_msgs.groups.streams.topology_descriptions import UPDATE
from kafka_msgs.groups.streams.validation import check
from kafka_msgs.message import Message
from kafka_msgs.messages import streams_group_current_member_assignment_value as current
from kafka_msgs.messages.streams_group_current_member_assignment_key import StreamsGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.streams_group_current_member_assignment_value import StreamsGroupCurrentMemberAssignmentValue
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_member_metadata_key import StreamsGroupMemberMetadataKey
from kafka_msgs.messages.streams_group_metadata_key import StreamsGroupMetadataKey
from kafka_msgs.messages.streams_group_target_assignment_member_key import StreamsGroupTargetAssignmentMemberKey
from kafka_msgs.messages.streams_group_target_assignment_metadata_key import StreamsGroupTargetAssignmentMetadataKey
from kafka_msgs.messages.streams_group_topology_key import StreamsGroupTopologyKey

__all__ = ["APPLIERS", "PROTOCOL"]


def _metadata(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        if group.topology is not None:
            subscribe(state, changes, group.group_id, group.topology.required_topics, ())
        remove_group(state, changes, group)
        return
    apply_group(state, changes, group, key, value)
    changes.assign(group, "validated_epoch", value.validated_topology_epoch)
    changes.assign(group, "stored_description", value.stored_description_topology_epoch)
    changes.assign(group, "failed_description", value.failed_description_topology_epoch)
    changes.assign(group, "configs", {config.key: config.value for config in value.last_assignment_configs or ()})
    _forget_shutdown(group)


def _topology(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    topology = None if value is None else StreamsTopology(value)
    before = () if group.topology is None else group.topology.required_topics
    after = () if topology is None else topology.required_topics
    subscribe(state, changes, group.group_id, before, after)
    changes.assign(group, "topology", topology)
    _forget_shutdown(group)


def _assignment(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    apply_target_metadata(state, changes, group, key, value)
    _forget_shutdown(group)


def _target(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        changes.delete(group.targets, key.member_id)
    else:
        tasks = TasksTuple(task_set(value.active_tasks), task_set(value.standby_tasks), task_set(value.warmup_tasks))
        changes.set(group.targets, key.member_id, tasks)
    changes.assign(group, "targets_version", object())


def _member(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    if value is None:
        _remove(changes, group, key.member_id)
    else:
        _update(changes, group, _member_or_new(group, key.member_id).with_metadata(value))


def _current(state: ShardState, changes: Changes, group: StreamsGroup, key: Any, value: Any) -> None:
    if value is not None:
        _update(changes, group, with_current(_member_or_new(group, key.member_id), value))
    elif (member := group.members.get(key.member_id)) is not None:
        gone = evolve(member, epoch=LEAVE_EPOCH, previous_epoch=LEAVE_EPOCH, assigned=NO_TASKS, revoking=NO_TASKS)
        _update(changes, group, gone)


def _member_or_new(group: StreamsGroup, member_id: str) -> StreamsGroupMember:
    """Return the member, or a new one if its metadata record has not been applied yet."""
    member = group.members.get(member_id)
    return StreamsGroupMember(member_id=member_id, epoch=LEAVE_EPOCH) if member is None else member


def with_current(member: StreamsGroupMember, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsGroupMember:
    """Return the member with the current assignment of a record."""
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


def _update(changes: Changes, group: StreamsGroup, member: StreamsGroupMember) -> None:
    old = group.members.get(member.member_id)
    changes.set(group.members, member.member_id, member)
    if old is not None:
        _release(changes, group, old)
        _count(changes, group, old, -1)
        if old.metadata.instance_id is not None:
            changes.delete(group.static_members, old.metadata.instance_id)
    for tasks in (member.assigned, member.revoking):
        _hold(changes, group, tasks, member.metadata.process_id)
    _count(changes, group, member, 1)
    if member.metadata.instance_id is not None:
        changes.set(group.static_members, member.metadata.instance_id, member.member_id)
    for is_one, table in (
        (member.metadata.user_endpoint is not None, group.endpoint_members),
        (member.classic is not None, group.classic_members),
    ):
        if is_one:
            changes.set(table, member.member_id, None)
        else:
            changes.delete(table, member.member_id)
    group.soft.endpoints.pop(member.member_id, None)


def _remove(changes: Changes, group: StreamsGroup, member_id: str) -> None:
    member = group.members.get(member_id)
    if member is None:
        return
    changes.delete(group.members, member_id)
    _release(changes, group, member)
    _count(changes, group, member, -1)
    if member.metadata.instance_id is not None:
        changes.delete(group.static_members, member.metadata.instance_id)
    changes.delete(group.endpoint_members, member_id)
    changes.delete(group.classic_members, member_id)
    group.soft.forget_member(member_id)
    _forget_shutdown(group)


def _forget_shutdown(group: StreamsGroup) -> None:
    """End a request to shut down with the last member. Kafka checks this with each record of the group."""
    if not group.members:
        group.soft.shutdown_member = None


def _count(changes: Changes, group: StreamsGroup, member: StreamsGroupMember, step: int) -> None:
    if member.state == MemberState.STABLE:
        count = group.settled.get(member.epoch, 0) + step
        if count:
            changes.set(group.settled, member.epoch, count)
        else:
            changes.delete(group.settled, member.epoch)


def _hold(changes: Changes, group: StreamsGroup, tasks: TasksTupleWithEpochs, process_id: str) -> None:
    for task in tasks.active:
        changes.set(group.active_processes, task, process_id)
    for held, table in ((tasks.standby, group.standby_processes), (tasks.warmup, group.warmup_processes)):
        for task in held:
            changes.set(table, task, table.get(task, frozenset()) | {process_id})


def _release(changes: Changes, group: StreamsGroup, member: StreamsGroupMember) -> None:
    process_id = member.metadata.process_id
    for tasks in (member.assigned, member.revoking):
        for task in tasks.active:
            if group.active_processes.get(task) == process_id:
                changes.delete(group.active_processes, task)
        for held, table in ((tasks.standby, group.standby_processes), (tasks.warmup, group.warmup_processes)):
            for task in held:
                left = table.get(task, frozenset()) - {process_id}
                if left:
                    changes.set(table, task, left)
                else:
                    changes.delete(table, task)


APPLIERS: Final[Mapping[type[Message], Applier]] = {
    key: for_group(StreamsGroup, effect)
    for key, effect in (
        (StreamsGroupMetadataKey, _metadata),
        (StreamsGroupMemberMetadataKey, _member),
        (StreamsGroupTargetAssignmentMetadataKey, _assignment),
        (StreamsGroupTargetAssignmentMemberKey, _target),
        (StreamsGroupCurrentMemberAssignmentKey, _current),
        (StreamsGroupTopologyKey, _topology),
    )
}


def _refresh_patterns(op: OperationContext, change: TopicChange) -> None:
    """Resolve the topics again for all groups whose topologies have patterns."""
    if (extension := streams_extension(op)) is not None:
        for group in op.state.groups.values():
            if isinstance(group, StreamsGroup) and group.topology and extension.has_patterns(group.topology):
                group.request_refresh()


PROTOCOL: Final = GroupProtocol(
    apis=(
        SingleGroupApi(request=StreamsGroupHeartbeatRequest, handle=heartbeat, check=check),
        DESCRIBE,
        UPDATE,
    ),
    appliers=APPLIERS,
    on_loaded={"streams": loaded},
    on_image_changed=(_refresh_patterns,),
    on_topics_changed={"streams": lambda op, group: group.request_refresh()},
    on_topic_creation_failed=creation_failed,
    cleanup=clean_up,
)
