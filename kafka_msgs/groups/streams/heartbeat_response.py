"""The response to a heartbeat: its status list, missing internal topics, and the endpoints of interactive queries.

The release requests missing topics at each heartbeat, and its broker limits the attempts. The document requires one
attempt at a time with a back-off, and a detail that reports it: ``StreamsRules.limits_topic_creation``. The partitions
of a member with an endpoint are cached until its tasks, its endpoint or the topics change.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.modern_group import find_group
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.streams.configured_topology import ConfiguredTopology, StatusCode, TopologyProblem
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.soft_state import TopicCreation
from kafka_msgs.groups.streams.target_assignment import TAGS
from kafka_msgs.groups.streams.tasks import TaskId, grouped, task_ids
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import (
    Endpoint,
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatResponse,
    TaskIds,
    TopicPartition,
)

__all__ = ["all_endpoints", "answer", "creation_failed", "task_partitions"]


def all_endpoints(
    op: OperationContext, group: StreamsGroup, member: StreamsGroupMember, replaced: str | None
) -> tuple[EndpointToPartitions, ...]:
    """Return the partitions of each member with an endpoint. ``member``, which sent the heartbeat, comes last.

    ``replaced`` is the id of the static member that it replaces.
    """
    others = [group.members[each] for each in group.endpoint_members if each not in (member.member_id, replaced)]
    return tuple(_endpoint(op, group, each) for each in (*others, member) if each.metadata.user_endpoint is not None)


def _endpoint(op: OperationContext, group: StreamsGroup, member: StreamsGroupMember) -> EndpointToPartitions:
    cache = group.soft.endpoints
    found = cache.get(member.member_id)
    if found is None:
        endpoint = member.metadata.user_endpoint
        assert endpoint is not None
        found = cache[member.member_id] = EndpointToPartitions(
            user_endpoint=Endpoint(host=endpoint.host, port=endpoint.port),
            active_partitions=tuple(task_partitions(op, group, member.assigned.active)),
            standby_partitions=tuple(task_partitions(op, group, member.assigned.standby | member.assigned.warmup)),
        )
    return found


def task_partitions(op: OperationContext, group: StreamsGroup, tasks: Iterable[TaskId]) -> Iterator[TopicPartition]:
    """Return the partitions that tasks read, by topic.

    Tasks of an older topology, and missing topics, have no partitions.
    """
    configured = None if group.configured is None else group.configured.subtopologies
    if configured is None:
        _note_missing(op)
        return
    for key, numbers in grouped(tasks):
        subtopology = configured.get(key)
        if subtopology is None:
            _note_missing(op)
            continue
        for name in dict.fromkeys((*subtopology.source_topics, *subtopology.repartition_source_topics)):
            topic = op.image.topics.get(name)
            if topic is None:
                _note_missing(op)
                continue
            partitions = tuple(each for each in numbers if each < topic.partitions)
            if partitions:
                yield TopicPartition(topic=name, partitions=partitions)


def _note_missing(op: OperationContext) -> None:
    """Fail as Kafka does if the topology and the topics do not match the tasks."""
    if op.quirks.streams_endpoint_needs_topology:
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)


_FIRST_WAIT_MS: Final = 1000
_LAST_WAIT_MS: Final = 60_000


def request_internal_topics(
    op: OperationContext, group: StreamsGroup, configured: ConfiguredTopology
) -> TopologyProblem | None:
    """Request the missing topics, if an attempt is due. Return the problem of the topology for the status list."""
    problem = configured.problem
    if problem is None or not configured.to_create:
        group.soft.creation = None
        return problem
    if not op.profile.streams.limits_topic_creation:
        op.create_topics(configured.to_create)
        return problem
    known = group.soft.creation or TopicCreation()
    if op.now >= known.next_attempt:
        op.create_topics(configured.to_create)
        wait = min(_FIRST_WAIT_MS << min(known.attempts, 6), _LAST_WAIT_MS)
        group.soft.creation = TopicCreation(known.attempts + 1, op.now + wait, known.failure)
        attempt = "An attempt to create them was made"
    else:
        attempt = "The next attempt to create them is made later"
    failure = f"; the last one failed: {known.failure}" if known.failure is not None else ""
    return evolve(problem, detail=f"{problem.detail}. {attempt}{failure}.")


def creation_failed(op: OperationContext, group_id: str, reason: str) -> None:
    """Record why the topics of a group could not be created. The next status reports it."""
    group = find_group(op, StreamsGroup, group_id)
    known = group.soft.creation or TopicCreation()
    group.soft.creation = evolve(known, failure=reason)


_COMMA: Final = re.compile(r"\s*,\s*")


class HeartbeatResult(Protocol):
    """The result of a heartbeat: the member before and after it, and the records to emit."""

    op: OperationContext
    context: RequestContext
    request: StreamsGroupHeartbeatRequest
    group: StreamsGroup
    member: StreamsGroupMember
    updated: StreamsGroupMember
    replaced: str | None
    joins: bool
    is_new: bool
    written: list[Record]
    problems: list[TopologyProblem]


def answer(
    beat: HeartbeatResult, configured: ConfiguredTopology, configs: Mapping[str, str]
) -> StreamsGroupHeartbeatResponse:
    """Emit the records of a heartbeat, and return its response."""
    op, group, member, updated = beat.op, beat.group, beat.member, beat.updated
    changed = member.assigned != updated.assigned
    endpoint_changed = member.metadata.user_endpoint != updated.metadata.user_endpoint
    soft = group.soft
    if beat.joins or changed or endpoint_changed or beat.replaced is not None:
        soft.endpoints.pop(updated.member_id, None)
        if beat.replaced is not None:
            soft.endpoints.pop(beat.replaced, None)
    if endpoint_changed or (changed and updated.metadata.user_endpoint is not None):
        soft.endpoint_epoch += 1
    endpoints = None
    if soft.endpoint_epoch != beat.request.endpoint_information_epoch:
        endpoints = all_endpoints(op, group, updated, beat.replaced)
    _add_problems(beat, configured, configs)
    op.emit_all(beat.written)
    if op.state.groups[group.group_id] is not group and not op.quirks.streams_first_join_forgets:
        _adopt(op, group)
    config = op.group_config(group.group_id)
    tasks = updated.assigned if beat.joins or changed else None
    return StreamsGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=config.streams_heartbeat_interval_ms,
        task_offset_interval_ms=config.streams_task_offset_interval_ms,
        acceptable_recovery_lag=config.streams_acceptable_recovery_lag,
        status=_status(beat),
        active_tasks=None if tasks is None else task_ids(TaskIds, tasks.active),
        standby_tasks=None if tasks is None else task_ids(TaskIds, tasks.standby),
        warmup_tasks=None if tasks is None else task_ids(TaskIds, tasks.warmup),
        endpoint_information_epoch=0 if beat.is_new and op.quirks.streams_first_join_forgets else soft.endpoint_epoch,
        partitions_by_user_endpoint=endpoints,
    )


def _add_problems(beat: HeartbeatResult, configured: ConfiguredTopology, configs: Mapping[str, str]) -> None:
    problems = beat.problems
    problem = request_internal_topics(beat.op, beat.group, configured)
    if problem is not None:
        problems.append(problem)
    requester = beat.group.soft.shutdown_member
    if requester is not None:
        detail = (
            f"Streams group member {requester} encountered a fatal error "
            "and requested a shutdown for the entire application."
        )
        problems.append(TopologyProblem(StatusCode.SHUTDOWN_APPLICATION, detail))
    tags = configs.get(TAGS, "").strip()
    if tags and beat.context.version >= 1:
        known = {tag.key for tag in beat.updated.metadata.client_tags}
        missing = [tag for tag in _COMMA.split(tags) if tag not in known]
        if missing:
            detail = (
                "Missing required client tags for rack-aware standby assignment: "
                f"[{', '.join(missing)}]. Configure them via 'client.tag.<tagKey>' in your Streams config."
            )
            problems.append(TopologyProblem(StatusCode.MISSING_CLIENT_TAGS, detail))


def _status(beat: HeartbeatResult) -> tuple[Status, ...] | None:
    """Return the status list, or None if it is unchanged and the profile reports changes only."""
    status = tuple(Status(status_code=each.status, status_detail=each.detail) for each in beat.problems)
    if not beat.op.profile.streams.reports_status_changes_only:
        return status
    known = beat.group.soft.statuses.get(beat.updated.member_id, ())
    beat.group.soft.statuses[beat.updated.member_id] = status
    return None if status == known and not beat.joins else status


def _adopt(op: OperationContext, made: StreamsGroup) -> None:
    """Copy the unrecorded state of a new group to the group that its records created."""
    group = op.state.groups[made.group_id]
    group.soft = made.soft
    op.set_derived(group, "configured", made.configured)
    op.set_derived(group, "refined", made.refined)
