"""A queue of timers, ordered by time. It has no clock; the caller passes in the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Final

__all__ = ["TimerHandle", "TimerQueue"]

_MIN_COMPACTION: Final = 256


class TimerHandle:
    """A scheduled call. ``at`` is its time in milliseconds. ``order`` is its order among the calls of the same time."""

    __slots__ = ("_callback", "_queue", "_queued", "at", "order")

    def __init__(self, callback: Callable[[], None], queue: TimerQueue) -> None:
        self._callback: Callable[[], None] | None = callback
        self._queue = queue
        self._queued: int | None = None
        self.at = 0
        self.order = 0

    @property
    def waiting(self) -> bool:
        """Whether the call neither ran nor was cancelled."""
        return self._callback is not None

    def cancel(self) -> None:
        """Cancel the call. This has no effect if it ran already."""
        if self._callback is not None:
            self._callback = None
            self._queue._live -= 1

    def move(self, at: int) -> None:
        """Move the call to another time, as the last call of that time."""
        queue = self._queue
        self.at = at
        self.order = queue.next_order()
        # A call that moves to a later time keeps its heap entry, which is updated when it is due.
        if self._queued is None or at < self._queued:
            self._queued = at
            queue._push(self)


class TimerQueue:
    """Calls ordered by time. Calls at the same time run in the order in which they were scheduled.

    When most of the heap is obsolete, it is rebuilt, so memory use follows the number of pending calls.
    """

    __slots__ = ("_heap", "_live", "_orders")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, TimerHandle]] = []
        self._live = 0
        self._orders = 0

    def __len__(self) -> int:
        return self._live

    def __iter__(self) -> Iterator[TimerHandle]:
        """Yield the pending calls, in any order."""
        return iter({id(handle): handle for _, _, handle in self._heap if handle.waiting}.values())

    def next_order(self) -> int:
        """Return the next number. It orders events of the same time, within and outside the queue."""
        self._orders += 1
        return self._orders

    def schedule(self, at: int, callback: Callable[[], None]) -> TimerHandle:
        """Run ``callback`` at the time ``at`` in ms."""
        handle = TimerHandle(callback, self)
        self.add(handle, at)
        return handle

    def add(self, handle: TimerHandle, at: int) -> None:
        """Schedule a new handle of this queue at the time ``at`` in ms."""
        self._live += 1
        handle.move(at)

    def shift(self, ms: int) -> None:
        """Shift all calls by ``ms`` when the clock jumps, so that their remaining delays stay the same."""
        for handle in self:
            handle.at += ms
        self._rebuild()

    def first(self) -> TimerHandle | None:
        """Return the call that is due first, or None. It stays scheduled."""
        heap = self._heap
        while heap:
            at, order, handle = heap[0]
            if handle._callback is None or at != handle._queued:
                heappop(heap)
            elif order == handle.order:
                return handle
            else:
                heappop(heap)
                handle._queued = handle.at
                heappush(heap, (handle.at, handle.order, handle))
        return None

    def next_due(self) -> int | None:
        """Return the time of the next call in milliseconds, or None."""
        first = self.first()
        return None if first is None else first.at

    def pop_due(self, now: int) -> Callable[[], None] | None:
        """Return the next call that is due at ``now``, and forget it. Return None if no call is due."""
        first = self.first()
        if first is None or first.at > now:
            return None
        callback = first._callback
        first.cancel()
        return callback

    def _push(self, handle: TimerHandle) -> None:
        heap = self._heap
        if len(heap) > _MIN_COMPACTION and len(heap) > 2 * self._live:
            heap.append((handle.at, handle.order, handle))
            self._rebuild()
        else:
            heappush(heap, (handle.at, handle.order, handle))

    def _rebuild(self) -> None:
        handles = list(self)
        for handle in handles:
            handle._queued = handle.at
        self._heap = [(handle.at, handle.order, handle) for handle in handles]
        heapify(self._heap)
