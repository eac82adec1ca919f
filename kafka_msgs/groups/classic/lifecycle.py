"""The handling of classic groups when their partition is loaded or unloaded."""

from __future__ import annotations

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.classic.classic_state import ClassicGroupState
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.rebalance import prepare_rebalance, schedule_heartbeat_timeout
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = ["group_loaded", "group_unloaded"]


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
