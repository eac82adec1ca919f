"""The offsets of state that members report, and what follows from them. Nothing of this is recorded."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_msgs.groups.streams.group import TaskOffsets
from kafka_msgs.groups.streams.tasks import Task
from kafka_msgs.groups.streams.validation import invalid_request
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, TaskOffset

__all__ = ["updated_offsets"]


def updated_offsets(known: TaskOffsets, request: StreamsGroupHeartbeatRequest) -> TaskOffsets:
    """Return what a member reported, after a heartbeat. A list that the heartbeat leaves out stays as it was.

    Raises ``GroupError`` with ``INVALID_REQUEST`` if a task is listed twice.
    """
    return TaskOffsets(
        known.offsets if request.task_offsets is None else _by_task(request.task_offsets),
        known.end_offsets if request.task_end_offsets is None else _by_task(request.task_end_offsets),
    )


def _by_task(offsets: Iterable[TaskOffset]) -> dict[Task, int]:
    by_task: dict[Task, int] = {}
    for each in offsets:
        task = (each.subtopology_id, each.partition)
        if task in by_task:
            raise invalid_request(
                f"Task offsets contain a duplicate entry for subtopology {each.subtopology_id} "
                f"and partition {each.partition}."
            )
        by_task[task] = each.offset
    return by_task
