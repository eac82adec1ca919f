"""Acquisition of records by a member: first available in-flight records, then new ones.

``SharePartition.acquire`` uses this module. A record with many delivery attempts is delivered in a smaller batch, and
alone in the last attempt: if it makes consumers fail, the records next to it are not affected.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final, Protocol

from attrs import define, field

from kafka_msgs.broker.share.in_flight import InFlightBatch, InFlightState
from kafka_msgs.broker.share.record_state import AcquiredRecords, AcquireMode, RecordState
from kafka_msgs.broker.share.share_partition import SharePartition
from kafka_msgs.broker.storage.batch_headers import PositionedHeader
from kafka_msgs.log.indexes import AbortedTransaction

__all__ = ["acquire", "archive_aborted"]


def archive_aborted(
    share: SharePartition,
    acquired: list[AcquiredRecords],
    batches: Sequence[PositionedHeader],
    transactions: Iterable[AbortedTransaction],
    ends_aborted: Callable[[PositionedHeader], bool],
) -> list[AcquiredRecords]:
    """Archive acquired records of aborted transactions, and return the remaining records.

    ``batches`` are the batches that were read, and ``transactions`` the aborted transactions that may have records in
    them. ``ends_aborted`` returns whether a control batch aborts a transaction.
    """
    aborted = _aborted(batches, transactions, ends_aborted)
    for batch in aborted:
        touched = share.touching(batch.base_offset, batch.last_offset)
        share.archive(batch.base_offset, batch.last_offset, touched, RecordState.ACQUIRED)
    return list(_without(acquired, aborted)) if aborted else acquired


def _aborted(
    batches: Sequence[PositionedHeader],
    transactions: Iterable[AbortedTransaction],
    ends_aborted: Callable[[PositionedHeader], bool],
) -> list[PositionedHeader]:
    """Return the batches of aborted transactions."""
    waiting = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
    producers: set[int] = set()
    found: list[PositionedHeader] = []
    for batch in batches:
        if not batch.has_producer:
            continue
        while waiting and waiting[-1].first_offset <= batch.last_offset:
            producers.add(waiting.pop().producer_id)
        if batch.is_control and ends_aborted(batch):
            producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found


def _without(acquired: Iterable[AcquiredRecords], batches: Sequence[PositionedHeader]) -> Iterable[AcquiredRecords]:
    """Yield the parts of acquired records outside the batches. Both arguments are in order."""
    index = 0
    for each in acquired:
        first = each.first
        while index < len(batches) and batches[index].last_offset < first:
            index += 1
        at = index
        while at < len(batches) and batches[at].base_offset <= each.last:
            if batches[at].base_offset > first:
                yield each._replace(first=first, last=batches[at].base_offset - 1)
            first = max(first, batches[at].last_offset + 1)
            at += 1
        index = max(index, at - 1)
        if first <= each.last:
            yield each._replace(first=first)


_FEW_DELIVERIES: Final = 2
_BASE: Final = attrgetter("base_offset")


class LogBatch(Protocol):
    """The attributes of a log batch that acquisition needs."""

    @property
    def base_offset(self) -> int:
        """The first offset."""

    @property
    def last_offset(self) -> int:
        """The last offset."""


def acquire(
    share: SharePartition,
    member_id: str,
    batches: Sequence[LogBatch],
    *,
    fetch_offset: int,
    max_records: int,
    batch_size: int,
    mode: AcquireMode,
    now: int,
) -> list[AcquiredRecords]:
    """Acquire records for a member from the batches that were read from the log at ``fetch_offset``.

    ``max_records`` is the requested number of records. In BATCH_OPTIMIZED mode the member also acquires the rest of a
    log batch. New records are tracked as batches of about ``batch_size``.
    """
    if max_records <= 0 or not batches or batches[-1].last_offset < share.start_offset:
        return []
    wanted, last = _limit(share, fetch_offset, max_records, batches[-1].last_offset)
    if wanted <= 0:
        return []
    base = batches[0].base_offset
    _archive_missing(share, fetch_offset, base)
    acquiring = _Acquisition(share, member_id, batches, base, last, wanted, batch_size, mode, now)
    acquiring.run(_begin(share, base))
    return acquiring.acquired


def _limit(share: SharePartition, fetch_offset: int, max_records: int, last: int) -> tuple[int, int]:
    """Return the maximum number of records and the last offset. At full capacity, no new records are acquired."""
    room = share.config().share_partition_max_record_locks - share.in_flight
    if room <= 0 and fetch_offset <= share.end_offset:
        return min(max_records, share.end_offset - fetch_offset + 1), min(last, share.end_offset)
    return min(max_records, room), last


def _archive_missing(share: SharePartition, fetch_offset: int, base: int) -> None:
    """Archive records that are marked as available but no longer in the log."""
    if share.batches and fetch_offset < base:
        touched = share.touching(fetch_offset, base - 1)
        share.archive(fetch_offset, base - 1, touched, RecordState.AVAILABLE)


def _begin(share: SharePartition, base: int) -> int:
    """Return the first offset to acquire.

    It is the first offset of the in-flight batch that contains ``base``. Without such a batch it is ``base``, or the
    start offset if that is higher.
    """
    index = share.floor(base)
    if index < 0:
        return max(base, share.start_offset)
    batch = share.batches[index]
    return batch.first if batch.last >= base else base


@define
class _Acquisition:
    """One acquisition of offsets from ``base`` to ``last``."""

    share: SharePartition
    member_id: str
    log: Sequence[LogBatch]
    base: int
    last: int
    wanted: int
    batch_size: int
    mode: AcquireMode
    now: int
    acquired: list[AcquiredRecords] = field(factory=list)
    count: int = 0

    @property
    def left(self) -> int:
        """The number of records that the member may still acquire."""
        return self.wanted - self.count

    def run(self, begin: int) -> None:
        """Acquire in-flight records, and then new ones."""
        present = self.share.between(min(self.base, begin), self.last)
        if not present:
            self._take_new(begin, self.last)
            return
        offset = begin
        for batch in present:
            if self.left <= 0:
                break
            if self.share.gap is not None:
                if offset < batch.first:
                    self._take_new(offset, batch.first - 1)
                offset = batch.last + 1
            if self.left > 0 and not self._take_present(batch):
                self.wanted = 0
        if self.left > 0 and present[-1].last < self.last:
            self._take_new(present[-1].last + 1, self.last)
        if self.acquired:
            self.share.gap_filled(self.acquired[-1].last + 1)

    # In-flight records

    def _take_present(self, batch: InFlightBatch) -> bool:
        """Acquire the available records of an in-flight batch. Return whether the acquisition continues."""
        throttled = self._is_throttled(batch)
        if throttled and self.count:
            return False
        if batch.whole and batch.runs[0].state is not RecordState.AVAILABLE:
            return True
        limited = self.mode is AcquireMode.RECORD_LIMIT and batch.size > self.left
        if batch.whole and batch.is_within(self.base, self.last) and not limited and not throttled:
            self._give(batch, batch.runs[0])
            self._note(AcquiredRecords(batch.first, batch.last, batch.runs[0].delivery_count))
            return True
        batch.whole = False
        return not (self._take_part(batch) and throttled)

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        counts = (
            run.delivery_count
            for run in batch.runs
            if run.state is RecordState.AVAILABLE and (batch.whole or run.overlap(self.base, self.last))
        )
        return max(counts, default=0) >= self._throttled_from

    @property
    def _throttled_from(self) -> int:
        """The delivery count from which records are delivered in smaller batches."""
        return max(_FEW_DELIVERIES, (self._most_deliveries + 1) // 2)

    @property
    def _most_deliveries(self) -> int:
        return self.share.config().share_delivery_count_limit

    def _take_part(self, batch: InFlightBatch) -> int:
        """Acquire single offsets of an in-flight batch. Return their number."""
        taken: list[AcquiredRecords] = []
        total, most = 0, None
        limit = self.left if self.mode is AcquireMode.RECORD_LIMIT else None
        first, last = max(batch.first, self.base), min(batch.last, self.last)
        for run in batch.between(first, last):
            if run.state is not RecordState.AVAILABLE:
                continue
            alone = self._is_last_chance(run)
            if alone and total:
                break
            if most is None and run.delivery_count >= self._throttled_from:
                most = max(1, batch.size >> (run.delivery_count - self._throttled_from + 1))
            bounds = [each - total for each in (limit, most) if each is not None and each > total]
            count = min([1 if alone else run.last - run.first + 1, *bounds])
            batch.cut(run.first + count)
            self._give(batch, run)
            _append(taken, AcquiredRecords(run.first, run.last, run.delivery_count))
            total += count
            if alone or total in (limit, most):
                break
        self.acquired += taken
        self.count += total
        return total

    def _is_last_chance(self, run: InFlightState) -> bool:
        return _FEW_DELIVERIES < self._most_deliveries == run.delivery_count + 1

    def _give(self, batch: InFlightBatch, run: InFlightState) -> None:
        run.delivery_count += 1
        self.share.acquire_run(batch, run, self.member_id, self.now)

    def _note(self, acquired: AcquiredRecords) -> None:
        self.acquired.append(acquired)
        self.count += acquired.size

    # New records

    def _take_new(self, first: int, last: int) -> None:
        """Acquire records that were not in flight, from ``first`` to ``last``, up to the requested number."""
        share, limit = self.share, self.left
        if not share.batches:
            first = max(first, share.end_offset)
        in_gap = share.gap is not None
        if limit < last - first + 1:
            end = self._end_of_batch(first + limit - 1)
            last = min(end, last) if in_gap else end
        if last < first:
            return
        if self.mode is AcquireMode.RECORD_LIMIT:
            self._add_limited(first, last, limit)
        else:
            for begin, end in self._pieces(first, last):
                self._add(begin, end)
        if share.batches[0].first == first:
            share.start_offset = first
        share.end_offset = max(share.end_offset, last)
        share.gap_filled(self.acquired[-1].last + 1)

    def _end_of_batch(self, offset: int) -> int:
        """Return the last offset of the log batch that contains an offset, or the offset itself if no batch does."""
        index = bisect_right(self.log, offset, key=_BASE) - 1
        return offset if index < 0 else max(offset, self.log[index].last_offset)

    def _pieces(self, first: int, last: int) -> Iterable[tuple[int, int]]:
        """Yield ranges of about ``batch_size`` offsets that end at log batch boundaries."""
        if last - first + 1 > self.batch_size:
            for index in range(bisect_right(self.log, first, key=_BASE), bisect_right(self.log, last, key=_BASE)):
                border = self.log[index].base_offset
                if border - first >= self.batch_size:
                    yield first, border - 1
                    first = border
        yield first, last

    def _add(self, first: int, last: int) -> None:
        run = InFlightState(first, last, RecordState.AVAILABLE, 0)
        self._give(self.share.add(first, last, [run]), run)
        self._note(AcquiredRecords(first, last, run.delivery_count))

    def _add_limited(self, first: int, last: int, limit: int) -> None:
        """Add a complete log batch, and acquire as many of its records as requested."""
        end = min(last, first + limit - 1)
        if end == last:
            self._add(first, last)
            return
        runs = [
            InFlightState(first, end, RecordState.AVAILABLE, 0),
            InFlightState(end + 1, last, RecordState.AVAILABLE, 0),
        ]
        self._give(self.share.add(first, last, runs, whole=False), runs[0])
        self._note(AcquiredRecords(first, end, 1))
        self.share.may_be_available()


def _append(acquired: list[AcquiredRecords], more: AcquiredRecords) -> None:
    """Append records, merging them into the previous range if they are adjacent and have the same delivery count."""
    before = acquired[-1] if acquired else None
    if before is not None and before.last + 1 == more.first and before.delivery_count == more.delivery_count:
        acquired[-1] = before._replace(last=more.last)
    else:
        acquired.append(more)
