"""How far the state of tasks is: the sums of offsets that a member reports (KIP-1071, "Cumulative task changelog
offsets and task changelog end offsets").
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
    """What a client does with the state of a task."""

    PROCESSING = auto()
    """An active task that processes records."""
    RESTORING = auto()
    """An active, standby or warm-up task whose stores follow the changelog."""
    DORMANT = auto()
    """A task that the client does not own, but has the state of on disk."""


@frozen(kw_only=True)
class Changelog:
    """One changelog partition of a task.

    ``position`` is the offset that was written to the checkpoint file. ``high_watermark`` and ``last_stable_offset``
    are how far the brokers have it, of all records and of those of ended transactions. ``end`` is the end offset that
    the restore consumer saw last; None if it is not known.
    """

    position: int = 0
    high_watermark: int = 0
    last_stable_offset: int = 0
    end: int | None = None


@frozen
class LocalTask:
    """A task with state on the client. ``locked`` tells whether the client holds the lock of its directory."""

    phase: TaskPhase
    changelogs: Sequence[Changelog]
    locked: bool = True


class TaskOffsetSums(NamedTuple):
    """What a member reports: offsets, and end offsets where they are known, by task."""

    offsets: Mapping[Task, int]
    end_offsets: Mapping[Task, int]


def task_sums(tasks: Mapping[Task, LocalTask], *, exactly_once: bool = False) -> TaskOffsetSums:
    """Return the sums for all tasks with state.

    A processing task is at the end by definition: its offset is what the brokers have, up to the last stable offset if
    the application processes exactly once. A dormant task whose directory another client has locked is left out.
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
