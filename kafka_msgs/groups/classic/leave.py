"""LeaveGroup to a classic group: one member, or several at once (KIP-345)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.rebalance import (
    complete_join_if_ready,
    drop_heartbeat,
    rebalance_or_complete,
    remove_waiting_member,
)
from kafka_msgs.groups.classic.states import ClassicState
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.leave_group_response import LeaveGroupResponse, MemberResponse

if TYPE_CHECKING:
    from kafka_msgs.groups.transaction import Transaction

__all__ = ["leave_classic_group", "left"]


def leave_classic_group(tx: Transaction, group: ClassicGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove members, and begin a rebalance if any was removed."""
    live = group.live
    if live.state is ClassicState.DEAD:
        return LeaveGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    members = tuple(left(identity, _remove(tx, group, identity)) for identity in request.members)
    if any(member.error_code == ErrorCode.NONE for member in members):
        if live.state is ClassicState.PREPARING_REBALANCE:
            complete_join_if_ready(tx, group)
        elif live.state is not ClassicState.EMPTY:
            rebalance_or_complete(tx, group)
    return LeaveGroupResponse(members=members)


def left(identity: MemberIdentity, error: int) -> MemberResponse:
    """Return what became of one member of a request."""
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)


def _remove(tx: Transaction, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    """Remove a member. An empty member id means that the instance id alone names it."""
    live, member_id, instance_id = group.live, identity.member_id, identity.group_instance_id
    if member_id in live.pending:
        live.remove(member_id)
        drop_heartbeat(tx, group, member_id)
        return ErrorCode.NONE
    if not member_id and instance_id is not None:
        member_id = live.static_members.get(instance_id, "")
    try:
        member = live.validate_member(member_id, instance_id)
    except GroupError as error:
        return ErrorCode(error.error)
    drop_heartbeat(tx, group, member_id)
    remove_waiting_member(tx, group, member)
    return ErrorCode.NONE
