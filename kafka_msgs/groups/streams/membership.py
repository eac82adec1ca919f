"""The sender of a heartbeat: finding or creating its group and member, and updating the member."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.modern_group import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    fenced_epoch,
    static_member_of_request,
    unreleased_instance,
)
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.records import RECORDS
from kafka_msgs.groups.streams.tasks import NO_TARGET, TaskId, TaskIds
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_member_metadata_value import Endpoint, KeyValue, StreamsGroupMemberMetadataValue

__all__ = ["dynamic_member", "needs_rebalance", "reported", "static_member"]


def dynamic_member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsGroupMember:
    """Return the member of a heartbeat without an instance id. A member that joins may be new."""
    if request.member_epoch == JOIN_EPOCH:
        return group.members.get(request.member_id) or StreamsGroupMember(member_id=request.member_id)
    member = group.member(request.member_id)
    check_epoch(member, request)
    return member


def static_member(
    group: StreamsGroup, request: StreamsGroupHeartbeatRequest, written: list[Record], *, is_classic: bool
) -> StreamsGroupMember:
    """Return the static member of a heartbeat. A joining member replaces the member that left temporarily.

    Static members of the classic protocol do not leave. So if the old or the new member uses that protocol, the new one
    takes over immediately.
    """
    if request.member_epoch != JOIN_EPOCH:
        member = static_member_of_request(group, request.member_id, request.instance_id)
        check_epoch(member, request)
        return member
    old = group.static_member(request.instance_id)
    if old is None:
        return group.members.get(request.member_id) or StreamsGroupMember(member_id=request.member_id)
    if old.epoch != STATIC_LEAVE_EPOCH and not is_classic and old.classic is None:
        raise unreleased_instance(request.member_id, request.instance_id, old.member_id)
    member = old.as_new_member(request.member_id)
    written += RECORDS.replacement(group, old.member_id, member, NO_TARGET)
    return member


def check_epoch(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> None:
    """Refuse a heartbeat at a wrong epoch with ``FENCED_MEMBER_EPOCH``.

    The previous epoch is also valid if all reported tasks are assigned to the member: then only the response with the
    new epoch was lost.
    """
    epoch = request.member_epoch
    if epoch == member.epoch or epoch == JOIN_EPOCH:
        return
    if epoch < member.epoch and epoch == member.previous_epoch and _owns_only_assigned(member, request):
        return
    raise fenced_epoch("streams", epoch, member.epoch)


def _owns_only_assigned(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> bool:
    assigned = member.assigned
    return (
        _within(request.active_tasks, assigned.active)
        and _within(request.standby_tasks, assigned.standby)
        and _within(request.warmup_tasks, assigned.warmup)
    )


def _within(owned: Iterable[TaskIds] | None, assigned: Iterable[TaskId]) -> bool:
    """Return whether a heartbeat lists a member's tasks in a role, and all of them are assigned to the member."""
    if owned is None:
        return False
    known = set(assigned)
    subtopologies = {subtopology for subtopology, _ in known}
    return all(
        each.subtopology_id in subtopologies
        and all((each.subtopology_id, partition) in known for partition in each.partitions)
        for each in owned
    )


def reported(
    known: StreamsGroupMemberMetadataValue, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> StreamsGroupMemberMetadataValue:
    """Return the metadata of a member after a heartbeat. Fields that the heartbeat omits do not change."""
    endpoint = request.user_endpoint
    joins = request.member_epoch == JOIN_EPOCH
    if not joins and _says_nothing_new(known, context, request):
        return known
    updated = evolve(
        known,
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=known.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        topology_epoch=known.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=context.client_id,
        client_host=context.client_host,
        process_id=known.process_id if request.process_id is None else request.process_id,
        client_tags=known.client_tags if request.client_tags is None else _tags(request),
        user_endpoint=(None if joins else known.user_endpoint)
        if endpoint is None
        else Endpoint(host=endpoint.host, port=endpoint.port),
    )
    return known if updated == known else updated


def _says_nothing_new(
    known: StreamsGroupMemberMetadataValue, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> bool:
    return (
        request.process_id is None
        and request.client_tags is None
        and request.user_endpoint is None
        and request.rebalance_timeout_ms == -1
        and (request.rack_id is None or request.rack_id == known.rack_id)
        and (request.instance_id is None or request.instance_id == known.instance_id)
        and context.client_id == known.client_id
        and context.client_host == known.client_host
    )


def _tags(request: StreamsGroupHeartbeatRequest) -> tuple[KeyValue, ...]:
    """Return the client tags in the form of the record, sorted by key."""
    tags = {tag.key: tag.value for tag in request.client_tags or ()}
    if len(tags) != len(request.client_tags or ()):
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return tuple(KeyValue(key=key, value=tags[key]) for key in sorted(tags))


def needs_rebalance(old: StreamsGroupMemberMetadataValue, new: StreamsGroupMemberMetadataValue) -> bool:
    """Return whether a change of a static member's metadata requires a new assignment."""
    return (old.topology_epoch, old.rack_id, old.client_tags, old.process_id) != (
        new.topology_epoch,
        new.rack_id,
        new.client_tags,
        new.process_id,
    )
