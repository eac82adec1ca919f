"""The requests of the classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and DescribeGroups.

This module routes each request by the kind of its group. A consumer group, and a streams group of the ``page`` profile,
may have members of the classic protocol: their requests go to the ``ClassicMemberSupport`` of the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.classic.group import ClassicGroup, apply_group_metadata
from kafka_msgs.groups.classic.member_requests import (
    JoinContext,
    group_loaded,
    group_unloaded,
    join_classic_group,
    leave_classic_group,
    sync_classic_group,
)
from kafka_msgs.groups.classic.members import ClassicGroupState
from kafka_msgs.groups.classic.rebalance import schedule_heartbeat_timeout
from kafka_msgs.groups.classic_support import ClassicMemberSupport, member_response
from kafka_msgs.groups.consumer import classic_members as consumer
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.group import Group
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.group_protocol import GroupProtocol, MultiGroupApi, SingleGroupApi, check_group_id
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.streams.description_cleanup import delete_description_then, has_description
from kafka_msgs.groups.streams.extension import streams_extension
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.describe_groups_response import DescribedGroup, DescribeGroupsResponse
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.heartbeat_response import HeartbeatResponse
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.leave_group_response import LeaveGroupResponse
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = ["PROTOCOL"]

_NULL_PROTOCOL_FROM: Final = 7
_SEVERAL_LEAVE_FROM: Final = 3
_NAMED_PROTOCOL_FROM: Final = 5


def join_future(answer: Future[JoinGroupResponse], version: int) -> Future[JoinGroupResponse]:
    """Return a future that settles ``answer``. A missing protocol name is null, or empty at versions without null."""

    def settle(promise: Future[JoinGroupResponse]) -> None:
        response = promise.value
        assert response is not None
        name = response.protocol_name or (None if version >= _NULL_PROTOCOL_FROM else "")
        answer.resolve(evolve(response, protocol_name=name))

    inner: Future[JoinGroupResponse] = Future()
    inner.add_done_callback(settle)
    return inner


_NOT_FOUND_FROM: Final = 6
"""The first version of DescribeGroups that reports an error for a group that does not exist (KIP-1043)."""

_WRONG_JOIN: Final = frozenset({ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_SESSION_TIMEOUT})
"""The errors of an invalid JoinGroup request whose responses repeat the member id."""


def _speech(op: OperationContext, group: Group | None) -> ClassicMemberSupport[Any, Any] | None:
    """Return the classic protocol support of a group; None for a classic group or a group without support."""
    if isinstance(group, ConsumerGroup):
        return consumer.CLASSIC_SUPPORT
    extension = streams_extension(op) if isinstance(group, StreamsGroup) else None
    return None if extension is None else extension.CLASSIC_SUPPORT


# JoinGroup.


def _check_join(services: GroupServices, context: RequestContext, request: JoinGroupRequest) -> None:
    check_group_id(services, context, request)
    config = services.config
    low, high = config.group_min_session_timeout_ms, config.group_max_session_timeout_ms
    if not low <= request.session_timeout_ms <= high:
        raise GroupError(ErrorCode.INVALID_SESSION_TIMEOUT)


def join(
    op: OperationContext, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Future[JoinGroupResponse]:
    """Handle a member that joins a group. The response comes when the next generation begins, or with an error.

    An empty streams group becomes a classic group after the plugin has deleted its topology descriptions.
    """
    group = op.state.groups.get(request.group_id)
    if group is None or not group.is_empty or not has_description(op, group):
        return _join(op, context, request)
    answer: Future[JoinGroupResponse] = op.new_future()

    def join_again(step: OperationContext) -> None:
        found = _join(step, context, request)
        if isinstance(found, Future):
            found.add_done_callback(answer.copy_from)
        else:
            answer.resolve(found)

    def settle(ready: Future[bool]) -> None:
        if ready.error is not None:
            answer.fail(ready.error)
        elif not ready.value:
            later = JoinGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS, member_id=request.member_id)
            join_future(answer, context.version).resolve(later)

    op.on_committed(
        lambda error: (
            None if error else delete_description_then(op, request.group_id, join_again).add_done_callback(settle)
        )
    )
    return answer


def _join(
    op: OperationContext, context: RequestContext, request: JoinGroupRequest
) -> JoinGroupResponse | Future[JoinGroupResponse]:
    converts = not op.quirks.versions_unread
    if converts and not context.version:
        # Version 0 has no rebalance timeout.
        request = evolve(request, rebalance_timeout_ms=request.session_timeout_ms)
    group = op.state.groups.get(request.group_id)
    speech = _speech(op, group)
    if speech is not None and group is not None and not group.is_empty:
        return speech.join(op, context, group, request)
    answer: Future[JoinGroupResponse] = op.new_future()
    settled = join_future(answer, context.version) if converts else answer
    step = JoinContext(op=op, context=context, request=request, future=settled)
    if group is None or group.kind == "classic" or (group.kind != "share" and group.is_empty):
        join_classic_group(step)
    else:
        step.refuse(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    return answer


def _refuse_join(request: JoinGroupRequest, error: GroupError, version: int) -> JoinGroupResponse:
    member_id = request.member_id if error.error in _WRONG_JOIN else ""
    return JoinGroupResponse(error_code=error.error, member_id=member_id)


# SyncGroup.


def sync(
    op: OperationContext, context: RequestContext, request: SyncGroupRequest
) -> SyncGroupResponse | Future[SyncGroupResponse]:
    """Return the assignment of a member, as soon as the leader has sent it."""
    named = request.protocol_type is not None and request.protocol_name is not None
    if context.version >= _NAMED_PROTOCOL_FROM and not named and not op.quirks.versions_unread:
        raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    group = op.state.groups.get(request.group_id)
    speech = _speech(op, group)
    if speech is not None and group is not None and not group.is_empty:
        return speech.sync(op, group, request)
    answer: Future[SyncGroupResponse] = op.new_future()
    if group is None or group.is_empty or not isinstance(group, ClassicGroup):
        answer.resolve(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    else:
        sync_classic_group(op, group, request, answer)
    return answer


# Heartbeat.


def heartbeat(op: OperationContext, context: RequestContext, request: HeartbeatRequest) -> HeartbeatResponse:
    """Keep a member in its group. The response tells the member to rejoin if it must."""
    group = op.state.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        return _heartbeat_of_member(op, group, request)
    speech = _speech(op, group)
    if speech is not None:
        return speech.heartbeat(op, group, request)
    raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)


def _heartbeat_of_member(op: OperationContext, group: ClassicGroup, request: HeartbeatRequest) -> HeartbeatResponse:
    live = group.live
    if live.state is ClassicGroupState.DEAD:
        raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    member = live.validate_member(request.member_id, request.group_instance_id)
    if request.generation_id != live.generation:
        raise GroupError(ErrorCode.ILLEGAL_GENERATION)
    schedule_heartbeat_timeout(op, group, member)
    preparing = live.state is ClassicGroupState.PREPARING_REBALANCE
    return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE)


def _refuse_heartbeat(request: HeartbeatRequest, error: GroupError, version: int) -> HeartbeatResponse:
    """Return the response to a refused heartbeat. While the partition is loading, it has no error, as in Kafka."""
    loading = error.error == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if loading else error.error)


# LeaveGroup.


def leave(op: OperationContext, context: RequestContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove members from a group. At old versions it is one member, and the response has no list."""
    if op.quirks.versions_unread or context.version >= _SEVERAL_LEAVE_FROM:
        return _leave(op, request)
    try:
        answer = _leave(op, evolve(request, member_id="", members=(MemberIdentity(member_id=request.member_id),)))
    except GroupError as error:
        return LeaveGroupResponse(error_code=error.error)
    return LeaveGroupResponse(error_code=answer.error_code or answer.members[0].error_code)


