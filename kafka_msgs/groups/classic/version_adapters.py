"""Version adapters for requests with missing fields and responses that cannot express a result.

In Kafka the broker does this before and after its coordinator, in ``KafkaApis`` and in the request and response
classes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.leave_group_response import LeaveGroupResponse
from kafka_msgs.messages.sync_group_request import SyncGroupRequest

__all__ = ["check_sync", "join_future", "leave_single", "with_rebalance_timeout"]

_NULL_PROTOCOL_FROM: Final = 7
_SEVERAL_LEAVE_FROM: Final = 3
_NAMED_PROTOCOL_FROM: Final = 5


def with_rebalance_timeout(request: JoinGroupRequest, version: int) -> JoinGroupRequest:
    """Return the request with a rebalance timeout. Version 0 has none, so the session timeout is used."""
    return request if version else evolve(request, rebalance_timeout_ms=request.session_timeout_ms)


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


def check_sync(request: SyncGroupRequest, version: int) -> None:
    """Refuse a request without its protocol at a version that has the protocol fields. Raises ``GroupError``."""
    named = request.protocol_type is not None and request.protocol_name is not None
    if version >= _NAMED_PROTOCOL_FROM and not named:
        raise GroupError(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)


def leave_single(
    leave: Callable[[LeaveGroupRequest], LeaveGroupResponse], request: LeaveGroupRequest, version: int
) -> LeaveGroupResponse:
    """Remove the members of a request. At old versions it is one member, and the response has no list."""
    if version >= _SEVERAL_LEAVE_FROM:
        return leave(request)
    try:
        answer = leave(evolve(request, member_id="", members=(MemberIdentity(member_id=request.member_id),)))
    except GroupError as error:
        return LeaveGroupResponse(error_code=error.error)
    return LeaveGroupResponse(error_code=answer.error_code or answer.members[0].error_code)
