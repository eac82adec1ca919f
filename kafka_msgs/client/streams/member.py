"""A member of a streams group: its heartbeats, and the state that it derives from the responses (KIP-1071).

The member behaves like the Java client. It joins with a full heartbeat, then sends only changes, and sends all fields
again after an error. It gives up tasks before it owns new tasks, and reports both steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import frozen

from kafka_msgs.client.streams.task_offsets import LocalTask, Task, TaskPhase, task_sums
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.messages import streams_group_heartbeat_request as wire
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import Status, StreamsGroupHeartbeatResponse, TaskIds

__all__ = ["StreamsMember", "TasksByRole"]

_JOIN: Final = 0
_LEAVE: Final = -1
_STATIC_LEAVE: Final = -2

_LOST: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND})
"""Errors after which the member has lost all tasks and rejoins."""


@frozen
class TasksByRole:
    """Tasks by role."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    def common(self, other: TasksByRole) -> TasksByRole:
        """Return the tasks that have the same role in ``self`` and ``other``."""
        return TasksByRole(self.active & other.active, self.standby & other.standby, self.warmup & other.warmup)


NO_TASKS: Final = TasksByRole()


class StreamsMember:
    """A member of a streams group.

    The caller sends the requests, passes in the responses, and runs the ``owned`` tasks. ``epoch`` is 0 until the
    member has joined. ``assigned`` are the tasks of the last assignment. ``status`` is the last status list from the
    coordinator. ``heartbeat_interval_ms`` is the time until the next heartbeat. Times are in ms.
    """

    def __init__(
        self,
        group_id: str,
        member_id: str,
        topology: wire.Topology,
        *,
        process_id: str,
        instance_id: str | None = None,
        rack_id: str | None = None,
        user_endpoint: wire.Endpoint | None = None,
        client_tags: tuple[wire.KeyValue, ...] = (),
        rebalance_timeout_ms: int = 300_000,
        exactly_once: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.instance_id = instance_id
        self.epoch = _JOIN
        self.assigned = NO_TASKS
        self.owned = NO_TASKS
        self.status: tuple[Status, ...] = ()
        self.heartbeat_interval_ms = 0
        self._topology = topology
        self._exactly_once = exactly_once
        self._facts: dict[str, Any] = {
            "rack_id": rack_id,
            "rebalance_timeout_ms": rebalance_timeout_ms,
            "process_id": process_id,
            "user_endpoint": user_endpoint,
            "client_tags": client_tags,
        }
        self._says_all = True
        self._last_sent: TasksByRole | None = None
        self._endpoint_epoch = -1
        self._reports = _OffsetReporter()

    def reconcile(self) -> TasksByRole:
        """Take the next step towards the assignment, and return the owned tasks after this step.

        The first step gives up tasks that are no longer assigned. After the coordinator has received the remaining
        tasks, the next step takes all assigned tasks.
        """
        kept = self.owned.common(self.assigned)
        self.owned = kept if kept != self.owned else self.assigned
        return self.owned

    def heartbeat(self, now: int, state: Mapping[Task, LocalTask] | None = None) -> StreamsGroupHeartbeatRequest:
        """Return the next heartbeat. ``state`` is the task state on the client; offsets are included when due."""
        says_all = self._says_all or self.epoch == _JOIN
        fields: dict[str, Any] = dict(self._facts) if says_all else {}
        if self.epoch == _JOIN:
            fields["topology"] = self._topology
        if says_all or self.owned != self._last_sent:
            owned = self.owned
            fields |= {
                "active_tasks": _ids(owned.active),
                "standby_tasks": _ids(owned.standby),
                "warmup_tasks": _ids(owned.warmup),
            }
        if state is not None and self._reports.is_due(now, state, self.owned.warmup, exactly_once=self._exactly_once):
            sums = task_sums(state, exactly_once=self._exactly_once)
            fields |= {"task_offsets": _sums(sums.offsets), "task_end_offsets": _sums(sums.end_offsets)}
        self._last_sent = self.owned
        return self._request(self.epoch, **fields)

    def leave(self, *, shutdown: bool = False) -> StreamsGroupHeartbeatRequest:
        """Return the heartbeat that leaves the group. A static member leaves temporarily. The next heartbeat rejoins.

        ``shutdown`` requests the shutdown of the entire application, and leaves permanently.
        """
        epoch = _LEAVE if self.instance_id is None or shutdown else _STATIC_LEAVE
        self._lose()
        return self._request(epoch, shutdown_application=shutdown)

    def _request(self, epoch: int, **fields: Any) -> StreamsGroupHeartbeatRequest:
        return StreamsGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
            endpoint_information_epoch=self._endpoint_epoch,
            **fields,
        )

    def handle_response(self, answer: StreamsGroupHeartbeatResponse) -> ErrorCode:
        """Process a response, and return its error. After some errors the member has lost its tasks and rejoins."""
        error = ErrorCode(answer.error_code)
        if error in _LOST:
            self._lose()
        if error is not ErrorCode.NONE:
            self.handle_no_response()
            return error
        self._says_all = False
        if answer.member_epoch < _JOIN:
            return error
        self.member_id, self.epoch = answer.member_id, answer.member_epoch
        self.heartbeat_interval_ms = answer.heartbeat_interval_ms
        self._endpoint_epoch = answer.endpoint_information_epoch
        self._reports.interval_ms = answer.task_offset_interval_ms
        self._reports.acceptable_lag = answer.acceptable_recovery_lag
        if answer.status is not None:
            self.status = answer.status
        if answer.active_tasks is not None:
            self.assigned = TasksByRole(
                _tasks(answer.active_tasks), _tasks(answer.standby_tasks or ()), _tasks(answer.warmup_tasks or ())
            )
        return error

    def handle_no_response(self) -> None:
        """Record a missing or failed response: the next heartbeat sends all fields again."""
        self._says_all = True
        self._reports.repeat()

    def _lose(self) -> None:
        self.epoch, self.owned, self.assigned = _JOIN, NO_TASKS, NO_TASKS
        self._says_all, self._last_sent = True, None
        self._reports = _OffsetReporter()


