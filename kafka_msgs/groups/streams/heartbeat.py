"""StreamsGroupHeartbeat: a member joins a streams group, stays in it, and moves towards its target.

A heartbeat bases all decisions on the state before it, collects its records, and emits them at the end. The steps have
the order of Kafka's ``GroupMetadataManager.streamsGroupHeartbeat``:

1. find or create the group and the member, and update the member's metadata;
2. compare the topology, configure it for the topics of the cluster, and check the tasks that the member has;
3. increase the group epoch after a relevant change, and compute the target assignment if it is due;
4. move the member one step closer to its target;
5. respond, with the status of the group.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final

from attrs import evolve

from kafka_msgs.drafts.kip_1071_migration import StreamsGroupClassicMember
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.member_timers import rebalance_timer_key
from kafka_msgs.groups.metrics import STREAMS_REBALANCES
from kafka_msgs.groups.modern_group import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, check_capacity, find_group
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.streams import fencing, membership
from kafka_msgs.groups.streams.configured_topology import ConfiguredTopology, StatusCode, TopologyProblem, configure
from kafka_msgs.groups.streams.current_assignment import reconcile
from kafka_msgs.groups.streams.extension import resolve_patterns, streams_extension
from kafka_msgs.groups.streams.group import RefinedAssignment, StreamsGroup, StreamsGroupState
from kafka_msgs.groups.streams.heartbeat_response import answer
from kafka_msgs.groups.streams.member import with_classic_member
from kafka_msgs.groups.streams.records import RECORDS, topology_record
from kafka_msgs.groups.streams.soft_state import SteadyHeartbeat, TaskOffsets, has_caught_up, updated_offsets
from kafka_msgs.groups.streams.target_assignment import (
    TargetAssignment,
    assignment_configs,
    next_target,
    schedule_initial_rebalance,
)
from kafka_msgs.groups.streams.tasks import NO_TARGET, TasksTuple, owned_tasks
from kafka_msgs.groups.streams.topology import StreamsTopology, accepted_topology, topology_value
from kafka_msgs.groups.streams.topology_descriptions import ask_for_description
from kafka_msgs.groups.streams.validation import check_enabled, check_unchecked_by_kafka
from kafka_msgs.groups.topics_image import group_hash
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

__all__ = ["HeartbeatHandler", "heartbeat"]

_UNSTEADY: Final = SteadyHeartbeat((), StreamsGroupHeartbeatResponse())


class EpochBump(Enum):
    """The reason why the group epoch increases.

    It may stay, increase only because members get other tasks of the same target, or increase because the target must
    be computed again.
    """

    NONE = auto()
    REFINED = auto()
    RECOMPUTE = auto()


def heartbeat(
    op: OperationContext, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupHeartbeatResponse | Future[StreamsGroupHeartbeatResponse]:
    """Handle a heartbeat that passed ``validation.check``. Raises ``GroupError``."""
    check_enabled(op.config, op.profile, op.image)
    if not op.quirks.streams_unchecked_input:
        check_unchecked_by_kafka(request)
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return fencing.leave(op, request)
    if request.member_id == "":
        request = evolve(request, member_id=op.services.new_id())
    group = op.state.groups.get(request.group_id)
    if isinstance(group, StreamsGroup):
        steady = group.soft.steady.get(request.member_id, _UNSTEADY)
        if not group.needs_refresh(op.now) and steady.inputs == _inputs(op, context, request, group):
            fencing.schedule_session_timeout(op, group, group.members[request.member_id])
            return ask_for_description(op, context, group, group.topology_epoch, steady.response)
    try:
        beat = HeartbeatHandler(op, context, request)
    except GroupError as error:
        if error.error is ErrorCode.FENCED_MEMBER_EPOCH and op.profile.streams.fencing_removes_member:
            return _fence(op, request, error)
        raise
    response = beat.run()
    _note_steady(beat, response)
    return ask_for_description(op, context, beat.group, beat.topology_epoch, response)


def _inputs(
    op: OperationContext, context: RequestContext, request: StreamsGroupHeartbeatRequest, group: StreamsGroup
) -> tuple[object, ...]:
    """Return all that the response to a member's heartbeat depends on. Most of it is the same object if unchanged."""
    return (
        request,
        context,
        group.members.get(request.member_id),
        group.state,
        group.epoch,
        group.assignment_epoch,
        group.topology,
        group.validated_epoch,
        group.configured,
        group.configs,
        group.targets_version,
        group.refined,
        group.soft.endpoint_epoch,
        group.soft.shutdown_member,
        op.group_config(group.group_id),
    )


