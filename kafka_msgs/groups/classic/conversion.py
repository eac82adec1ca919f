"""Conversion between classic groups and consumer groups: the classic side."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.live_group import LiveGroup
from kafka_msgs.groups.classic.members import ClassicGroupMember
from kafka_msgs.groups.classic.rebalance import emit_metadata, prepare_rebalance, schedule_heartbeat_timeout
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = ["create_classic_group", "detach_members"]


def detach_members(group: ClassicGroup) -> None:
    """Make all waiting members rejoin, because the kind of their group changes."""
    for member in group.live.members:
        error = ErrorCode.REBALANCE_IN_PROGRESS
        group.live.answer_join(member, JoinGroupResponse(error_code=error, member_id=member.member_id))
    for member in group.live.members:
        member.answer_sync(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))


def create_classic_group(
    op: OperationContext,
    group_id: str,
    generation: int,
    members: Iterable[ClassicGroupMember],
    assignment: Callable[[ClassicGroupMember, bytes], bytes],
    *,
    rebalance: bool,
) -> None:
    """Create a classic group of consumers, and record it.

    ``assignment`` returns the assignment of a member as bytes, from its metadata for the protocol of the group. The
    members must rejoin if ``rebalance`` is set. No group of that name may exist.
    """
    live = LiveGroup.from_consumers(generation, members, op.now)
    for member in live.members:
        member.assignment = assignment(member, member.metadata(live.protocol_name))
    emit_metadata(op, group_id, live.metadata({member.member_id: member.assignment for member in live.members}))
    group = op.state.groups[group_id]
    assert isinstance(group, ClassicGroup)
    group.soft = live
    for member in live.members:
        schedule_heartbeat_timeout(op, group, member)
    if rebalance:
        prepare_rebalance(op, group)
