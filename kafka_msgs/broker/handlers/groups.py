"""The APIs of group members, and the APIs that list, describe and delete groups.

The coordinator of a group determines the response. These handlers check authorization and complete the response: they
add authorized operations and remove topics that the client must not see. The source is ``kafka.server.KafkaApis``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import evolve, frozen

from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_msgs.messages.consumer_group_describe_response import DescribedGroup as ConsumerGroup
from kafka_msgs.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_msgs.messages.delete_groups_request import DeleteGroupsRequest
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.list_groups_response import ListGroupsResponse
from kafka_msgs.messages.share_group_describe_request import ShareGroupDescribeRequest
from kafka_msgs.messages.share_group_describe_response import DescribedGroup as ShareGroup
from kafka_msgs.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.wire import error_response

__all__ = ["HANDLERS", "DescribeGroupsApi", "attach", "check_share_member", "describe"]

_NAMES_SINCE: Final = 5
_LONGEST_MEMBER_ID: Final = 36
"""The first version of SyncGroup that requires the protocol type and name, and the maximum member id length.

The length applies to share groups.
"""

_NO_NAMES_SINCE: Final = 7
"""The first version in which JoinGroup returns null instead of an empty protocol name."""

attach = GroupCoordinatorService.attach


_host = GroupCoordinatorService.of_call


def _member(call: ServerCall[Any]) -> None:
    call.require_group(call.request.group_id)
    _host(call).handle(call)


def _join(call: ServerCall[JoinGroupRequest]) -> None:
    call.require_group(call.request.group_id)

    def named(response: JoinGroupResponse) -> None:
        name = response.protocol_name or None
        call.respond(evolve(response, protocol_name=name if call.version >= _NO_NAMES_SINCE else name or ""))

    _host(call).handle(call, reply=named)


def _sync(call: ServerCall[SyncGroupRequest]) -> None:
    if call.version >= _NAMES_SINCE and None in (call.request.protocol_type, call.request.protocol_name):
        raise RequestRefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    _member(call)


def check_share_member(member_id: str | None) -> None:
    """Raise ``RequestRefusedError`` for an invalid share group member id: none, or one longer than a UUID."""
    if not member_id or len(member_id) > _LONGEST_MEMBER_ID:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)


def _heartbeat(call: ServerCall[Any]) -> None:
    call.require_group(call.request.group_id)
    call.require(AclOperation.DESCRIBE, ResourceType.TOPIC, *(call.request.subscribed_topic_names or ()))
    _host(call).handle(call)


def _share_heartbeat(call: ServerCall[ShareGroupHeartbeatRequest]) -> None:
    call.require_group(call.request.group_id)
    check_share_member(call.request.member_id)
    _heartbeat(call)


def _list(call: ServerCall[ListGroupsRequest]) -> None:
    def visible(response: ListGroupsResponse) -> None:
        if not call.allows_cluster(AclOperation.DESCRIBE):
            groups = response.groups
            seen = (each for each in groups if call.allows(AclOperation.DESCRIBE, ResourceType.GROUP, each.group_id))
            response = evolve(response, groups=tuple(seen))
        call.respond(response)

    _host(call).handle(call, reply=visible)


@frozen(kw_only=True)
class DescribeGroupsApi:
    """An API about several groups: the request and response fields that list the groups.

    ``operation`` is the required permission, and ``stricter`` replaces it in a profile with ``stricter_permissions``.
    ``topics`` returns the topics in a response element. An element with a topic that the client may not see is replaced
    by an error with the message ``hidden``.
    """

    groups: str
    results: str
    operation: AclOperation = AclOperation.DESCRIBE
    stricter: AclOperation | None = None
    topics: Callable[[Any], Iterator[str]] | None = None
    hidden: str = "The group has described topic(s) that the client is not authorized to describe."


def describe(api: DescribeGroupsApi) -> Callable[[ServerCall[Any]], None]:
    """Return a handler for an API about several groups."""

    def run(call: ServerCall[Any]) -> None:
        request = call.request
        names: tuple[str, ...] = getattr(request, api.groups)
        strict = call.cluster.config.profile.streams.stricter_permissions
        operation = api.stricter if strict and api.stricter is not None else api.operation
        may = {name: call.allows(operation, ResourceType.GROUP, name) for name in names}
        allowed = tuple(name for name in names if may[name])
        refused = tuple(name for name in names if not may[name])
        forbidden = ()
        if refused:
            part = evolve(request, **{api.groups: refused})
            failure = error_response(part, ErrorCode.GROUP_AUTHORIZATION_FAILED, call.version)
            forbidden = getattr(failure, api.results)

        def shown(response: Any) -> None:
            elements = [_with_operations(call, _visible(call, api, each)) for each in getattr(response, api.results)]
            call.respond(evolve(response, **{api.results: (*forbidden, *elements)}))

        _host(call).handle(call, evolve(request, **{api.groups: allowed}), shown)

    return run


def _with_operations(call: ServerCall[Any], element: Any) -> Any:
    asked = getattr(call.request, "include_authorized_operations", False)
    if not asked or element.error_code:
        return element
    return evolve(element, authorized_operations=call.operations(ResourceType.GROUP, element.group_id))


def _visible(call: ServerCall[Any], api: DescribeGroupsApi, element: Any) -> Any:
    if api.topics is None or call.cluster.authorizer is None:
        return element
    if all(call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, name) for name in set(api.topics(element))):
        return element
    return type(element)(
        group_id=element.group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=api.hidden
    )


def _consumer_topics(group: ConsumerGroup) -> Iterator[str]:
    for member in group.members:
        for assignment in (member.assignment, member.target_assignment):
            yield from (each.topic_name for each in assignment.topic_partitions)


def _share_topics(group: ShareGroup) -> Iterator[str]:
    for member in group.members:
        yield from (each.topic_name for each in member.assignment.topic_partitions)


HANDLERS: Final = (
    ApiHandler(JoinGroupRequest, _join),
    ApiHandler(SyncGroupRequest, _sync),
    ApiHandler(HeartbeatRequest, _member),
    ApiHandler(LeaveGroupRequest, _member),
    ApiHandler(ConsumerGroupHeartbeatRequest, _heartbeat),
    ApiHandler(ShareGroupHeartbeatRequest, _share_heartbeat),
    ApiHandler(ListGroupsRequest, _list),
    ApiHandler(DescribeGroupsRequest, describe(DescribeGroupsApi(groups="groups", results="groups"))),
    ApiHandler(
        ConsumerGroupDescribeRequest,
        describe(DescribeGroupsApi(groups="group_ids", results="groups", topics=_consumer_topics)),
    ),
    ApiHandler(
        ShareGroupDescribeRequest,
        describe(DescribeGroupsApi(groups="group_ids", results="groups", topics=_share_topics)),
    ),
    ApiHandler(
        DeleteGroupsRequest,
        describe(DescribeGroupsApi(groups="groups_names", results="results", operation=AclOperation.DELETE)),
    ),
)