def _note_steady(beat: HeartbeatHandler, response: StreamsGroupHeartbeatResponse) -> None:
    """Store a heartbeat that changed nothing, and whose repetition will change nothing, such as almost all of them."""
    op, group, request, soft = beat.op, beat.group, beat.request, beat.group.soft
    if (
        beat.joins
        or beat.written
        or response.status != ()
        or response.active_tasks is not None
        or response.partitions_by_user_endpoint is not None
        or request.instance_id is not None
        or request.task_offsets is not None
        or request.task_end_offsets is not None
        or op.profile.streams.reports_status_changes_only
        or group.state is not StreamsGroupState.STABLE
    ):
        soft.steady.pop(request.member_id, None)
    else:
        inputs = _inputs(op, beat.context, request, group)
        soft.steady[request.member_id] = SteadyHeartbeat(inputs, response)


def _fence(
    op: OperationContext, request: StreamsGroupHeartbeatRequest, error: GroupError
) -> StreamsGroupHeartbeatResponse:
    """Remove a member at a wrong epoch, and refuse its heartbeat."""
    group = find_group(op, StreamsGroup, request.group_id, "Streams group")
    fencing.remove_members(op, group, (group.member(request.member_id),))
    return StreamsGroupHeartbeatResponse(error_code=error.error, error_message=error.message)


