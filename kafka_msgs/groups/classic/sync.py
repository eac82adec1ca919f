"""SyncGroup to a classic group: the leader sends the assignments, and each member gets its own."""

from __future__ import annotations

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.classic.classic_state import ClassicGroupState
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic.live_group import LiveGroup
from kafka_msgs.groups.classic.members import ClassicGroupMember
from kafka_msgs.groups.classic.rebalance import (
    emit_metadata,
    maybe_prepare_rebalance_or_complete_join,
    remove_pending_sync,
    reset_and_propagate_assignment,
    set_and_propagate_assignment,
)
from kafka_msgs.groups.group_protocol import client_error_for
from kafka_msgs.groups.metrics import CLASSIC_REBALANCES
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = ["sync_classic_group"]


def sync_classic_group(
    op: OperationContext, group: ClassicGroup, request: SyncGroupRequest, answer: Future[SyncGroupResponse]
) -> None:
    """Settle ``answer`` with a member's assignment, when the generation's record is committed, or an error."""
    live = group.live
    try:
        member = _validate(live, request)
    except GroupError as error:
        answer.resolve(SyncGroupResponse(error_code=error.error))
        return
    remove_pending_sync(op, group, member.member_id)
    if live.state is ClassicGroupState.STABLE:
        answer.resolve(
            SyncGroupResponse(
                protocol_type=live.protocol_type, protocol_name=live.protocol_name, assignment=member.assignment
            )
        )
        return
    member.syncing = answer
    if live.leader == member.member_id:
        _take_assignments(op, group, request)


def _validate(live: LiveGroup, request: SyncGroupRequest) -> ClassicGroupMember:
    if live.state is ClassicGroupState.DEAD:
        raise GroupError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = live.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != live.generation:
        raise GroupError(error=ErrorCode.ILLEGAL_GENERATION)
    asked = ((request.protocol_type, live.protocol_type), (request.protocol_name, live.protocol_name))
    if any(given is not None and known is not None and given != known for given, known in asked):
        raise GroupError(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if live.state is ClassicGroupState.PREPARING_REBALANCE:
        raise GroupError(error=ErrorCode.REBALANCE_IN_PROGRESS)
    return member


def _take_assignments(op: OperationContext, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Record the assignments of the leader. The members get them when the record is committed."""
    live = group.live
    assignments = {each.member_id: each.assignment for each in request.assignments}

    def appended(error: ApiError | None) -> None:
        if live.state is not ClassicGroupState.COMPLETING_REBALANCE or live.generation != request.generation_id:
            return
        if error is None:
            set_and_propagate_assignment(op, group, assignments)
            op.metrics.record(CLASSIC_REBALANCES)
        else:
            reset_and_propagate_assignment(op, group, client_error_for(error).error)
            maybe_prepare_rebalance_or_complete_join(op, group)

    op.on_committed(appended)
    emit_metadata(op, group.group_id, live.metadata(assignments))