class _OffsetReporter:
    """The schedule of offset reports: on changed tasks with state, on a caught-up warm-up task, and at intervals."""

    def __init__(self) -> None:
        self.interval_ms = 0
        self.acceptable_lag = 0
        self._next = 0
        self._tasks: frozenset[Task] = frozenset()
        self._caught_up: frozenset[Task] = frozenset()

    def repeat(self) -> None:
        """Make the next report due immediately, because the last report may be lost."""
        self._next = 0

    def is_due(self, now: int, state: Mapping[Task, LocalTask], warmup: frozenset[Task], *, exactly_once: bool) -> bool:
        """Return whether a report is due now, and if so, schedule the next report."""
        tasks = frozenset(task for task, local in state.items() if local.phase is not TaskPhase.DORMANT)
        offsets, ends = task_sums(state, exactly_once=exactly_once)
        caught_up = frozenset(
            task for task in warmup & ends.keys() if ends[task] - offsets[task] <= self.acceptable_lag
        )
        due = now >= self._next or tasks != self._tasks or not caught_up <= self._caught_up
        if due:
            self._next, self._tasks, self._caught_up = now + self.interval_ms, tasks, caught_up
        return due


def _ids(tasks: Iterable[Task]) -> tuple[wire.TaskIds, ...]:
    grouped: dict[str, list[int]] = {}
    for subtopology, partition in sorted(tasks):
        grouped.setdefault(subtopology, []).append(partition)
    return tuple(wire.TaskIds(subtopology_id=key, partitions=tuple(found)) for key, found in grouped.items())


def _sums(sums: Mapping[Task, int]) -> tuple[wire.TaskOffset, ...]:
    return tuple(wire.TaskOffset(subtopology_id=task[0], partition=task[1], offset=sums[task]) for task in sorted(sums))


def _tasks(groups: Iterable[TaskIds]) -> frozenset[Task]:
    return frozenset((group.subtopology_id, partition) for group in groups for partition in group.partitions)
