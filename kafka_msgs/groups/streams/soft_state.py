"""The soft state of a streams group, which is lost when the coordinator moves, and conclusions from its reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from attrs import Factory, define, frozen

from kafka_msgs.groups.modern_group import DeadlineAndEpoch, invalid_request
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.tasks import TaskId, TasksTuple
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, TaskOffset
from kafka_msgs.messages.streams_group_heartbeat_response import (
    EndpointToPartitions,
    Status,
    StreamsGroupHeartbeatResponse,
)

__all__ = [
    "SteadyHeartbeat",
    "StreamsSoftState",
    "TaskOffsets",
    "TopicCreation",
    "by_process",
    "has_caught_up",
    "updated_offsets",
]


@frozen
class TaskOffsets:
    """The offsets of state that a member reported, and the end offsets that it reported, by task."""

    offsets: Mapping[TaskId, int] = {}
    end_offsets: Mapping[TaskId, int] = {}


@frozen
class TopicCreation:
    """The creation of internal topics: the number of attempts, the time of the next one, and the last error."""

    attempts: int = 0
    next_attempt: int = 0
    failure: str | None = None


class SteadyHeartbeat(NamedTuple):
    """A heartbeat that changed nothing: all that its response depends on, and the response."""

    inputs: tuple[object, ...]
    response: StreamsGroupHeartbeatResponse


@define
class StreamsSoftState(DeadlineAndEpoch):
    """The state that is lost when the coordinator moves.

    ``shutdown_member`` requested the shutdown of the application. ``endpoint_epoch`` increases when the tasks of a
    member with an endpoint change, and ``endpoints`` caches the response for each member. ``offsets`` has the reports
    of members, the latest report last, and ``statuses`` the status lists of their last responses. ``creation`` is the
    creation of missing internal topics. ``probed`` are the classic protocol members that must rejoin to report their
    offsets. ``steady`` has the latest heartbeat of each member, if it changed nothing.
    """

    shutdown_member: str | None = None
    endpoint_epoch: int = 0
    endpoints: dict[str, EndpointToPartitions] = Factory(dict)
    offsets: dict[str, TaskOffsets] = Factory(dict)
    statuses: dict[str, tuple[Status, ...]] = Factory(dict)
    creation: TopicCreation | None = None
    probed: set[str] = Factory(set)
    steady: dict[str, SteadyHeartbeat] = Factory(dict)

    def forget_member(self, member_id: str) -> None:
        """Remove the state of a member that left."""
        for table in (self.endpoints, self.offsets, self.statuses, self.steady):
            table.pop(member_id, None)


def updated_offsets(known: TaskOffsets, request: StreamsGroupHeartbeatRequest) -> TaskOffsets:
    """Return the offsets of a member after a heartbeat. Lists that the heartbeat omits do not change.

    Raises ``GroupError`` with ``INVALID_REQUEST`` if a task is listed twice.
    """
    return TaskOffsets(
        known.offsets if request.task_offsets is None else _by_task(request.task_offsets),
        known.end_offsets if request.task_end_offsets is None else _by_task(request.task_end_offsets),
    )


def has_caught_up(
    reports: Mapping[str, TaskOffsets], member: StreamsGroupMember, target: TasksTuple, acceptable: int
) -> bool:
    """Return whether a warm-up task of a member lags by at most ``acceptable`` records, according to the reports.

    An end offset reported by one member applies to all. Without any end offset, the task is not caught up. A task that
    already has another role in the target does not count.
    """
    offsets = reports[member.member_id].offsets
    return any(
        offsets[task] >= end - acceptable
        for task in member.assigned.warmup & target.warmup & offsets.keys()
        if (end := max((each.end_offsets[task] for each in reports.values() if task in each.end_offsets), default=None))
        is not None
    )


def by_process(
    reports: Mapping[str, TaskOffsets], members: Mapping[str, StreamsGroupMember]
) -> Mapping[str, Mapping[TaskId, int]]:
    """Return the offsets of each process: members of one process share its state, and the latest report counts."""
    shared: dict[str, dict[TaskId, int]] = {}
    for member_id, reported in reports.items():
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
