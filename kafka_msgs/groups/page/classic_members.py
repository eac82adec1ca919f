"""Members of the classic protocol in a streams group (``page`` profile): JoinGroup as a heartbeat of the group.

A member's user data contains the heartbeat that it would send in the streams protocol. The coordinator handles it as a
heartbeat, so that the member follows the same rules. Its standby tasks may be warm-up tasks of the group.
"""

from __future__ import annotations

from typing import Final

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DecodeError, GroupError
from kafka_msgs.groups.classic_support import (
    ClassicMemberSupport,
    ClassicMetadata,
    refuse_unknown_member_id,
    requires_known_member_id,
    schedule_sync_timeout,
)
from kafka_msgs.groups.consumer_protocol import CONSUMER_PROTOCOL
from kafka_msgs.groups.member_timers import join_timer_key
from kafka_msgs.groups.modern_group import JOIN_EPOCH
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.page.migration import classic_metadata, downgrade, may_downgrade
from kafka_msgs.groups.page.user_data import probing_members, read_heartbeat, written_assignment
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.streams.current_assignment import reconcile
from kafka_msgs.groups.streams.fencing import remove_members
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.heartbeat import HeartbeatHandler
from kafka_msgs.groups.streams.member import MemberState, StreamsGroupMember
from kafka_msgs.groups.streams.tasks import task_ids, task_set
from kafka_msgs.groups.streams.validation import check_translated
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, TaskIds

__all__ = ["CLASSIC_SUPPORT"]

_UNFIT: Final = frozenset(
    {
        ErrorCode.INVALID_REQUEST,
        ErrorCode.STREAMS_INVALID_TOPOLOGY,
        ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
        ErrorCode.STREAMS_TOPOLOGY_FENCED,
        ErrorCode.UNRELEASED_INSTANCE_ID,
    }
)
"""Errors of a heartbeat that clients of the classic protocol do not support."""


def _join(
    op: OperationContext, context: RequestContext, group: StreamsGroup, request: JoinGroupRequest
) -> JoinGroupResponse | Future[JoinGroupResponse]:
    """Handle a classic protocol member that joins or rejoins a streams group."""
    member_id = request.member_id or f"{context.client_id}-{op.services.new_id()}"
    _require_protocol(group, member_id, request)
    if requires_known_member_id(context, request):
        return refuse_unknown_member_id(op, member_id)
    before = _known_member(group, request)
    try:
        heartbeat = _translated(op, group, request, member_id, before)
        answer = HeartbeatHandler(op, context, heartbeat, classic_metadata(request)).run()
    except GroupError as error:
        raise _unfit(str(error.message)) if error.error in _UNFIT else error from None
    _probe(group, before, member_id)
    op.stop_timer(join_timer_key(group.group_id, member_id))
    if may_downgrade(op, group):
        downgrade(op, group)
        return JoinGroupResponse(member_id=member_id, error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    schedule_sync_timeout(op, group, member_id, request, remove_members)
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=answer.member_epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=request.protocols[0].name,
    )


def _unfit(reason: str) -> GroupError:
    return GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, reason)


def _require_protocol(group: StreamsGroup, member_id: str, request: JoinGroupRequest) -> None:
    """Refuse a member without a protocol that all classic protocol members support."""
    offered = {each.name for each in request.protocols}
    for each in group.classic_members:
        classic = group.members[each].classic
        if classic is not None and each != member_id:
            offered &= {protocol.name for protocol in classic.supported_protocols}
    if request.protocol_type != CONSUMER_PROTOCOL or not offered:
        raise _unfit(f"Member {member_id}'s protocols are not supported.")


def _known_member(group: StreamsGroup, request: JoinGroupRequest) -> StreamsGroupMember | None:
    """Return the member that rejoins; None for a new member or one that replaces a static member."""
    if request.group_instance_id is not None and request.member_id:
        return group.sender(request.member_id, request.group_instance_id)
    return group.members.get(request.member_id)


def _translated(
    op: OperationContext,
    group: StreamsGroup,
    request: JoinGroupRequest,
    member_id: str,
    member: StreamsGroupMember | None,
) -> StreamsGroupHeartbeatRequest:
    """Return the heartbeat that a member's JoinGroup request represents. Raises ``GroupError``."""
    try:
        sent = read_heartbeat(bytes(request.protocols[0].metadata))
    except DecodeError as error:
        raise _unfit(f"The subscription of member {member_id} has no user data for a streams group: {error}") from error
    check_translated(op.profile.streams, sent)
    active, standby = task_set(sent.active_tasks or ()), task_set(sent.standby_tasks or ())
    warmup = standby & member.holding.warmup if member is not None else frozenset()
    keeps_topology = (
        member is not None and sent.topology is not None and sent.topology.epoch == member.metadata.topology_epoch
    )
    return evolve(
        sent,
        group_id=group.group_id,
        member_id=member_id,
        member_epoch=JOIN_EPOCH if member is None else member.epoch,
        instance_id=request.group_instance_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topology=None if keeps_topology else sent.topology,
        active_tasks=task_ids(TaskIds, active),
        standby_tasks=task_ids(TaskIds, standby - warmup),
        warmup_tasks=task_ids(TaskIds, warmup),
        shutdown_application=False,
    )


def _probe(group: StreamsGroup, before: StreamsGroupMember | None, member_id: str) -> None:
    """Make the other members with warm-up tasks rejoin and report their progress, after a member rejoins voluntarily.

    This is the probing rebalance of the classic protocol.
    """
    probed = group.soft.probed
    was_asked = member_id in probed
    probed.discard(member_id)
    if not was_asked and before is not None and before.is_reconciled_to(group.assignment_epoch):
        probed.update(each for each in probing_members(group) if each != member_id)


def _assignment(
    op: OperationContext, group: StreamsGroup, member: StreamsGroupMember, classic: ClassicMetadata
) -> bytes:
    return written_assignment(op, group, member, member.assigned)


def _may_advance(op: OperationContext, group: StreamsGroup, member: StreamsGroupMember) -> bool:
    """Return whether a task that a member waits for is free, or the member must rejoin to report its progress."""
    if member.member_id in group.soft.probed:
        return True
    if member.state is not MemberState.UNRELEASED_TASKS:
        return False
    target, owned = group.target_of(member.member_id), member.assigned.without_epochs()
    after = reconcile(member, group.assignment_epoch, target, owned, group)
    return after.assigned != member.assigned


CLASSIC_SUPPORT: Final = ClassicMemberSupport(
    join=_join, assignment=_assignment, may_advance=_may_advance, remove=remove_members
)
"""The support of streams groups for members of the classic protocol."""
