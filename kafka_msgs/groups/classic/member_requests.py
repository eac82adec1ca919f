"""JoinGroup, SyncGroup and LeaveGroup of a classic group (KIP-62, KIP-134, KIP-345, KIP-394, KIP-814)."""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.live_group import LiveGroup
from kafka_msgs.groups.classic.members import ClassicGroupMember, ClassicGroupState
from kafka_msgs.groups.classic.rebalance import (
    JOIN_TIMEOUT_MS,
    cancel_heartbeat_timeout,
    complete_join_if_ready,
    emit_metadata,
    maybe_prepare_rebalance_or_complete_join,
    prepare_rebalance,
    remove_pending_sync,
    remove_waiting_member,
    reset_and_propagate_assignment,
    schedule_heartbeat_timeout,
    schedule_member_timeout,
    set_and_propagate_assignment,
)
from kafka_msgs.groups.classic_support import member_response, requires_known_member_id
from kafka_msgs.groups.group_protocol import client_error_for
from kafka_msgs.groups.metrics import CLASSIC_REBALANCES
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.leave_group_response import LeaveGroupResponse
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = [
    "JoinContext",
    "group_loaded",
    "group_unloaded",
    "join_classic_group",
    "leave_classic_group",
    "sync_classic_group",
]


def group_loaded(op: OperationContext, group: ClassicGroup) -> None:
    """Restart the session timers of the members. A group with too many members must rebalance."""
    live = group.live
    for member in live.members:
        schedule_heartbeat_timeout(op, group, member)
    if len(live.members) > op.config.group_max_size:
        prepare_rebalance(op, group)


def group_unloaded(op: OperationContext, group: ClassicGroup) -> None:
    """Redirect waiting members to another coordinator."""
    live = group.live
    before = live.state
    live.transition_to(ClassicGroupState.DEAD, op.now)
    for member in live.members:
        if before is ClassicGroupState.PREPARING_REBALANCE:
            refused = JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id)
            live.answer_join(member, refused)
        else:
            member.answer_sync(SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))


