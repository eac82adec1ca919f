"""What happens to a classic group when its partition is loaded, and when it is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.rebalance import expect_heartbeat, prepare_rebalance
from kafka_msgs.groups.classic.states import ClassicState
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from kafka_msgs.groups.transaction import Transaction

__all__ = ["group_loaded", "group_unloaded"]


def group_loaded(tx: Transaction, group: ClassicGroup) -> None:
    """Expect heartbeats of the members again. A group with too many members must rebalance."""
    live = group.live
    for member in live.members:
        expect_heartbeat(tx, group, member)
    if len(live.members) > tx.config.group_max_size:
        prepare_rebalance(tx, group)


def group_unloaded(tx: Transaction, group: ClassicGroup) -> None:
    """Send those who wait to another coordinator."""
    live = group.live
    before = live.state
    live.move(ClassicState.DEAD, tx.now)
    for member in live.members:
        if before is ClassicState.PREPARING_REBALANCE:
            refused = JoinGroupResponse(error_code=ErrorCode.NOT_COORDINATOR, member_id=member.member_id)
            live.answer_join(member, refused)
        else:
            member.answer_sync(SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))
