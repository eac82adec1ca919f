"""Groups of every type: list, describe, delete, and remove members.

Each type has a separate request. ``describe_groups`` determines which one to send.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypedDict

from attrs import frozen

from kafka_msgs.admin.fan_out import CoordinatorFanOut, fan_out_to_brokers, seconds_left
from kafka_msgs.admin.group_descriptions import (
    AnyGroupDescription,
    GroupDescription,
    GroupListing,
    GroupMember,
    describe_from_classic_group,
    describe_from_consumer_group,
    describe_from_share_group,
    listing_from_response,
)
from kafka_msgs.admin.results import (
    Outcome,
    PartialList,
    Results,
    api_name,
    broker_error,
    no_value,
    outcomes,
    raise_top_level,
)
from kafka_msgs.admin.streams_groups import StreamsGroupDescription, describe_streams_groups
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.enums import GroupState, GroupType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, UnsupportedVersionError
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_msgs.messages.delete_groups_request import DeleteGroupsRequest
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.leave_group_response import LeaveGroupResponse
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.share_group_describe_request import ShareGroupDescribeRequest

__all__ = [
    "AnyGroupDescription",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "MemberToRemove",
    "delete_groups",
    "describe_classic_groups",
    "describe_consumer_groups",
    "describe_groups",
    "describe_share_groups",
    "list_groups",
    "remove_group_members",
]


@frozen
class MemberToRemove:
    """A member to remove: by its member id, or a static member by its instance id."""

    member_id: str = ""
    instance_id: str | None = None


def list_groups(
    client: ClientCore,
    *,
    types: Collection[GroupType] = (),
    states: Collection[GroupState] = (),
    timeout: float | None = None,
) -> Flow[PartialList[GroupListing]]:
    """Return the groups of all coordinators: of these types and states, or all (KIP-518, KIP-848).

    A broker that does not support a filter fails with an error.
    """
    deadline = client.deadline(timeout)
    request = ListGroupsRequest(states_filter=tuple(map(str, states)), types_filter=tuple(map(str, types)))

    def ask(broker_id: int) -> Flow[tuple[GroupListing, ...]]:
        response = yield from client.call(request, broker_id=broker_id, deadline=deadline)
        raise_top_level(response, api_name(request), broker_id)
        return tuple(map(listing_from_response, response.groups))

    answers = yield from fan_out_to_brokers(client, ask, deadline=deadline)
    return PartialList(tuple(each for part in answers.ok.values() for each in part), answers.errors)


def describe_groups(
    client: ClientCore,
    group_ids: Collection[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str, AnyGroupDescription]]:
    """Describe groups of any type. It lists the groups first, because each type has a separate request.

    A group that is not listed is described as a classic group, so that the broker returns its error. If a broker
    could not list its groups, its error is the outcome of each group that no other broker listed.
    """
    deadline = client.deadline(timeout)
    listed = yield from list_groups(client, timeout=seconds_left(client, deadline))
    types = {group.group_id: group.type for group in listed.items}
    by_type: dict[GroupType, list[str]] = {}
    found: dict[str, Outcome[AnyGroupDescription]] = {}
    for group_id in dict.fromkeys(group_ids):
        if group_id in types or not listed.errors:
            by_type.setdefault(types.get(group_id, GroupType.CLASSIC), []).append(group_id)
        else:
            found[group_id] = next(iter(listed.errors.values()))
    for kind, ids in by_type.items():
        options = _Options(
            include_authorized_operations=include_authorized_operations, timeout=seconds_left(client, deadline)
        )
        found |= (yield from _describe(client, kind, ids, options)).outcomes
    return Results({group_id: found[group_id] for group_id in group_ids})


def describe_consumer_groups(
    client: ClientCore,
    group_ids: Collection[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str, GroupDescription]]:
    """Describe consumer groups of both protocols: the consumer protocol (KIP-848), and the classic protocol."""
    deadline = client.deadline(timeout)
    found = yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=deadline).each(
        group_ids,
        lambda ids: ConsumerGroupDescribeRequest(
            group_ids=tuple(ids), include_authorized_operations=include_authorized_operations
        ),
        lambda response: ((each.group_id, each) for each in response.groups),
        describe_from_consumer_group,
    )
    others = [group_id for group_id, error in found.errors.items() if _is_other(error)]
    if not others:
        return found
    classic_ones = yield from describe_classic_groups(
        client,
        others,
        include_authorized_operations=include_authorized_operations,
        timeout=seconds_left(client, deadline),
    )
    return Results({**found.outcomes, **classic_ones.outcomes})


def _is_other(error: Exception) -> bool:
    """Whether a group may be a classic one: it is not a consumer group, or the broker does not support them."""
    if isinstance(error, BrokerError):
        return error.error in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)
    return isinstance(error, UnsupportedVersionError)


def describe_classic_groups(
    client: ClientCore,
    group_ids: Collection[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str, GroupDescription]]:
    """Describe classic groups of any protocol type; only members of consumer groups are decoded.

    A missing group is in the state ``DEAD`` if the broker is older than Kafka 4.0, otherwise an error.
    """
    return (
        yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=client.deadline(timeout)).each(
            group_ids,
            lambda ids: DescribeGroupsRequest(
                groups=tuple(ids), include_authorized_operations=include_authorized_operations
            ),
            lambda response: ((each.group_id, each) for each in response.groups),
            describe_from_classic_group,
        )
    )


def describe_share_groups(
    client: ClientCore,
    group_ids: Collection[str],
    *,
    include_authorized_operations: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str, GroupDescription]]:
    """Describe share groups (KIP-932)."""
    return (
        yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=client.deadline(timeout)).each(
            group_ids,
            lambda ids: ShareGroupDescribeRequest(
                group_ids=tuple(ids), include_authorized_operations=include_authorized_operations
            ),
            lambda response: ((each.group_id, each) for each in response.groups),
            describe_from_share_group,
        )
    )


class _Options(TypedDict):
    include_authorized_operations: bool
    timeout: float


def _describe(
    client: ClientCore, kind: GroupType, ids: Collection[str], options: _Options
) -> Flow[Results[str, GroupDescription] | Results[str, StreamsGroupDescription]]:
    """Describe groups of one type."""
    if kind is GroupType.STREAMS:
        return (yield from describe_streams_groups(client, ids, **options))
    describe = {GroupType.CLASSIC: describe_classic_groups, GroupType.SHARE: describe_share_groups}
    return (yield from describe.get(kind, describe_consumer_groups)(client, ids, **options))


def delete_groups(
    client: ClientCore, group_ids: Collection[str], *, timeout: float | None = None
) -> Flow[Results[str, None]]:
    """Delete groups of any type, with their offsets. A group with members fails with ``NON_EMPTY_GROUP``."""
    return (
        yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=client.deadline(timeout)).each(
            group_ids,
            lambda ids: DeleteGroupsRequest(groups_names=tuple(ids)),
            lambda response: ((each.group_id, each) for each in response.results),
            lambda item, broker: None,
        )
    )


def remove_group_members(
    client: ClientCore,
    group_id: str,
    members: Collection[MemberToRemove] | None = None,
    *,
    reason: str | None = None,
    timeout: float | None = None,
) -> Flow[Results[MemberToRemove, None]]:
    """Remove members from a classic group, or all of them (KIP-345). ``reason`` is for the broker's log (KIP-800).

    Members of other groups leave only through their heartbeats: the broker refuses to remove them.
    """
    deadline = client.deadline(timeout)
    wanted = (
        tuple(members)
        if members is not None
        else (yield from _members(client, group_id, seconds_left(client, deadline)))
    )
    request = LeaveGroupRequest(
        group_id=group_id,
        members=tuple(
            MemberIdentity(member_id=each.member_id, group_instance_id=each.instance_id, reason=reason)
            for each in wanted
        ),
    )

    api = api_name(request)

    def read(response: LeaveGroupResponse) -> Outcome[Results[MemberToRemove, None]]:
        items = zip(wanted, response.members, strict=False)
        return broker_error(response, api, group_id) or outcomes(api, items, no_value, wanted)

    return (yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=deadline).one(group_id, request, read))


def _members(client: ClientCore, group_id: str, timeout: float) -> Flow[tuple[MemberToRemove, ...]]:
    described = yield from describe_classic_groups(client, [group_id], timeout=timeout)
    return tuple(
        MemberToRemove(instance_id=each.instance_id) if each.instance_id else MemberToRemove(each.member_id)
        for each in described[group_id].members
    )
