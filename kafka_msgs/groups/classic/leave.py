"""LeaveGroup to a classic group: one member, or several in one request (KIP-345)."""

from __future__ import annotations

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.classic_state import ClassicGroupState
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.rebalance import (
    cancel_heartbeat_timeout,
    complete_join_if_ready,
    maybe_prepare_rebalance_or_complete_join,
    remove_waiting_member,
)
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.leave_group_response import LeaveGroupResponse, MemberResponse

__all__ = ["leave_classic_group", "member_response"]


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


def member_response(identity: MemberIdentity, error: int) -> MemberResponse:
    """Return the result for one member of a request."""
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)


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
