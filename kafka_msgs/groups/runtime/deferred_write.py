"""Operations whose records are not committed yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen

from kafka_msgs.errors.api import ApiError

__all__ = ["DeferredWrite", "UncommittedBatch"]


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
