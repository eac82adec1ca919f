"""A queue of timers. It has no clock; the caller passes in the time."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import Final

__all__ = ["TimerHandle", "TimerQueue"]

_MIN_COMPACTION: Final = 256


class TimerHandle:
    """A scheduled call. ``at`` is its time in milliseconds."""

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
        """Cancel the call. This has no effect if it ran already."""
        if self._callback is not None:
            self._callback = None
            self._timers._cancelled()

    def take(self) -> Callable[[], None] | None:
        """Return the call and forget it, or None if it was cancelled."""
        callback, self._callback = self._callback, None
        return callback


class TimerQueue:
    """Calls ordered by time. Calls at the same time run in the order in which they were scheduled.

    When more than half of the heap is cancelled calls, they are removed, so memory use follows the number of pending
    calls.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, TimerHandle]] = []
        self._order = 0
        self._dead = 0

    def __len__(self) -> int:
        return len(self._heap) - self._dead

    def schedule(self, at: int, callback: Callable[[], None]) -> TimerHandle:
        """Run ``callback`` at the time ``at`` in ms."""
        handle = TimerHandle(at, callback, self)
        self._order += 1
        heappush(self._heap, (at, self._order, handle))
        return handle

    def shift(self, ms: int) -> None:
        """Shift all calls by ``ms`` when the clock jumps, so that their remaining delays stay the same."""
        for _, _, handle in self._heap:
            handle.at += ms
        self._heap = [(handle.at, order, handle) for _, order, handle in self._heap]

    def next_due(self) -> int | None:
        """Return the time of the next call in milliseconds, or None."""
        heap = self._heap
        while heap and not heap[0][2].waiting:
            heappop(heap)
            self._dead -= 1
        return heap[0][0] if heap else None

    def pop_due(self, now: int) -> Callable[[], None] | None:
        """Return the next call that is due at ``now``, and forget it. Return None if no call is due."""
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
