"""SyncGroup to a classic group: the leader gives the assignment, and each member gets its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.api import operation_error
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.membership import Membership
from kafka_msgs.groups.classic.rebalance import (
    assign,
    emit_metadata,
    fail_sync,
    rebalance_or_complete,
    stop_waiting_for_syncs,
)
from kafka_msgs.groups.classic.states import ClassicState
from kafka_msgs.groups.metrics import CLASSIC_REBALANCES
from kafka_msgs.groups.promise import Promise
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from kafka_msgs.groups.classic.members import ClassicMember
    from kafka_msgs.groups.transaction import Transaction

__all__ = ["sync_classic_group"]


def sync_classic_group(
    tx: Transaction, group: ClassicGroup, request: SyncGroupRequest, answer: Promise[SyncGroupResponse]
) -> None:
    """Give a member its assignment. ``answer`` waits for the leader, and for the record of the generation."""
    live = group.live
    try:
        member = _validate(live, request)
    except GroupError as error:
        answer.resolve(SyncGroupResponse(error_code=error.error))
        return
    stop_waiting_for_syncs(tx, group, member.member_id)
    if live.state is ClassicState.STABLE:
        answer.resolve(
            SyncGroupResponse(
                protocol_type=live.protocol_type, protocol_name=live.protocol_name, assignment=member.assignment
            )
        )
        return
    member.syncing = answer
    if live.leader == member.member_id:
        _take_assignments(tx, group, request)


def _validate(live: Membership, request: SyncGroupRequest) -> ClassicMember:
    if live.state is ClassicState.DEAD:
        raise GroupError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = live.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != live.generation:
        raise GroupError(error=ErrorCode.ILLEGAL_GENERATION)
    asked = ((request.protocol_type, live.protocol_type), (request.protocol_name, live.protocol_name))
    if any(given is not None and known is not None and given != known for given, known in asked):
        raise GroupError(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if live.state is ClassicState.PREPARING_REBALANCE:
        raise GroupError(error=ErrorCode.REBALANCE_IN_PROGRESS)
    return member


def _take_assignments(tx: Transaction, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Record the assignments of the leader. The members get them when the record is committed."""
    live = group.live
    assignments = {each.member_id: each.assignment for each in request.assignments}

    def appended(error: GroupError | None) -> None:
        if live.state is not ClassicState.COMPLETING_REBALANCE or live.generation != request.generation_id:
            return
        if error is None:
            assign(tx, group, assignments)
            tx.metrics.record(CLASSIC_REBALANCES)
        else:
            fail_sync(tx, group, operation_error(error).error)
            rebalance_or_complete(tx, group)

    tx.after_append(appended)
    emit_metadata(tx, group.group_id, live.metadata(assignments))
