"""Removal of members that leave, miss their session timeout, or do not revoke their tasks in time."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_msgs.groups.member_timers import schedule_rebalance, schedule_session
from kafka_msgs.groups.modern_group import STATIC_LEAVE_EPOCH, find_group
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.streams.extension import streams_extension
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.records import RECORDS
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

__all__ = [
    "leave",
    "loaded",
    "remove_members",
    "request_shutdown",
    "schedule_rebalance_timeout",
    "schedule_session_timeout",
]


def leave(op: OperationContext, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    """Remove a member that leaves. A static member that leaves temporarily keeps its tasks."""
    group = find_group(op, StreamsGroup, request.group_id)
    if request.shutdown_application:
        request_shutdown(group, request.member_id)
    member = group.sender(request.member_id, request.instance_id)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        op.emit(*RECORDS.current(group.group_id, member.as_temporarily_left()))
    else:
        remove_members(op, group, (member,))
    return StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch, status=())


def request_shutdown(group: StreamsGroup, member_id: str) -> None:
    """Record a member's request to shut down the application. The first request counts."""
    if group.soft.shutdown_member is None:
        group.soft.shutdown_member = member_id


def remove_members(op: OperationContext, group: StreamsGroup, members: Sequence[StreamsGroupMember]) -> None:
    """Remove members. The group is downgraded if only members of the classic protocol remain."""
    if not members:
        return
    extension = streams_extension(op)
    if extension is not None and extension.may_downgrade(op, group, members):
        extension.downgrade(op, group, members)
        return
    RECORDS.remove_members(op, group, members, metadata=lambda epoch: group.metadata_record(epoch=epoch))


def schedule_session_timeout(op: OperationContext, group: StreamsGroup, member: StreamsGroupMember) -> None:
    """Remove the member if it sends no request within the session timeout (its own in the classic protocol)."""
    timeout = op.group_config(group.group_id).streams_session_timeout_ms
    if member.classic is not None:
        timeout = member.classic.session_timeout_ms
    schedule_session(op, group, member.member_id, timeout, remove_members)


def schedule_rebalance_timeout(op: OperationContext, group: StreamsGroup, member: StreamsGroupMember) -> None:
    """Remove the member if it does not revoke its tasks within its rebalance timeout."""
    timeout = member.metadata.rebalance_timeout_ms
    schedule_rebalance(op, group, member.member_id, member.epoch, timeout, remove_members)


def loaded(op: OperationContext, group: StreamsGroup) -> None:
    """Schedule the timers of all members after the group was loaded."""
    for member_id in iter_kafka_order(group.members):
        member = group.members[member_id]
        schedule_session_timeout(op, group, member)
        if member.is_revoking and member.classic is None:
            schedule_rebalance_timeout(op, group, member)
