"""A share partition: the in-flight records of a partition for a share group, and their states (KIP-932).

``SharePartition`` uses no sockets, clocks or threads. Changes are passed to ``persist``, which sends them to the share
coordinator, before they take effect: if that fails, the state is unchanged. ``share.partition.max.record.locks`` limits
the in-flight records, so each pass over them is short. ``acquisition`` acquires records for members. In Kafka this is
``SharePartition``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from operator import attrgetter
from typing import Final, TypeAlias

from attrs import define

from kafka_msgs.broker.share.in_flight import (
    InFlightBatch,
    InFlightState,
    StateChange,
    check_owner,
    check_owner_of_offset,
    refuse,
    split_by_type,
    undo,
)
from kafka_msgs.broker.share.record_state import (
    RENEW,
    STATE_OF_TYPE,
    AcknowledgementBatch,
    PersisterStateBatch,
    RecordState,
)
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.config import GroupConfig
from kafka_msgs.groups.runtime.timer_queue import TimerHandle, TimerQueue

__all__ = ["SharePartition"]

Persist: TypeAlias = Callable[[int, int, list[PersisterStateBatch]], None]
"""A function that persists the start offset, the number of finished records after it, and record states.

Raises ``RequestRefusedError``.
"""

_FIRST: Final = attrgetter("first")


@define
class _GapWindow:
    """Offsets without a known state: offsets from ``start`` on that no persisted state covers.

    The window is valid as long as the share partition ends at ``end``.
    """

    end: int
    start: int


class SharePartition:
    """The in-flight records of a share partition.

    Records before ``start_offset`` are finished. ``end_offset`` is the last in-flight offset, or the next offset if no
    record is in flight. ``complete`` counts the finished records from ``start_offset`` on. ``states`` are the persisted
    states from the share coordinator, in order. ``config`` returns the group configs, and ``on_change`` is called when
    records may have become available. Raises ``RequestRefusedError`` with UNKNOWN_SERVER_ERROR for contradictory
    states.
    """

    def __init__(
        self,
        start_offset: int,
        states: Iterable[PersisterStateBatch],
        *,
        timers: TimerQueue,
        config: Callable[[], GroupConfig],
        persist: Persist,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.start_offset = self.end_offset = start_offset
        self.batches: list[InFlightBatch] = []
        self.complete = 0
        self.config = config
        self._timers = timers
        self._persist = persist
        self._on_change = on_change
        self._search = False
        self._gap: _GapWindow | None = None
        self._load(states)

    def _load(self, states: Iterable[PersisterStateBatch]) -> None:
        previous, gap = self.start_offset - 1, None
        for each in states:
            if not previous < each.first <= each.last:
                raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
            if gap is None and each.first > previous + 1:
                gap = previous + 1
            previous = each.last
            self.add(each.first, each.last, [InFlightState(*each)])
        if self.batches:
            self._search = True
            self.end_offset = previous
            self._gap = None if gap is None else _GapWindow(previous, gap)
            self._advance()

    def close(self) -> None:
        """Cancel all locks. The share partition cannot be used again."""
        for batch in self.batches:
            for run in batch.runs:
                run.unlock()

    # Fetchable records

    @property
    def in_flight(self) -> int:
        """The number of in-flight offsets."""
        return self.end_offset - self.start_offset + 1 if self.batches else 0

    @property
    def gap(self) -> int | None:
        """The first offset without a known state before the end, or None."""
        return self._gap.start if self._gap is not None and self._gap.end == self.end_offset else None

    def next_fetch_offset(self) -> int:
        """Return the next offset at which records may be available."""
        if not self.batches or self.start_offset > self.batches[-1].last:
            self._search = False
            return self.end_offset
        found = self._first_available() if self._search else None
        if found is None:
            self._search = False
            return self.end_offset + 1
        return found

    def _first_available(self) -> int | None:
        gap = self.gap
        for batch in self.batches:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for run in batch.runs:
                if run.state is RecordState.AVAILABLE:
                    return run.first
        return None

    def can_acquire(self) -> bool:
        """Return whether more records may become in-flight, or some are available."""
        if self.next_fetch_offset() != self.end_offset + 1:
            return True
        return self.in_flight < self.config().share_partition_max_record_locks

    # In-flight batches

    def floor(self, offset: int) -> int:
        """Return the index of the last batch that begins at or before an offset, or -1."""
        return bisect_right(self.batches, offset, key=_FIRST) - 1

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches that begin from ``first`` to ``last``."""
        return self.batches[self.floor(first - 1) + 1 : self.floor(last) + 1]

    def touching(self, first: int, last: int) -> list[InFlightBatch]:
        """Return the batches from the one at or before ``first`` to the one at or before ``last``."""
        return self.batches[max(0, self.floor(first)) : self.floor(last) + 1]

    def add(self, first: int, last: int, runs: list[InFlightState], *, whole: bool = True) -> InFlightBatch:
        """Add a batch. No existing batch may contain its offsets."""
        batch = InFlightBatch(first, last, self._lock, runs, whole=whole)
        self.batches.insert(self.floor(first) + 1, batch)
        self.complete += sum(run.overlap(self.start_offset, last) for run in runs if run.state.terminal)
        return batch

    def acquire_run(self, batch: InFlightBatch, run: InFlightState, member_id: str, now: int) -> None:
        """Acquire records for a member, until it acknowledges them or the lock expires."""
        run.state, run.member_id = RecordState.ACQUIRED, member_id
        self._begin_lock(batch, run, now)

    def _begin_lock(self, batch: InFlightBatch, run: InFlightState, now: int) -> None:
        run.unlock()
        run.lock = self._lock(batch, run, now + self.config().share_record_lock_duration_ms)

    def _lock(self, batch: InFlightBatch, run: InFlightState, until: int) -> TimerHandle:
        return self._timers.schedule(until, partial(self._time_out, batch, run))

    def may_be_available(self) -> None:
        """Mark that records before the end have become available."""
        self._search = True

    def changed(self) -> None:
        """Notify waiting fetches that records may have become available."""
        self._on_change()

    def gap_filled(self, offset: int) -> None:
        """Mark all offsets before an offset as known."""
        if self._gap is not None:
            if self.gap is not None and offset <= self._gap.end:
                self._gap.start = offset
            else:
                self._gap = None

    # Acknowledgements

    def acknowledge(self, member_id: str, acknowledgements: Iterable[AcknowledgementBatch], now: int) -> None:
        """Apply a member's acknowledgements of its acquired records, given in offset order.

        Raises ``RequestRefusedError`` with INVALID_RECORD_STATE or INVALID_REQUEST, or the errors of ``persist``. All
        record states are then unchanged.
        """
        self.complete_write(self.begin(member_id, acknowledgements, now))

    def begin(self, member_id: str, acknowledgements: Iterable[AcknowledgementBatch], now: int) -> list[StateChange]:
        """Check acknowledgements, and return the changes for ``complete_write``. Until then no member owns the records.

        Raises ``RequestRefusedError`` with INVALID_RECORD_STATE or INVALID_REQUEST.
        """
        changes: list[StateChange] = []
        try:
            for each in acknowledgements:
                if each.last >= self.start_offset:
                    for batch, first, last in self._parts(member_id, each):
                        self._take(member_id, batch, split_by_type(each, first, last), now, changes)
        except RequestRefusedError:
            undo(changes)
            raise
        return changes

    def complete_write(self, changes: list[StateChange]) -> None:
        """Persist changes and apply them. Raises the errors of ``persist``; the state is then unchanged."""
        if not changes:
            return
        try:
            self._write(changes)
        except RequestRefusedError:
            undo(changes)
            raise
        self._apply(changes)

    def _parts(
        self, member_id: str, acknowledgements: AcknowledgementBatch
    ) -> Iterator[tuple[InFlightBatch, int, int]]:
        """Yield the batches of an acknowledgement, with the first and last acknowledged offset in each."""
        for batch in self._meant(acknowledgements):
            if batch.last < self.start_offset:
                continue
            first = max(acknowledgements.first, batch.first, self.start_offset)
            last = min(acknowledgements.last, batch.last)
            if batch.whole:
                check_owner(batch.runs[0], member_id)
                batch.whole = (first, last) == (batch.first, batch.last) and len(acknowledgements.types) == 1
            if first <= last:
                yield batch, first, last

    def _meant(self, acknowledgements: AcknowledgementBatch) -> list[InFlightBatch]:
        begin = self.floor(acknowledgements.first)
        if begin < 0 and acknowledgements.first < self.start_offset <= acknowledgements.last:
            begin = self.floor(self.start_offset)
        if begin < 0:
            refuse("Batch record not found. The request batch offsets are not found in the cache.")
        found = self.batches[begin : self.floor(acknowledgements.last) + 1]
        for name, offset in (("first", acknowledgements.first), ("last", acknowledgements.last)):
            if offset > found[-1].last:
                message = f"Batch record not found. The {name} offset in request is past acquired records."
                refuse(message, ErrorCode.INVALID_REQUEST)
        return found

    def _take(
        self,
        member_id: str,
        batch: InFlightBatch,
        stretches: Iterable[tuple[int, int, int]],
        now: int,
        changes: list[StateChange],
    ) -> None:
        for first, last, kind in stretches:
            for run in batch.between(first, last):
                if not batch.whole:
                    check_owner_of_offset(run, member_id)
                if kind == RENEW:
                    self._renew(batch, run, now)
                else:
                    changes.append(self._change(batch, run, STATE_OF_TYPE[kind]))

    def _renew(self, batch: InFlightBatch, run: InFlightState, now: int) -> None:
        if not self.config().share_renew_acknowledge_enable:
            refuse("Renewing acquisition locks is not enabled for the group.")
        self._begin_lock(batch, run, now)

    def release(self, member_id: str) -> None:
        """Release all records of a member. Raises the errors of ``persist``; the state is then unchanged."""
        changes: list[StateChange] = []
        for batch in self.batches:
            if batch.runs[0].member_id == member_id and batch.first < self.start_offset <= batch.last:
                batch.whole = False
            if not batch.whole:
                batch.cut(self.start_offset)
            changes += [
                self._change(batch, run, RecordState.AVAILABLE) for run in batch.runs if run.member_id == member_id
            ]
        self.complete_write(changes)

    def _time_out(self, batch: InFlightBatch, run: InFlightState) -> None:
        """Handle the expiration of a lock.

        The records become available again even if the change could not be persisted.
        """
        if run.first < self.start_offset <= run.last:
            batch.whole = False
            batch.cut(self.start_offset)
        run.lock = None
        changes = [self._change(batch, run, RecordState.AVAILABLE)]
        with suppress(RequestRefusedError):
            self._write(changes)
        self._apply(changes)

    # State changes

    def _change(self, batch: InFlightBatch, run: InFlightState, wanted: RecordState) -> StateChange:
        """Take records from their member. Records that reached the delivery limit will be archived."""
        state = wanted
        if wanted is RecordState.AVAILABLE:
            spent = run.delivery_count >= self.config().share_delivery_count_limit
            state = RecordState.ARCHIVED if spent or run.last < self.start_offset else wanted
        change = StateChange(batch, run.member_id, PersisterStateBatch(run.first, run.last, state, run.delivery_count))
        run.member_id = ""
        return change

    def _write(self, changes: list[StateChange]) -> None:
        done = (change.after for change in changes if change.after.state.terminal)
        complete = self.complete + sum(max(0, each.last - max(each.first, self.start_offset) + 1) for each in done)
        self._persist(self.start_offset, complete, [change.after for change in changes])

    def _apply(self, changes: list[StateChange]) -> None:
        for batch, _, after in changes:
            for run in batch.between(after.first, after.last):
                run.unlock()
                self._set(run, after.state)
        self._advance()
        self.changed()

    def _set(self, run: InFlightState, state: RecordState) -> None:
        self.complete += (state.terminal - run.state.terminal) * run.overlap(self.start_offset, run.last)
        run.state, run.member_id = state, ""
        self._search |= state is RecordState.AVAILABLE

    def archive(self, first: int, last: int, batches: Iterable[InFlightBatch], state: RecordState) -> None:
        """Archive the records from ``first`` to ``last`` that have a state, because no member will acquire them."""
        for batch in batches:
            if batch.first > last or batch.last < first or (batch.whole and batch.runs[0].state is not state):
                continue
            batch.whole = batch.whole and batch.is_within(first, last)
            for run in batch.between(first, last):
                if run.state is state:
                    run.unlock()
                    self._set(run, RecordState.ARCHIVED)
                    self._search = True

    def on_log_start_offset(self, offset: int) -> None:
        """Follow an increase of the log start offset."""
        if offset <= self.start_offset:
            return
        runs = (run for batch in self.batches for run in batch.runs if run.state.terminal)
        complete = self.complete - sum(run.overlap(self.start_offset, offset - 1) for run in runs)
        self.archive(self.start_offset, offset - 1, self.batches, RecordState.AVAILABLE)
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset) if self.batches else offset
        self.complete = complete if self.batches else 0

    # Start offset

    def _advance(self) -> None:
        """Move the start offset over finished records, and forget them."""
        if not self._may_advance():
            return
        done, last = self._done()
        if last is None:
            return
        if last == self.batches[-1].last:
            self.start_offset = self.end_offset = last + 1
            self.batches.clear()
            self.complete = 0
            return
        index = self.floor(last)
        if last == self.batches[index].last:
            self.start_offset = max(self.start_offset, self.batches[index + 1].first)
            if self.gap is not None:
                self.start_offset = min(self.gap, self.start_offset)
            index += 1
        else:
            self.start_offset = max(self.start_offset, last + 1)
        self.complete -= done
        del self.batches[:index]

    def _may_advance(self) -> bool:
        index = self.floor(self.start_offset)
        return index >= 0 and self.batches[index].run_at(self.start_offset).state.terminal

    def _done(self) -> tuple[int, int | None]:
        """Return the number of finished records counted from the start offset, and the last one of them."""
        count, last, gap = 0, None, self.gap
        for batch in self.batches:
            if gap is not None and batch.last >= gap:
                break
            for run in batch.runs:
                if not run.state.terminal:
                    return count, last
                count, last = count + run.overlap(self.start_offset, run.last), run.last
        return count, last
