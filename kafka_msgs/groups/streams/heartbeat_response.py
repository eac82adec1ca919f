"""The response to a heartbeat, and its status list."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.streams import records
from kafka_msgs.groups.streams.configured_topology import ConfiguredTopology, StatusCode, TopologyProblem
from kafka_msgs.groups.streams.endpoints import all_endpoints, task_ids
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.target_assignment import TAGS
from kafka_msgs.groups.streams.topic_creation import request_internal_topics
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse

__all__ = ["answer"]

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
    written: list[records.Record]
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
    for key, value in beat.written:
        op.emit(key, value)
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
        active_tasks=None if tasks is None else task_ids(tasks.active),
        standby_tasks=None if tasks is None else task_ids(tasks.standby),
        warmup_tasks=None if tasks is None else task_ids(tasks.warmup),
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
