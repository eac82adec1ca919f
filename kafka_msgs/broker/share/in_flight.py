"""Batches of in-flight records, and their acquisition locks.

Kafka tracks a batch as one state until its records differ, and then tracks one state for each offset. Here a batch is a
list of runs: consecutive offsets with the same state. The cost of a batch therefore depends on the operations on it,
not on the offset range that its header claims. In Kafka these are ``InFlightBatch`` and ``InFlightState``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter

from attrs import define, field

from kafka_msgs.broker.share.record_state import RecordState
from kafka_msgs.groups.runtime.timer_queue import TimerHandle

__all__ = ["InFlightBatch", "InFlightState"]


@define(eq=False)
class InFlightState:
    """Records with the same state. ``member_id`` is empty unless they are acquired, which ``lock`` limits."""

    first: int
    last: int
    state: RecordState
    delivery_count: int
    member_id: str = ""
    lock: TimerHandle | None = None

    def unlock(self) -> None:
        """Cancel the lock."""
        if self.lock is not None:
            self.lock.cancel()
            self.lock = None

    def overlap(self, first: int, last: int) -> int:
        """Return the number of records from ``first`` to ``last``."""
        return max(0, min(self.last, last) - max(self.first, first) + 1)


@define(eq=False)
class InFlightBatch:
    """Records that were first acquired together.

    ``whole`` means that all records always had the same state: Kafka then checks the batch, and otherwise each offset.
    ``lock`` creates a lock for a run of a batch that expires at a time in milliseconds.
    """

    first: int
    last: int
    lock: Callable[[InFlightBatch, InFlightState, int], TimerHandle]
    runs: list[InFlightState]
    whole: bool = field(default=True, kw_only=True)

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.last - self.first + 1

    def is_within(self, first: int, last: int) -> bool:
        """Return whether all records are from ``first`` to ``last``."""
        return self.first >= first and self.last <= last

    def run_at(self, offset: int) -> InFlightState:
        """Return the run with an offset, or the one before it."""
        return self.runs[max(0, bisect_right(self.runs, offset, key=_FIRST) - 1)]

    def between(self, first: int, last: int) -> list[InFlightState]:
        """Return the runs from ``first`` to ``last``, splitting runs at the boundaries."""
        self.cut(first)
        self.cut(last + 1)
        begin = bisect_right(self.runs, first - 1, key=_FIRST)
        return self.runs[begin : bisect_right(self.runs, last, key=_FIRST)]

    def cut(self, offset: int) -> None:
        """Split the run that contains an offset, so that a run starts there. Both parts keep the lock."""
        if not self.first < offset <= self.last:
            return
        index = bisect_right(self.runs, offset, key=_FIRST) - 1
        run = self.runs[index]
        if run.first == offset:
            return
        rest = InFlightState(offset, run.last, run.state, run.delivery_count, run.member_id)
        if run.lock is not None:
            rest.lock = self.lock(self, rest, run.lock.at)
        run.last = offset - 1
        self.runs.insert(index + 1, rest)


_FIRST = attrgetter("first")