def _leave(op: OperationContext, request: LeaveGroupRequest) -> LeaveGroupResponse:
    group = op.state.groups.get(request.group_id)
    if isinstance(group, ClassicGroup):
        return leave_classic_group(op, group, request)
    speech = _speech(op, group)
    if speech is not None:
        return speech.leave(op, group, request)
    raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)


def _refuse_leave(request: LeaveGroupRequest, error: GroupError, version: int) -> LeaveGroupResponse:
    if error.error == ErrorCode.UNKNOWN_MEMBER_ID:
        return LeaveGroupResponse(members=tuple(member_response(identity, error.error) for identity in request.members))
    return LeaveGroupResponse(error_code=error.error)


# DescribeGroups.


def describe(
    op: OperationContext, context: RequestContext, request: DescribeGroupsRequest, group_ids: Sequence[str]
) -> list[DescribedGroup]:
    """Describe classic groups."""
    described = []
    for group_id in group_ids:
        group = op.state.groups.get(group_id)
        if isinstance(group, ClassicGroup):
            described.append(group.describe())
            continue
        shown = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
        if context.version >= _NOT_FOUND_FROM:
            reason = "not found" if group is None else "is not a classic group"
            message = f"Group {group_id} {reason}."
            shown = evolve(shown, error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message=message)
        described.append(shown)
    return described


PROTOCOL: Final = GroupProtocol(
    apis=(
        SingleGroupApi(request=JoinGroupRequest, handle=join, refuse=_refuse_join, check=_check_join),
        SingleGroupApi(request=SyncGroupRequest, handle=sync),
        SingleGroupApi(request=HeartbeatRequest, handle=heartbeat, refuse=_refuse_heartbeat),
        SingleGroupApi(request=LeaveGroupRequest, handle=leave, refuse=_refuse_leave),
        MultiGroupApi(
            request=DescribeGroupsRequest,
            groups=lambda request, version: ((group_id, group_id) for group_id in request.groups),
            handle=describe,
            refuse=lambda group_id, error, version: DescribedGroup(error_code=error.error, group_id=group_id),
            respond=lambda request, groups, version: DescribeGroupsResponse(groups=tuple(groups)),
        ),
    ),
    appliers={GroupMetadataKey: apply_group_metadata},
    on_loaded={"classic": group_loaded},
    on_unloaded={"classic": group_unloaded},
)
"""The classic group protocol, for the coordinator."""
