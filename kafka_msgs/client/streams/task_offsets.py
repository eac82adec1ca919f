"""The progress of task state: the offset sums that a member reports (KIP-1071, "Cumulative task changelog offsets and
task changelog end offsets").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import NamedTuple, TypeAlias

from attrs import frozen

__all__ = ["Changelog", "LocalTask", "Task", "TaskOffsetSums", "TaskPhase", "task_sums"]

Task: TypeAlias = tuple[str, int]
"""A subtopology id and a partition."""


class TaskPhase(Enum):
    """The phase of a task on the client."""

    PROCESSING = auto()
    """An active task that processes records."""
    RESTORING = auto()
    """An active, standby or warm-up task whose stores follow the changelog."""
    DORMANT = auto()
    """A task with state on disk that the client does not own."""


@frozen(kw_only=True)
class Changelog:
    """One changelog partition of a task.

    ``position`` is the offset in the checkpoint file. ``high_watermark`` and ``last_stable_offset`` are the ends of the
    partition at the brokers: of all replicated records, and of records without open transactions. ``end`` is the latest
    end offset seen by the restore consumer, or None if unknown.
    """

    position: int = 0
    high_watermark: int = 0
    last_stable_offset: int = 0
    end: int | None = None


@frozen
class LocalTask:
    """A task with state on the client. ``locked`` is True if the client holds the lock of the task directory."""

    phase: TaskPhase
    changelogs: Sequence[Changelog]
    locked: bool = True


class TaskOffsetSums(NamedTuple):
    """The reported offset sums, and the known end offset sums, by task."""

    offsets: Mapping[Task, int]
    end_offsets: Mapping[Task, int]


def task_sums(tasks: Mapping[Task, LocalTask], *, exactly_once: bool = False) -> TaskOffsetSums:
    """Return the offset sums of all tasks with state.

    A processing task is at the end by definition: its offset is the high watermark, or the last stable offset with
    exactly-once processing. A dormant task is omitted if the client does not hold its directory lock.
    """
    offsets: dict[Task, int] = {}
    ends: dict[Task, int] = {}
    for task, local in tasks.items():
        if local.phase is TaskPhase.PROCESSING:
            reached = (each.last_stable_offset if exactly_once else each.high_watermark for each in local.changelogs)
            offsets[task] = ends[task] = sum(reached)
        elif local.phase is TaskPhase.RESTORING or local.locked:
            offsets[task] = sum(each.position for each in local.changelogs)
            known = [each.end for each in local.changelogs if each.end is not None]
            if local.phase is TaskPhase.RESTORING and len(known) == len(local.changelogs):
                ends[task] = sum(known)
    return TaskOffsetSums(offsets, ends)
