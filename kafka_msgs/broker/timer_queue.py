"""Timers: what is to be done, at which moment. There is no clock here; ``run`` is given the time."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

__all__ = ["TimerHandle", "TimerQueue"]

_MIN_COMPACTION: Final = 256


class TimerHandle:
    """A scheduled call. ``at`` is its moment in milliseconds."""

    __slots__ = ("_callback", "_timers", "at")

    def __init__(self, at: int, callback: Callable[[], None], timers: TimerQueue) -> None:
        self.at = at
        self._callback: Callable[[], None] | None = callback
        self._timers = timers

    @property
    def waiting(self) -> bool:
        """Whether the call neither ran nor was cancelled."""
        return self._callback is not None

    def cancel(self) -> None:
        """Do not run the call. This has no effect if it ran already."""
        if self._callback is not None:
            self._callback = None
            self._timers._cancelled()

    def take(self) -> Callable[[], None] | None:
        """Return the call and forget it, or None if it was cancelled."""
        callback, self._callback = self._callback, None
        return callback


class TimerQueue:
    """Calls by moment. Calls of the same moment run in the order in which they were scheduled.

    Cancelled calls are dropped when they are more than half of the heap. So the memory follows the calls that wait.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, TimerHandle]] = []
        self._order = 0
        self._dead = 0

    def __len__(self) -> int:
        return len(self._heap) - self._dead

    def schedule(self, at: int, callback: Callable[[], None]) -> TimerHandle:
        """Run ``callback`` at the moment ``at`` (ms)."""
        handle = TimerHandle(at, callback, self)
        self._order += 1
        heappush(self._heap, (at, self._order, handle))
        return handle

    def shift(self, ms: int) -> None:
        """Move all calls by ``ms``, with a clock that jumps: each waits as long as it would have."""
        for _, _, handle in self._heap:
            handle.at += ms
        self._heap = [(handle.at, order, handle) for _, order, handle in self._heap]

    def next_due(self) -> int | None:
        """Return the moment of the next call in milliseconds, or None."""
        heap = self._heap
        while heap and not heap[0][2].waiting:
            heappop(heap)
            self._dead -= 1
        return heap[0][0] if heap else None

    def pop_due(self, now: int) -> Callable[[], None] | None:
        """Return the next call that is due at ``now``, and forget it. None if nothing is due."""
        due = self.next_due()
        if due is None or due > now:
            return None
        return heappop(self._heap)[2].take()

    def _cancelled(self) -> None:
        self._dead += 1
        if len(self._heap) > _MIN_COMPACTION and self._dead * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].waiting]
            heapify(self._heap)
            self._dead = 0
