"""Members that end: by leaving, by being silent, and by not giving up their tasks in time."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_msgs.groups.classic_speech import join_key, sync_key
from kafka_msgs.groups.modern import (
    STATIC_LEAVE_EPOCH,
    held_static_member,
    rebalance_key,
    schedule_rebalance,
    schedule_session,
    session_key,
)
from kafka_msgs.groups.streams import records
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import StreamsMember
from kafka_msgs.groups.streams.membership import live_group
from kafka_msgs.groups.streams.migration import downgrade, may_downgrade
from kafka_msgs.groups.timeline import walk
from kafka_msgs.groups.transaction import Transaction
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

__all__ = [
    "leave",
    "loaded",
    "remove_member",
    "remove_members",
    "request_shutdown",
    "schedule_rebalance_timeout",
    "schedule_session_timeout",
]


def leave(tx: Transaction, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
    """Remove a member that leaves. A static member that leaves for a while keeps its tasks."""
    group = live_group(tx, request.group_id)
    if request.shutdown_application:
        request_shutdown(group, request.member_id)
    if request.instance_id is None:
        member = group.member(request.member_id)
    else:
        member = held_static_member(group, request.member_id, request.instance_id)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        tx.emit(*records.current_record(group.group_id, member.away()))
    else:
        remove_member(tx, group, member)
    return StreamsGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch, status=())


def request_shutdown(group: StreamsGroup, member_id: str) -> None:
    """Note that a member wants the application to stop. The first one counts."""
    if group.soft.shutdown_member is None:
        group.soft.shutdown_member = member_id


def remove_member(tx: Transaction, group: StreamsGroup, member: StreamsMember) -> None:
    """Remove a member, and increase the group epoch so that its tasks go to others."""
    remove_members(tx, group, (member,))


def remove_members(tx: Transaction, group: StreamsGroup, members: Sequence[StreamsMember]) -> None:
    """Remove members. The group becomes a classic one if only members of the classic protocol are left."""
    if not members:
        return
    if may_downgrade(tx, group, members):
        downgrade(tx, group, members)
        return
    group_id, epoch, last = group.group_id, group.epoch + 1, len(group.members) == len(members)
    metadata = records.metadata_record(group, epoch=epoch)
    for member in members:
        for key, value in records.member_tombstones(group_id, member.member_id):
            tx.emit(key, value)
    tx.emit(*metadata)
    if last:
        tx.emit(*records.assignment_record(group_id, epoch, 0))
    for member in members:
        for timer in (session_key, rebalance_key, join_key, sync_key):
            tx.stop_timer(timer(group_id, member.member_id))


def schedule_session_timeout(tx: Transaction, group: StreamsGroup, member: StreamsMember) -> None:
    """End the member if it is silent for the session timeout: that of its group, or its own in the classic protocol."""
    timeout = tx.group_config(group.group_id).streams_session_timeout_ms
    if member.classic is not None:
        timeout = member.classic.session_timeout_ms
    schedule_session(tx, group, member.member_id, timeout, remove_member)


def schedule_rebalance_timeout(tx: Transaction, group: StreamsGroup, member: StreamsMember) -> None:
    """End the member if it has not given up its tasks within its rebalance timeout."""
    timeout = member.metadata.rebalance_timeout_ms
    schedule_rebalance(tx, group, member.member_id, member.epoch, timeout, remove_member)


def loaded(tx: Transaction, group: StreamsGroup) -> None:
    """Schedule the timers of all members after the group was loaded."""
    for member_id in walk(group.members):
        member = group.members[member_id]
        schedule_session_timeout(tx, group, member)
        if member.is_revoking and member.classic is None:
            schedule_rebalance_timeout(tx, group, member)
