"""Batches of in-flight records, their acquisition locks, and changes of their states.

Kafka tracks a batch as one state until its records differ, and then tracks one state for each offset. Here a batch is a
list of runs: consecutive offsets with the same state. The cost of a batch therefore depends on the operations on it,
not on the offset range that its header claims. In Kafka these are ``InFlightBatch`` and ``InFlightState``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple, NoReturn

from attrs import define, field

from kafka_msgs.broker.share.record_state import AcknowledgementBatch, PersisterStateBatch, RecordState
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.timer_queue import TimerHandle

__all__ = [
    "InFlightBatch",
    "InFlightState",
    "StateChange",
    "check_owner",
    "check_owner_of_offset",
    "refuse",
    "split_by_type",
    "undo",
]


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


class StateChange(NamedTuple):
    """A state change of records in a batch: the member that had acquired them, and their new state."""

    batch: InFlightBatch
    member_id: str
    after: PersisterStateBatch


def undo(changes: list[StateChange]) -> None:
    """Return the records of reverted changes to their members."""
    for batch, member_id, after in changes:
        for run in batch.between(after.first, after.last):
            run.member_id = member_id


def split_by_type(acknowledgements: AcknowledgementBatch, first: int, last: int) -> Iterator[tuple[int, int, int]]:
    """Yield the parts of an acknowledgement with the same type: the first and last offset, and the type."""
    if len(acknowledgements.types) == 1:
        yield first, last, acknowledgements.types[0]
        return
    for kind, group in groupby(
        acknowledgements.types[first - acknowledgements.first : last - acknowledgements.first + 1]
    ):
        end = first + sum(1 for _ in group)
        yield first, end - 1, kind
        first = end


def check_owner(run: InFlightState, member_id: str) -> None:
    """Check that a member has acquired a batch, with Kafka's error messages."""
    if run.state is not RecordState.ACQUIRED or not run.member_id:
        refuse("The batch cannot be acknowledged. The batch is not in the acquired state.")
    if run.member_id != member_id:
        refuse("Member is not the owner of batch record")


def check_owner_of_offset(run: InFlightState, member_id: str) -> None:
    """Check that a member has acquired an offset, with Kafka's error messages."""
    if run.state is not RecordState.ACQUIRED or not run.member_id:
        refuse("The offset cannot be acknowledged. The offset is not acquired.")
    if run.member_id != member_id:
        refuse("Member is not the owner of offset")


def refuse(message: str, error: ErrorCode = ErrorCode.INVALID_RECORD_STATE) -> NoReturn:
    """Raise ``RequestRefusedError``."""
    raise RequestRefusedError(error, message)
