"""Conversion between classic groups and consumer groups: the classic side."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.live_group import LiveGroup
from kafka_msgs.groups.classic.members import ClassicGroupMember
from kafka_msgs.groups.classic.rebalance import emit_metadata, prepare_rebalance, schedule_heartbeat_timeout
from kafka_msgs.groups.classic_support import DualProtocolMember
from kafka_msgs.groups.consumer_protocol import CONSUMER_PROTOCOL
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.messages.join_group_request import JoinGroupRequestProtocol
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
    staying: Iterable[DualProtocolMember],
    assignment: Callable[[ClassicGroupMember, bytes], bytes],
    *,
    rebalance: bool,
) -> None:
    """Create a classic group of consumers, and record it.

    ``staying`` are members of a group with epochs that use the classic protocol. ``assignment`` returns the assignment
    of a member as bytes, from its metadata for the protocol of the group. The members must rejoin if ``rebalance`` is
    set. No group of that name may exist.
    """
    live = LiveGroup.from_consumers(generation, map(_classic_member, staying), op.now)
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


def _classic_member(member: DualProtocolMember) -> ClassicGroupMember:
    classic = member.classic
    assert classic is not None
    return ClassicGroupMember(
        member_id=member.member_id,
        instance_id=member.metadata.instance_id,
        client_id=member.metadata.client_id,
        client_host=member.metadata.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=classic.session_timeout_ms,
        protocol_type=CONSUMER_PROTOCOL,
        protocols=tuple(
            JoinGroupRequestProtocol(name=each.name, metadata=each.metadata) for each in classic.supported_protocols
        ),
    )
