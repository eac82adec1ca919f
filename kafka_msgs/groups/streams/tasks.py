"""The tasks of a member, by role: its target from the assignor, and its current tasks.

A task is a subtopology id and a partition. Records and requests group tasks by subtopology; here they are flat sets, so
that the rules of reconciliation are set operations.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias

from attrs import evolve, frozen

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError

__all__ = [
    "NO_TARGET",
    "NO_TASKS",
    "TaskId",
    "TaskIds",
    "TasksTuple",
    "TasksTupleWithEpochs",
    "grouped",
    "owned_tasks",
    "task_ids",
    "task_set",
]

TaskId: TypeAlias = tuple[str, int]
"""A subtopology id and a partition."""


class TaskIds(Protocol):
    """The form of tasks in messages and records."""

    @property
    def subtopology_id(self) -> str: ...

    @property
    def partitions(self) -> tuple[int, ...]: ...


@frozen
class TasksTuple:
    """The tasks that a member should run."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    warmup: frozenset[TaskId] = frozenset()

    def same_as(self, assigned: TasksTupleWithEpochs) -> bool:
        """Return whether a member runs exactly these tasks."""
        return (
            self.active == assigned.active.keys()
            and self.standby == assigned.standby
            and self.warmup == assigned.warmup
        )

    def overlaps(self, assigned: TasksTupleWithEpochs) -> bool:
        """Return whether a task is in both, in the same role."""
        return not (
            self.active.isdisjoint(assigned.active)
            and self.standby.isdisjoint(assigned.standby)
            and self.warmup.isdisjoint(assigned.warmup)
        )


@frozen
class TasksTupleWithEpochs:
    """The tasks that a member runs, or must revoke. Each active task has the member epoch of its assignment."""

    active: Mapping[TaskId, int] = {}
    standby: frozenset[TaskId] = frozenset()
    warmup: frozenset[TaskId] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def without_epochs(self) -> TasksTuple:
        """Return the same tasks as a target."""
        return TasksTuple(frozenset(self.active), self.standby, self.warmup)

    def with_epoch(self, epoch: int) -> TasksTupleWithEpochs:
        """Return the same tasks, all assigned at another epoch."""
        return evolve(self, active=dict.fromkeys(self.active, epoch))


NO_TARGET: Final = TasksTuple()
NO_TASKS: Final = TasksTupleWithEpochs()


def task_set(groups: Iterable[TaskIds]) -> frozenset[TaskId]:
    """Return the tasks of a message or a record."""
    return frozenset((group.subtopology_id, partition) for group in groups for partition in group.partitions)


def owned_tasks(
    active: Collection[TaskIds] | None, standby: Collection[TaskIds] | None, warmup: Collection[TaskIds] | None
) -> TasksTuple | None:
    """Return the tasks that a heartbeat reports, or None if it omits them.

    Raises ``GroupError`` if a role names a subtopology twice, as Kafka does.
    """
    if active is None or standby is None or warmup is None:
        return None
    for groups in (active, standby, warmup):
        if len({group.subtopology_id for group in groups}) != len(groups):
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return TasksTuple(task_set(active), task_set(standby), task_set(warmup))


_FIRST: Final[Any] = itemgetter(0)


def grouped(tasks: Iterable[TaskId]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Group tasks by subtopology: ids and partitions in ascending order."""
    for subtopology, group in groupby(sorted(tasks), _FIRST):
        yield subtopology, tuple(partition for _, partition in group)


def task_ids(cls: Callable[..., Any], tasks: Iterable[TaskId]) -> tuple[Any, ...]:
    """Return tasks in the form of a message, whose elements have the class ``cls``."""
    return tuple(cls(subtopology_id=key, partitions=partitions) for key, partitions in grouped(tasks))
