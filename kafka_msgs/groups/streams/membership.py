"""The report of a heartbeat: the tasks of the member, and its metadata."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.modern_group import JOIN_EPOCH
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.tasks import TaskId, TaskIds
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_member_metadata_value import Endpoint, KeyValue, StreamsGroupMemberMetadataValue

__all__ = ["needs_rebalance", "owns_only_assigned", "reported"]


def owns_only_assigned(member: StreamsGroupMember, request: StreamsGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat lists a member's tasks, and all of them are assigned to the member."""
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
