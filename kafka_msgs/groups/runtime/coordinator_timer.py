"""Timers by key, following ``org.apache.kafka.coordinator.common.runtime.CoordinatorTimerImpl``.

A timer has a key, a deadline, and an operation that the shard runs at the deadline. The keys are Kafka's keys,
such as ``session-timeout-GROUP-MEMBER``. Scheduling an existing key moves its timer.

An operation may emit records, and may raise ``ApiError``::

    def expire(op: OperationContext) -> None:
        remove_member(op, group_id, member_id)

    op.timers.schedule(f"session-timeout-{group_id}-{member_id}", 45_000, expire)
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

from kafka_msgs.groups.runtime.timer_queue import TimerHandle, TimerQueue

__all__ = ["CoordinatorTimer", "Operation", "Timer", "TimerClock"]

Operation: TypeAlias = Callable[[Any], None]
"""The operation of a timer. Its argument is the operation context of the coordinator."""

RETRY_BACKOFF_MS: Final = 500
"""The time after which Kafka runs a timer with a failed operation again, in milliseconds."""


class Timer(TimerHandle):
    """One scheduled timer of a shard. A failed operation runs again after ``retry_backoff`` ms, unless that is None."""

    __slots__ = ("key", "operation", "retry_backoff")

    def __init__(self, key: str, fire: Callable[[Timer], None], queue: TimerQueue) -> None:
        super().__init__(partial(fire, self), queue)
        self.key = key
        self.operation: Operation | None = None
        self.retry_backoff: int | None = None


class TimerClock(TimerQueue):
    """The time of a coordinator, and the timers of all its shards.

    ``now`` is the current time in milliseconds. ``scheduled`` collects the key and deadline of each scheduled timer.
    """

    __slots__ = ("now", "scheduled")

    def __init__(self, now: int = 0) -> None:
        super().__init__()
        self.now = now
        self.scheduled: list[tuple[str, int]] = []

    def pending(self) -> list[tuple[str, int]]:
        """Return the key and the deadline in ms of each timer of a shard, in the order of the deadlines."""
        timers = [each for each in self if isinstance(each, Timer)]
        return [(each.key, each.at) for each in sorted(timers, key=lambda each: (each.at, each.order))]


class CoordinatorTimer:
    """The timers of a shard. ``fire`` is called with a timer that is due."""

    __slots__ = ("_fire", "_timers", "clock")

    def __init__(self, clock: TimerClock, fire: Callable[[Timer], None]) -> None:
        self.clock = clock
        self._fire = fire
        self._timers: dict[str, Timer] = {}

    def schedule(
        self, key: str, delay_ms: int, operation: Operation, *, retry_backoff_ms: int | None = RETRY_BACKOFF_MS
    ) -> None:
        """Run ``operation`` after ``delay_ms``, or as soon as possible if that is negative.

        An existing timer of the key is replaced. If the operation fails, it runs again after ``retry_backoff_ms``,
        unless that is None.
        """
        clock = self.clock
        deadline = clock.now + delay_ms
        timer = self._timers.get(key)
        if timer is None:
            timer = self._timers[key] = Timer(key, self._fire, clock)
            clock.add(timer, deadline)
        else:
            timer.move(deadline)
        timer.operation = operation
        timer.retry_backoff = retry_backoff_ms
        clock.scheduled.append((key, deadline))

    def cancel(self, key: str) -> None:
        """Cancel the timer of a key, if it exists."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def cancel_restorable(self, key: str) -> Callable[[], None] | None:
        """Cancel the timer of a key. Return a callback that restores it at its deadline; None if it does not exist."""
        timer = self._timers.get(key)
        if timer is None:
            return None
        deadline, operation, retry_backoff = timer.at, self.pop(timer), timer.retry_backoff

        def put_back() -> None:
            if not self.is_scheduled(key):
                self.schedule(key, deadline - self.clock.now, operation, retry_backoff_ms=retry_backoff)

        return put_back

    def cancel_all(self) -> None:
        """Cancel all timers."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def is_scheduled(self, key: str) -> bool:
        """Return whether a timer of that key is scheduled."""
        return key in self._timers

    def pop(self, timer: Timer) -> Operation:
        """Remove a timer from the schedule. Return its operation."""
        operation = timer.operation
        assert operation is not None
        self.cancel(timer.key)
        return operation
