"""The offsets of state that members report, and conclusions from them. All of this is unrecorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_msgs.groups.streams.group import StreamsGroup, TaskOffsets
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.tasks import TaskId
from kafka_msgs.groups.streams.validation import invalid_request
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, TaskOffset

__all__ = ["by_process", "has_caught_up", "updated_offsets"]


def updated_offsets(known: TaskOffsets, request: StreamsGroupHeartbeatRequest) -> TaskOffsets:
    """Return the offsets of a member after a heartbeat. Lists that the heartbeat omits do not change.

    Raises ``GroupError`` with ``INVALID_REQUEST`` if a task is listed twice.
    """
    return TaskOffsets(
        known.offsets if request.task_offsets is None else _by_task(request.task_offsets),
        known.end_offsets if request.task_end_offsets is None else _by_task(request.task_end_offsets),
    )


def has_caught_up(group: StreamsGroup, member: StreamsGroupMember, acceptable: int) -> bool:
    """Return whether a warm-up task of a member lags by at most ``acceptable`` records, according to the reports.

    An end offset reported by one member applies to all. Without any end offset, the task is not caught up. A task that
    already has another role in the target does not count.
    """
    reports = group.soft.offsets
    offsets = reports[member.member_id].offsets
    return any(
        offsets[task] >= end - acceptable
        for task in member.assigned.warmup & group.target_of(member.member_id).warmup & offsets.keys()
        if (end := max((each.end_offsets[task] for each in reports.values() if task in each.end_offsets), default=None))
        is not None
    )


def by_process(group: StreamsGroup, members: Mapping[str, StreamsGroupMember]) -> Mapping[str, Mapping[TaskId, int]]:
    """Return the offsets of each process: members of one process share its state, and the latest report counts."""
    shared: dict[str, dict[TaskId, int]] = {}
    for member_id, reported in group.soft.offsets.items():
        if member_id in members:
            shared.setdefault(members[member_id].metadata.process_id, {}).update(reported.offsets)
    return shared


def _by_task(offsets: Iterable[TaskOffset]) -> dict[TaskId, int]:
    by_task: dict[TaskId, int] = {}
    for each in offsets:
        task = (each.subtopology_id, each.partition)
        if task in by_task:
            raise invalid_request(
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} "
                f"and partition {each.partition}."
            )
        by_task[task] = each.offset
    return by_task