def leave_classic_group(op: OperationContext, group: ClassicGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove members, and begin a rebalance if any was removed."""
    live = group.live
    if live.state is ClassicGroupState.DEAD:
        return LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    members = tuple(member_response(identity, _remove(op, group, identity)) for identity in request.members)
    if any(member.error_code == ErrorCode.NONE for member in members):
        if live.state is ClassicGroupState.PREPARING_REBALANCE:
            complete_join_if_ready(op, group)
        elif live.state is not ClassicGroupState.EMPTY:
            maybe_prepare_rebalance_or_complete_join(op, group)
    return LeaveGroupResponse(members=members)


def _remove(op: OperationContext, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    """Remove a member. If the member id is empty, the instance id alone identifies the member."""
    live, member_id, instance_id = group.live, identity.member_id, identity.group_instance_id
    if member_id in live.pending_join_members:
        live.remove(member_id)
        cancel_heartbeat_timeout(op, group, member_id)
        return ErrorCode.NONE
    if not member_id and instance_id is not None:
        member_id = live.static_members.get(instance_id, "")
    try:
        member = live.validate_member(member_id, instance_id)
    except GroupError as error:
        return ErrorCode(error.error)
    cancel_heartbeat_timeout(op, group, member_id)
    remove_waiting_member(op, group, member)
    return ErrorCode.NONE


def sync_classic_group(
    op: OperationContext, group: ClassicGroup, request: SyncGroupRequest, answer: Future[SyncGroupResponse]
) -> None:
    """Settle ``answer`` with a member's assignment, when the generation's record is committed, or an error."""
    live = group.live
    try:
        member = _validate(live, request)
    except GroupError as error:
        answer.resolve(SyncGroupResponse(error_code=error.error))
        return
    remove_pending_sync(op, group, member.member_id)
    if live.state is ClassicGroupState.STABLE:
        answer.resolve(
            SyncGroupResponse(
                protocol_type=live.protocol_type, protocol_name=live.protocol_name, assignment=member.assignment
            )
        )
        return
    member.syncing = answer
    if live.leader == member.member_id:
        _take_assignments(op, group, request)


def _validate(live: LiveGroup, request: SyncGroupRequest) -> ClassicGroupMember:
    if live.state is ClassicGroupState.DEAD:
        raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = live.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != live.generation:
        raise GroupError(ErrorCode.ILLEGAL_GENERATION)
    asked = ((request.protocol_type, live.protocol_type), (request.protocol_name, live.protocol_name))
    if any(given is not None and known is not None and given != known for given, known in asked):
        raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if live.state is ClassicGroupState.PREPARING_REBALANCE:
        raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
    return member


def _take_assignments(op: OperationContext, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Record the assignments of the leader. The members get them when the record is committed."""
    live = group.live
    assignments = {each.member_id: each.assignment for each in request.assignments}

    def appended(error: ApiError | None) -> None:
        if live.state is not ClassicGroupState.COMPLETING_REBALANCE or live.generation != request.generation_id:
            return
        if error is None:
            set_and_propagate_assignment(op, group, assignments)
            op.services.metrics.counts[CLASSIC_REBALANCES] += 1
        else:
            reset_and_propagate_assignment(op, group, client_error_for(error).error)
            maybe_prepare_rebalance_or_complete_join(op, group)

    op.on_committed(appended)
    emit_metadata(op, group.group_id, live.metadata(assignments))


_SKIP_ASSIGNMENT_FROM: Final = 9
"""The first version at which the coordinator can ask a leader to skip the assignment (KIP-814)."""


@frozen(eq=False)
class JoinContext:
    """A JoinGroup request in progress. ``future`` settles when the next generation begins, or with an error."""

    op: OperationContext
    context: RequestContext
    request: JoinGroupRequest
    future: Future[JoinGroupResponse]

    def refuse(self, error: int, **fields: Any) -> None:
        """Respond with an error."""
        self.future.resolve(JoinGroupResponse(error_code=error, **fields))


def join_classic_group(join: JoinContext) -> None:
    """Handle a member that joins a classic group.

    The first member creates the group. An empty group of another kind becomes a classic group.
    """
    group, request = _group_to_join(join), join.request
    if group is None:
        join.refuse(ErrorCode.UNKNOWN_MEMBER_ID, member_id=request.member_id)
    elif not _has_room(join.op, group.live, request.member_id):
        group.live.remove(request.member_id)
        join.refuse(ErrorCode.GROUP_MAX_SIZE_REACHED)
    elif group.live.state is ClassicGroupState.DEAD:
        join.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id=request.member_id)
    elif not group.live.supports(request.protocol_type, request.protocols):
        join.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id=request.member_id)
    elif request.member_id:
        _join_with_id(join, group)
    else:
        _join_without_id(join, group)


def _group_to_join(join: JoinContext) -> ClassicGroup | None:
    """Return the group. For a new member without a group, create the group and emit an empty record."""
    op, group_id = join.op, join.request.group_id
    group = op.state.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return group
    if join.request.member_id:
        if group is not None and op.quirks.late_join_forgets_group:
            group.cancel_timers(op)
            op.forget_group(group_id)
        return None
    if group is not None:
        group.emit_tombstones(op)
        group.cancel_timers(op)

    def appended(error: ApiError | None) -> None:
        if error is not None:
            join.refuse(client_error_for(error).error)

    op.on_committed(appended)
    emit_metadata(op, group_id, GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=op.now))
    made = op.state.groups[group_id]
    assert isinstance(made, ClassicGroup)
    return made


def _has_room(op: OperationContext, live: LiveGroup, member_id: str) -> bool:
    limit, member = op.config.group_max_size, live.members.get(member_id)
    if live.state is ClassicGroupState.PREPARING_REBALANCE:
        return (member is not None and member.joining is not None) or live.joining < limit
    if live.state in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE):
        return member is not None or len(live.members) < limit
    return True


# A member without an id.


def _join_without_id(join: JoinContext, group: ClassicGroup) -> None:
    op, live, instance_id = join.op, group.live, join.request.group_instance_id
    member_id = f"{join.context.client_id if instance_id is None else instance_id}-{op.services.new_id()}"
    if requires_known_member_id(join.context, join.request):
        live.pending_join_members.add(member_id)
        schedule_member_timeout(op, group, member_id, join.request.session_timeout_ms)
        join.refuse(ErrorCode.MEMBER_ID_REQUIRED, member_id=member_id)
    elif instance_id is not None and instance_id in live.static_members:
        _replace_static_member(join, group, live.static_members[instance_id], member_id)
    else:
        _add_member(join, group, member_id)


