"""Timers by key, following ``org.apache.kafka.coordinator.common.runtime.CoordinatorTimerImpl``.

A timer has a key, a deadline, and an operation that the shard runs at the deadline. The keys are Kafka's keys,
such as ``session-timeout-GROUP-MEMBER``. Scheduling an existing key moves its timer. The time is a value: the
coordinator sets ``TimerClock.now``.

An operation may emit records, and may raise ``GroupError``::

    def expire(op: OperationContext) -> None:
        remove_member(op, group_id, member_id)

    op.timers.schedule(f"session-timeout-{group_id}-{member_id}", 45_000, expire)
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from kafka_msgs.groups.operation import OperationContext

__all__ = ["RETRY_BACKOFF_MS", "CoordinatorTimer", "Operation", "Timer", "TimerClock"]

Operation: TypeAlias = "Callable[[OperationContext], None]"

RETRY_BACKOFF_MS: Final = 500
"""The time after which Kafka runs a timer with a failed operation again, in milliseconds."""

_MIN_COMPACTION: Final = 1024


class Timer:
    """One scheduled timer. ``arrival`` orders timers that are due at the same time."""

    __slots__ = ("arrival", "deadline", "key", "operation", "queued", "retry_backoff")

    def __init__(self, key: str) -> None:
        self.key = key
        self.deadline = 0
        self.arrival = 0
        self.queued = 0
        self.operation: Operation | None = None
        self.retry_backoff: int | None = None


class TimerClock:
    """The coordinator's time, and the state that its timers share.

    ``now`` is the current time in milliseconds. ``scheduled`` collects the key and deadline of each scheduled timer.
    """

    __slots__ = ("_arrivals", "now", "scheduled")

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.scheduled: list[tuple[str, int]] = []
        self._arrivals = 0

    def arrive(self) -> int:
        """Return the next number. It orders events that are due at the same time."""
        self._arrivals += 1
        return self._arrivals


class CoordinatorTimer:
    """The timers of a shard. Shards that share a ``clock`` have one order of timers."""

    __slots__ = ("_heap", "_timers", "clock")

    def __init__(self, clock: TimerClock) -> None:
        self.clock = clock
        self._timers: dict[str, Timer] = {}
        self._heap: list[tuple[int, int, Timer]] = []

    def schedule(
        self, key: str, delay_ms: int, operation: Operation, *, retry_backoff_ms: int | None = RETRY_BACKOFF_MS
    ) -> None:
        """Run ``operation`` after ``delay_ms``, or as soon as possible if that is negative.

        An existing timer of the key is replaced. If the operation fails, it runs again after ``retry_backoff_ms``,
        unless that is None.
        """
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = Timer(key)
        clock = self.clock
        deadline = timer.deadline = clock.now + delay_ms
        arrival = timer.arrival = clock.arrive()
        timer.operation = operation
        timer.retry_backoff = retry_backoff_ms
        # A timer that moves to a later time keeps its heap entry, which is updated when it is due.
        if not timer.queued or deadline < timer.queued:
            timer.queued = deadline
            self._push(deadline, arrival, timer)
        clock.scheduled.append((key, deadline))

    def cancel(self, key: str) -> None:
        """Cancel the timer of a key, if it exists."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.operation = None

    def cancel_restorable(self, key: str) -> Callable[[], None] | None:
        """Cancel the timer of a key. Return a callback that restores it at its deadline; None if it does not exist."""
        timer = self._timers.get(key)
        if timer is None:
            return None
        deadline, operation, retry_backoff = timer.deadline, self.pop(timer), timer.retry_backoff

        def put_back() -> None:
            if not self.is_scheduled(key):
                self.schedule(key, deadline - self.clock.now, operation, retry_backoff_ms=retry_backoff)

        return put_back

    def cancel_all(self) -> None:
        """Cancel all timers."""
        self._timers.clear()
        self._heap.clear()

    def shift(self, ms: int) -> None:
        """Move all timers by ``ms``, with a clock that jumps: each keeps its remaining time."""
        for timer in self._timers.values():
            timer.deadline += ms
        self._rebuild()

    def is_scheduled(self, key: str) -> bool:
        """Return whether a timer of that key is scheduled."""
        return key in self._timers

    def pending(self) -> list[tuple[int, int, str]]:
        """Return the deadline, the order and the key of each scheduled timer."""
        return [(timer.deadline, timer.arrival, timer.key) for timer in self._timers.values()]

    def next(self) -> Timer | None:
        """Return the timer that is due first, or None. It stays scheduled."""
        heap = self._heap
        while heap:
            deadline, arrival, timer = heap[0]
            if timer.operation is None or deadline != timer.queued:
                heappop(heap)
            elif (deadline, arrival) == (timer.deadline, timer.arrival):
                return timer
            else:
                heappop(heap)
                timer.queued = timer.deadline
                heappush(heap, (timer.deadline, timer.arrival, timer))
        return None

    def pop(self, timer: Timer) -> Operation:
        """Remove a timer that ``next`` returned from the schedule. Return its operation."""
        operation = timer.operation
        assert operation is not None
        self.cancel(timer.key)
        return operation

    def _push(self, deadline: int, arrival: int, timer: Timer) -> None:
        heap = self._heap
        if len(heap) > _MIN_COMPACTION and len(heap) > 2 * len(self._timers):
            self._rebuild()
        else:
            heappush(heap, (deadline, arrival, timer))

    def _rebuild(self) -> None:
        for each in self._timers.values():
            each.queued = each.deadline
        self._heap[:] = [(each.deadline, each.arrival, each) for each in self._timers.values()]
        heapify(self._heap)