class HeartbeatHandler:
    """The processing of one heartbeat.

    ``member`` is the member before the heartbeat, ``updated`` after it. ``replaced`` is the id of the static member
    that it replaces. ``classic`` is the additional metadata of a classic protocol member, whose JoinGroup request
    represents the heartbeat. ``problems`` become the status list of the response.
    """

    def __init__(
        self,
        op: OperationContext,
        context: RequestContext,
        request: StreamsGroupHeartbeatRequest,
        classic: StreamsGroupClassicMember | None = None,
    ) -> None:
        self.op = op
        self.context = context
        self.request = request
        self.classic = classic
        self.joins = request.member_epoch == JOIN_EPOCH
        self.written: list[Record] = []
        self.problems: list[TopologyProblem] = []
        self.is_new = request.group_id not in op.state.groups
        self.group = self._find_group()
        self.replaced = self._replaced()
        self.member = RECORDS.member_of_heartbeat(
            self.group,
            request,
            request.member_id,
            self.written,
            lambda member: membership.owns_only_assigned(member, request),
            takes_over=classic is not None,
        )
        self.updated = self.member
        self.topology_epoch = self.group.topology_epoch
        self.update = EpochBump.NONE

    def run(self) -> StreamsGroupHeartbeatResponse:
        """Run all steps. Raises ``GroupError``."""
        op, group, request = self.op, self.group, self.request
        self._update_metadata()
        topology = self._topology()
        self.topology_epoch = topology.epoch
        self._note_stale_topology(topology)
        configured, metadata_hash = self._configured(topology)
        validated = topology.epoch if configured.ready else -1
        self._check_owned(configured, topology)
        self._note_offsets()
        configs = assignment_configs(op, group)
        if validated != group.validated_epoch or (self.update is EpochBump.NONE and configs != group.configs):
            self.update = EpochBump.RECOMPUTE
        refined = self._refined_if_stable()
        if not group.members:
            schedule_initial_rebalance(op, group)
        target = next_target(
            op,
            group,
            self._next_epoch(validated, metadata_hash, configs),
            configured,
            configs,
            member=self.updated,
            replaced=self.replaced,
            refine_only=self.update is EpochBump.REFINED,
        )
        self.written += target.written
        if target.delay is not None:
            self.problems.append(target.delay)
        self._reconcile(target.epoch, self._refined(target, refined).get(request.member_id, NO_TARGET))
        fencing.schedule_session_timeout(op, group, self.updated)
        if request.shutdown_application and not op.profile.streams.shutdown_on_leave:
            fencing.request_shutdown(group, request.member_id)
        return answer(self, configured, configs)

    def _next_epoch(self, validated: int, metadata_hash: int, configs: Mapping[str, str]) -> int:
        """Return the group epoch: a new one, with its record, if a change requires a new assignment."""
        if self.update is EpochBump.NONE:
            return self.group.epoch
        epoch = self.group.epoch + 1
        self.written.append(
            self.group.metadata_record(
                epoch=epoch,
                metadata_hash=metadata_hash,
                validated_topology_epoch=validated,
                last_assignment_configs=configs,
            )
        )
        self.op.count_metric(STREAMS_REBALANCES)
        self.group.refreshed(self.op.now, epoch)
        return epoch

    # The group and the member

    def _find_group(self) -> StreamsGroup:
        op, request = self.op, self.request
        if not self.joins:
            return find_group(op, StreamsGroup, request.group_id, "Streams group")
        group = op.state.groups.get(request.group_id)
        if group is None:
            found = StreamsGroup(request.group_id)
        elif group.kind == "classic" and group.is_empty:
            group.emit_tombstones(op)
            group.cancel_timers(op)
            found = StreamsGroup(request.group_id)
        elif isinstance(group, ClassicGroup) and (extension := streams_extension(op)) is not None:
            found = extension.upgrade(op, group, fencing.remove_members)
        else:
            found = find_group(op, StreamsGroup, request.group_id)
        check_capacity(found, op.config.group_streams_max_size, request.member_id, request.instance_id)
        return found

    def _replaced(self) -> str | None:
        group, member_id = self.group, self.request.member_id
        old = group.static_member(self.request.instance_id)
        if old is None or old.member_id == member_id:
            return None
        refined = group.refined
        if old.member_id in refined.tasks:
            tasks = {each: tasks for each, tasks in refined.tasks.items() if each != old.member_id}
            tasks[member_id] = refined.tasks[old.member_id]
            relabelled = RefinedAssignment(refined.epoch, tasks)
            if self.op.quirks.streams_join_relabels_first or (old.epoch == STATIC_LEAVE_EPOCH and self.joins):
                self.op.set_derived(group, "refined", relabelled)
        return old.member_id

    def _update_metadata(self) -> None:
        known = self.member.metadata
        metadata = membership.reported(known, self.context, self.request)
        if self.classic != self.member.classic:
            metadata = with_classic_member(metadata, self.classic)
        if metadata is known:
            return
        self.updated = evolve(self.member, metadata=metadata)
        self.written.append(RECORDS.member(self.group.group_id, self.updated))
        each_change = self.request.instance_id is None and not self.op.profile.streams.bumps_for_assignment_only
        if each_change or membership.needs_rebalance(known, metadata):
            self.update = EpochBump.RECOMPUTE

    # The topology

    def _topology(self) -> StreamsTopology:
        known, requested = self.group.topology, self.request.topology
        if requested is None:
            if known is None:
                raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
            return known
        topology = accepted = StreamsTopology(topology_value(requested))
        if known is not None:
            accepted = accepted_topology(known, topology, updates=self.op.profile.streams.topology_updates)
        if accepted is topology:
            self.written.append(topology_record(self.group.group_id, topology.value))
        return accepted

    def _note_stale_topology(self, topology: StreamsTopology) -> None:
        epoch = self.updated.metadata.topology_epoch
        if epoch < topology.epoch:
            self.problems.append(
                TopologyProblem(
                    StatusCode.STALE_TOPOLOGY,
                    f"The member's topology epoch {epoch} is behind the group's topology epoch {topology.epoch}.",
                )
            )

    def _configured(self, topology: StreamsTopology) -> tuple[ConfiguredTopology, int]:
        """Return the topology with partition counts, and the hash of the topics for which it was configured."""
        op, group = self.op, self.group
        known, metadata_hash = group.configured, group.metadata_hash
        rules = op.profile.streams
        is_new = topology is not group.topology
        if not is_new and known is not None and not group.needs_refresh(op.now):
            return known, metadata_hash
        topology, missing = resolve_patterns(op, topology)
        names = topology.input_topics if rules.ignores_internal_topic_changes else topology.required_topics
        metadata_hash = group_hash(op.image, names)
        if metadata_hash != group.metadata_hash:
            self.update = EpochBump.RECOMPUTE
        elif not is_new and known is not None and not rules.ignores_internal_topic_changes:
            return known, metadata_hash
        configured = configure(topology, op.image.topics, metadata_hash, missing)
        op.set_derived(group, "configured", configured)
        group.soft.endpoints.clear()
        return configured, metadata_hash

    def _check_owned(self, configured: ConfiguredTopology, topology: StreamsTopology) -> None:
        is_old = self.updated.metadata.topology_epoch < topology.epoch
        if configured.ready and not (is_old and self.op.profile.streams.tolerates_old_topologies):
            request = self.request
            for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks):
                if tasks:
                    configured.check_tasks(tasks)

    # The assignment

    def _note_offsets(self) -> None:
        """Store the reported offsets as the latest ones. A warm-up task that has caught up changes its role."""
        op, group, request = self.op, self.group, self.request
        if request.task_offsets is None and request.task_end_offsets is None:
            return
        reports = group.soft.offsets
        updated = updated_offsets(reports.get(request.member_id, TaskOffsets()), request)
        reports.pop(request.member_id, None)
        reports[request.member_id] = updated
        acceptable = op.group_config(group.group_id).streams_acceptable_recovery_lag
        if op.profile.streams.ends_caught_up_warmups and has_caught_up(
            reports, self.member, group.target_of(self.member.member_id), acceptable
        ):
            self.update = EpochBump.RECOMPUTE

    def _refined_if_stable(self) -> Mapping[str, TasksTuple] | None:
        """Return the assignment that members reconcile to, if the group is stable and unchanged otherwise.

        It may then be a different part of the same target.
        """
        if self.update is not EpochBump.NONE or self.group.state is not StreamsGroupState.STABLE:
            return None
        refined = self.group.targets
        if not refined.get(self.request.member_id, NO_TARGET).same_as(self.updated.assigned):
            self.update = EpochBump.REFINED
        return refined

    def _refined(self, target: TargetAssignment, refined: Mapping[str, TasksTuple] | None) -> Mapping[str, TasksTuple]:
        """Return the assignment that members reconcile to. It stays the same while the assignment epoch stays."""
        group = self.group
        known = group.refined
        if refined is None:
            if known.epoch == target.epoch:
                return known.tasks
            refined = target.tasks
        if self.op.group_config(group.group_id).streams_num_warmup_replicas > 0:
            version = group.targets_version if refined is group.targets else None
            if version is None or known.targets_version is not version or known.epoch != target.epoch:
                self.op.set_derived(group, "refined", RefinedAssignment(target.epoch, dict(refined), version))
        return refined

    def _reconcile(self, epoch: int, tasks: TasksTuple) -> None:
        member, request = self.updated, self.request
        if member.is_reconciled_to(epoch):
            return
        owned = owned_tasks(request.active_tasks, request.standby_tasks, request.warmup_tasks)
        moved = reconcile(member, epoch, tasks, owned, self.group)
        if moved == member:
            return
        self.updated = moved
        group_id = self.group.group_id
        self.written.append(RECORDS.current(group_id, moved))
        if moved.is_revoking and moved.classic is None:
            fencing.schedule_rebalance_timeout(self.op, self.group, moved)
        else:
            self.op.stop_timer(rebalance_timer_key(group_id, moved.member_id))