def _add_member(join: JoinContext, group: ClassicGroup, member_id: str) -> None:
    live, request = group.live, join.request
    member = ClassicGroupMember(
        member_id=member_id,
        instance_id=request.group_instance_id,
        client_id=join.context.client_id,
        client_host=join.context.client_host,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=request.protocols,
        is_new=True,
    )
    if live.state is ClassicGroupState.PREPARING_REBALANCE and live.previous is ClassicGroupState.EMPTY:
        live.member_added = True
    live.add(member, join.future)
    schedule_member_timeout(join.op, group, member_id, JOIN_TIMEOUT_MS)
    maybe_prepare_rebalance_or_complete_join(join.op, group)


def _replace_static_member(join: JoinContext, group: ClassicGroup, old_id: str, member_id: str) -> None:
    """Handle a static member that lost its id and joins with a new one. It may keep its assignment (KIP-345)."""
    op, live = join.op, group.live
    old_leader = live.leader
    member = live.replace_static(old_id, member_id)
    schedule_heartbeat_timeout(op, group, member)
    before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
    _update(join, live, member)
    if live.state is ClassicGroupState.PREPARING_REBALANCE:
        complete_join_if_ready(op, group)
    elif live.state is not ClassicGroupState.STABLE or live.select_protocol() != live.protocol_name:
        prepare_rebalance(op, group)
    else:

        def appended(error: ApiError | None) -> None:
            if error is None:
                _keep_generation(join, live, member, old_leader)
            elif live.members.get(member_id) is member:
                live.update(member, *before, None)
                schedule_heartbeat_timeout(op, group, live.replace_static(member_id, old_id))
                join.future.resolve(
                    evolve(live.join_response(""), leader=old_leader or "", error_code=client_error_for(error).error)
                )

        op.on_committed(appended)
        emit_metadata(op, group.group_id, live.metadata({each.member_id: each.assignment for each in live.members}))


def _keep_generation(join: JoinContext, live: LiveGroup, member: ClassicGroupMember, old_leader: str | None) -> None:
    """Respond to a static member that rejoined and keeps its assignment.

    An old client would compute a new assignment if the response named it as the leader. So the response names the
    previous leader.
    """
    if join.context.version < _SKIP_ASSIGNMENT_FROM:
        live.answer_join(member, evolve(live.join_response(member.member_id), leader=old_leader or ""))
        return
    leads = live.leader == member.member_id
    if not leads or live.state is not ClassicGroupState.PREPARING_REBALANCE:
        live.answer_join(member, live.join_response(member.member_id, with_members=leads, skip_assignment=leads))


# A member with an id.


def _join_with_id(join: JoinContext, group: ClassicGroup) -> None:
    live, request = group.live, join.request
    if request.member_id in live.pending_join_members:
        if request.group_instance_id is not None:
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
        _add_member(join, group, request.member_id)
        return
    try:
        member = live.validate_member(request.member_id, request.group_instance_id)
    except GroupError as error:
        join.refuse(error.error, member_id=request.member_id, protocol_name=None)
        return
    leads = live.leader == member.member_id
    if _needs_rebalance(live, leads, member.protocols == request.protocols):
        _update(join, live, member)
        maybe_prepare_rebalance_or_complete_join(join.op, group)
    else:
        with_members = leads and live.state is ClassicGroupState.COMPLETING_REBALANCE
        join.future.resolve(live.join_response(member.member_id, with_members=with_members))


def _needs_rebalance(live: LiveGroup, leads: bool, unchanged: bool) -> bool:
    """Whether a member that rejoins starts a rebalance, or takes part in the current one."""
    if live.state is ClassicGroupState.PREPARING_REBALANCE:
        return True
    return not unchanged or (leads and live.state is ClassicGroupState.STABLE)


def _update(join: JoinContext, live: LiveGroup, member: ClassicGroupMember) -> None:
    request = join.request
    live.update(member, request.protocols, request.rebalance_timeout_ms, request.session_timeout_ms, join.future)
