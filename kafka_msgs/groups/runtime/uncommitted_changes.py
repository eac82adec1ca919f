"""The uncommitted changes of a partition: the changes of the current operation and of batches in flight.

A batch is in flight from the append to the commit. The undo log has the changes in the order in which they were made:
first the changes of batches in flight, then of operations without records, then of the current operation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.undo_log import UndoLog

__all__ = ["DeferredWrite", "UncommittedChanges"]


class DeferredWrite:
    """An operation whose records are not committed yet, or that waits for the records of earlier operations."""

    __slots__ = ("_done", "callbacks", "completed", "deadline", "order", "value")

    def __init__(self, done: Callable[[Any, ApiError | None], None]) -> None:
        self._done = done
        self.value: Any = None
        self.callbacks: list[Callable[[ApiError | None], None]] = []
        self.completed = False
        self.deadline = 0
        self.order = 0

    def complete(self, error: ApiError | None) -> None:
        """Complete the operation and call its callbacks, once."""
        if not self.completed:
            self.completed = True
            for callback in self.callbacks:
                callback(error)
            self._done(self.value, error)


@frozen
class UncommittedBatch:
    """A batch that is appended and not committed.

    ``end`` is the end of the log after it, ``changes`` is the number of its changes, and ``waiting`` has the operations
    that wait for it.
    """

    end: int
    changes: int
    waiting: list[DeferredWrite]


class UncommittedChanges:
    """Changes that can be undone, and the operations that wait for their commit.

    Appliers change the state through ``journal``.
    """

    def __init__(self, journal: UndoLog | None = None) -> None:
        self.journal = UndoLog() if journal is None else journal
        self._flights: deque[UncommittedBatch] = deque()
        self._in_flight = 0
        self._mark = 0
        self._misapplied = False

    @property
    def last(self) -> UncommittedBatch | None:
        """The last batch in flight."""
        return self._flights[-1] if self._flights else None

    def waiting(self) -> Iterator[DeferredWrite]:
        """Yield the operations that wait for a commit, in order."""
        for flight in self._flights:
            yield from flight.waiting

    def begin(self) -> None:
        """Begin an operation."""
        self._mark = len(self.journal)
        self._misapplied = False

    def keep(self) -> None:
        """Keep the changes so far, even if the current operation fails."""
        self._mark = len(self.journal)

    def set_derived(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute that is not recorded. As the operation's first change it survives a failed operation."""
        comes_first = self._mark == len(self.journal)
        self.journal.assign(target, attribute, value)
        if comes_first:
            self.keep()

    def mark_misapplied(self) -> None:
        """Record the failure to apply a record of the current operation. The batch fails as after a failed append."""
        self._misapplied = True

    def undo_operation(self) -> None:
        """Undo the current operation."""
        if self._misapplied:
            self.fail_batch()
        else:
            self.fail_operation()

    def fail_operation(self) -> None:
        """Undo the changes of the current operation."""
        self.journal.undo(self._mark)

    def fail_batch(self) -> None:
        """Undo all changes after the last batch in flight."""
        self.journal.undo(self._in_flight)

    def record_append(self, end: int, step: DeferredWrite) -> None:
        """Record the append of all changes so far, before the offset ``end``. The operation waits for its commit."""
        changes = len(self.journal) - self._in_flight
        self._in_flight += changes
        self._flights.append(UncommittedBatch(end, changes, [step]))

    def committed(self, offset: int) -> list[DeferredWrite]:
        """Drop the undo entries before an offset. Return the operations that waited for it."""
        steps: list[DeferredWrite] = []
        while self._flights and self._flights[0].end <= offset:
            flight = self._flights.popleft()
            self.journal.forget(flight.changes)
            self._in_flight -= flight.changes
            steps.extend(flight.waiting)
        return steps

    @contextmanager
    def at_last_commit(self) -> Iterator[None]:
        """Restore the state as of the last commit, for the duration of the context."""
        if not len(self.journal):
            yield
            return
        with self.journal.rewound():
            yield
