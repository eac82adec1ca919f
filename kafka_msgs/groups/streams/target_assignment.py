"""The target assignment of a streams group: when it is computed, its inputs, and its records.

Kafka's ``maybeUpdateStreamsTargetAssignment`` and ``TargetAssignmentBuilder``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from attrs import frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import AssignorError, GroupError
from kafka_msgs.groups.assignors import TASK_ASSIGNORS, spec
from kafka_msgs.groups.modern_group import can_compute_assignment, current_target, members_after
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.streams.configured_topology import ConfiguredTopology, StatusCode, TopologyProblem
from kafka_msgs.groups.streams.group import StreamsGroup, initial_rebalance_key
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.records import RECORDS
from kafka_msgs.groups.streams.soft_state import by_process
from kafka_msgs.groups.streams.tasks import NO_TARGET, TaskId, TasksTuple
from kafka_msgs.groups.streams.topology import keep_tasks_of_old_topology

__all__ = [
    "TAGS",
    "TargetAssignment",
    "assignment_configs",
    "assignor_name",
    "next_target",
    "schedule_initial_rebalance",
]

STANDBY_REPLICAS: Final = "num.standby.replicas"
TAGS: Final = "rack.aware.assignment.tags"

_STICKY: Final = "sticky"
_HIGHLY_AVAILABLE: Final = "highly_available"

_Sums: TypeAlias = Mapping[str, Mapping[int, int]]
"""Offset sums by subtopology and partition."""

_INITIAL_DELAY: Final = TopologyProblem(
    StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured initial rebalance delay."
)
_INTERVAL: Final = TopologyProblem(
    StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval."
)


@frozen
class TargetAssignment:
    """The target assignment of an epoch, by member. ``delay`` is the reason why the group epoch has no target yet."""

    epoch: int
    tasks: Mapping[str, TasksTuple]
    written: tuple[Record, ...] = ()
    delay: TopologyProblem | None = None


def assignment_configs(op: OperationContext, group: StreamsGroup) -> Mapping[str, str]:
    """Return the configs of a group that affect an assignment, in the form of its record."""
    config = op.group_config(group.group_id)
    configs = {STANDBY_REPLICAS: str(config.streams_num_standby_replicas)}
    if config.streams_rack_aware_assignment_tags:
        configs[TAGS] = ",".join(config.streams_rack_aware_assignment_tags)
    return configs


def assignor_name(op: OperationContext, group_id: str, *, stateful: bool) -> str:
    """Return the assignor name of a group, whose topology is ``stateful`` or not.

    A name that the coordinator does not support counts as none.
    """
    names = op.config.group_streams_assignors
    name = op.group_config(group_id).streams_assignor_name
    default = names[0]
    if op.profile.streams.chooses_assignor:
        names, default = tuple(TASK_ASSIGNORS), _HIGHLY_AVAILABLE if stateful else _STICKY
    return name if name is not None and name in names else default


def next_target(
    op: OperationContext,
    group: StreamsGroup,
    epoch: int,
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
    *,
    member: StreamsGroupMember | None = None,
    replaced: str | None = None,
    refine_only: bool = False,
) -> TargetAssignment:
    """Return the target assignment of the group epoch, or the current one while it must stay.

    ``member`` is the updated member that sent the heartbeat, and ``replaced`` the id of the static member that it
    replaces. With ``refine_only`` the target stays and gets the new epoch.
    """
    if op.timers.is_scheduled(initial_rebalance_key(group.group_id)):
        return TargetAssignment(group.assignment_epoch, {}, delay=_INITIAL_DELAY)
    targets = group.targets if member is None else current_target(group, member.member_id, replaced)
    if group.assignment_epoch >= epoch:
        return TargetAssignment(group.assignment_epoch, targets)
    if refine_only and group.assignment_epoch >= group.epoch:
        record = RECORDS.target_metadata(group.group_id, epoch, group.assignment_timestamp)
        return TargetAssignment(epoch, targets, (record,))
    if not op.profile.streams.assigns_without_delay and not can_compute_assignment(
        group, op.group_config(group.group_id).streams_assignment_interval_ms, op.now
    ):
        return TargetAssignment(group.assignment_epoch, targets, delay=_INTERVAL)
    members = members_after(group, member, replaced)
    computed = _computed(op, group, members, configured, configs)
    if op.profile.streams.tolerates_old_topologies:
        old = [each for each in members if members[each].metadata.topology_epoch < configured.epoch]
        computed = keep_tasks_of_old_topology(computed, targets, old) if old else computed
    written = [
        RECORDS.target(group.group_id, member_id, tasks)
        for member_id, tasks in computed.items()
        if targets.get(member_id) != tasks
    ]
    written.append(RECORDS.target_metadata(group.group_id, epoch, op.now))
    return TargetAssignment(epoch, computed, tuple(written))


def _computed(
    op: OperationContext,
    group: StreamsGroup,
    members: Mapping[str, StreamsGroupMember],
    configured: ConfiguredTopology,
    configs: Mapping[str, str],
) -> Mapping[str, TasksTuple]:
    if not configured.ready or configured.subtopologies is None:
        return dict.fromkeys(members, NO_TARGET)
    given = spec.StreamsSpec(
        members=_specified_members(op, group, members),
        subtopologies=tuple(
            spec.SubtopologySpec(key, subtopology.tasks, subtopology.stateful)
            for key, subtopology in configured.subtopologies.items()
        ),
        standby_replicas=int(configs.get(STANDBY_REPLICAS, "0")),
        warmup_replicas=op.group_config(group.group_id).streams_num_warmup_replicas,
        acceptable_recovery_lag=op.group_config(group.group_id).streams_acceptable_recovery_lag,
    )
    try:
        stateful = any(subtopology.stateful for subtopology in given.subtopologies)
        assigned = TASK_ASSIGNORS[assignor_name(op, group.group_id, stateful=stateful)](given)
    except AssignorError:
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    return {each: _target(assigned.get(each, spec.NO_TASKS)) for each in members}


def _specified_members(
    op: OperationContext, group: StreamsGroup, members: Mapping[str, StreamsGroupMember]
) -> Mapping[str, spec.AssignmentMemberSpec]:
    """Return the members as the input of an assignor. Members of a process share offsets if the profile requires it."""
    reports = group.soft.offsets
    ends = {each: _offsets(reports[each].end_offsets) for each in members if each in reports}
    if op.profile.streams.shares_offsets:
        shared = {process: _offsets(offsets) for process, offsets in by_process(reports, members).items()}
        offsets = {each: shared.get(members[each].metadata.process_id, {}) for each in members}
    else:
        offsets = {each: _offsets(reports[each].offsets) for each in members if each in reports}
    return {each: _specified(members[each], offsets.get(each, {}), ends.get(each, {})) for each in members}


def _specified(member: StreamsGroupMember, offsets: _Sums, end_offsets: _Sums) -> spec.AssignmentMemberSpec:
    metadata, assigned = member.metadata, member.assigned
    return spec.AssignmentMemberSpec(
        process_id=metadata.process_id,
        active=_by_subtopology(assigned.active),
        standby=_by_subtopology(assigned.standby),
        warmup=_by_subtopology(assigned.warmup),
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        client_tags={tag.key: tag.value for tag in metadata.client_tags},
        offsets=offsets,
        end_offsets=end_offsets,
    )


def _by_subtopology(tasks: Iterable[TaskId]) -> dict[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for subtopology, partition in tasks:
        grouped.setdefault(subtopology, []).append(partition)
    return grouped


def _offsets(offsets: Mapping[TaskId, int]) -> _Sums:
    grouped: dict[str, dict[int, int]] = {}
    for (subtopology, partition), offset in offsets.items():
        grouped.setdefault(subtopology, {})[partition] = offset
    return grouped


def _target(given: spec.TaskAssignment) -> TasksTuple:
    return TasksTuple(_tasks(given.active), _tasks(given.standby), _tasks(given.warmup))


def _tasks(given: spec.Tasks) -> frozenset[TaskId]:
    return frozenset((subtopology, partition) for subtopology, partitions in given.items() for partition in partitions)


def schedule_initial_rebalance(op: OperationContext, group: StreamsGroup) -> None:
    """Delay the first assignment of an empty group, so that more members can join before it."""
    if op.profile.streams.assigns_without_delay:
        return
    key = initial_rebalance_key(group.group_id)
    delay = op.group_config(group.group_id).streams_initial_rebalance_delay_ms
    if delay > 0 and not op.timers.is_scheduled(key):
        group_id = group.group_id
        op.timers.schedule(key, delay, lambda later: _assign_delayed(later, group_id), retry_backoff_ms=None)


def _assign_delayed(op: OperationContext, group_id: str) -> None:
    group = op.state.groups.get(group_id)
    if not isinstance(group, StreamsGroup) or group.is_empty or group.epoch <= group.assignment_epoch:
        return
    if group.configured is not None:
        target = next_target(op, group, group.epoch, group.configured, group.configs)
        op.emit_all(target.written)
