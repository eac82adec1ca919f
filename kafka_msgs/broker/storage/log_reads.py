"""Batch lookup for reads, and record lookup by timestamp.

In Kafka this is in ``LocalLog``, ``LogSegment`` and ``UnifiedLog`` of ``org.apache.kafka.storage.internals.log``. The
special timestamps are defined by ListOffsets (KIP-79, KIP-405, KIP-734, KIP-1005, KIP-1023).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka_msgs.binary_layouts import NO_TIMESTAMP
from kafka_msgs.broker.storage.leader_epochs import LeaderEpochCache
from kafka_msgs.broker.storage.log_segment import LogSegment, TimestampAndOffset
from kafka_msgs.broker.storage.log_segments import LogSegments
from kafka_msgs.log.indexes import AbortedTransaction

__all__ = ["BatchRange", "collect_aborted", "find_aborted_transactions", "find_batches", "offset_for_timestamp"]

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6


class BatchRange(NamedTuple):
    """The complete batches of one segment from byte ``start`` up to but excluding ``stop``.

    ``limit`` is the maximum end of the read in bytes; batches that exceed it are excluded. ``next_offset`` is the
    offset after the last batch.
    """

    segment: LogSegment
    start: int
    stop: int
    limit: int
    next_offset: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.stop - self.start


def find_batches(
    segments: LogSegments, offset: int, max_bytes: int, max_offset: int, *, min_one_batch: bool
) -> BatchRange | None:
    """Return the batches from ``offset`` on and below ``max_offset``, or None if none exist."""
    if offset >= max_offset:
        return None
    for segment in segments.from_offset(offset):
        first = segment.batch_of(offset)
        if first is None:
            continue
        if first.last_offset >= max_offset:
            return None
        end = segments.end_of(segment)
        limit, behind = segment.size, None if max_offset >= end else segment.batch_of(max_offset)
        if behind is not None:
            limit = behind.position
        wanted = first.position + max(max_bytes, first.size if min_one_batch else 0)
        if wanted >= limit:
            return BatchRange(segment, first.position, limit, limit, max_offset if behind else end)
        last = segment.last_batch_before(wanted, first.position)
        if last is None:
            return BatchRange(segment, first.position, first.position, wanted, offset)
        return BatchRange(segment, first.position, last.end, wanted, last.last_offset + 1)
    return None


def find_aborted_transactions(segments: LogSegments, found: BatchRange, offset: int) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that may have records in the batches of a read from ``offset``.

    The upper bound comes from the offset index, so the result may include a transaction that starts shortly after the
    batches.
    """
    behind = found.segment.indexes.offset_from(found.limit)
    upper = segments.end_of(found.segment) if behind is None else behind
    return collect_aborted(segments.from_offset(found.segment.base_offset), offset, upper)


def collect_aborted(segments: Iterable[LogSegment], offset: int, upper: int) -> tuple[AbortedTransaction, ...]:
    """Return the aborted transactions that end in some segments, at ``offset`` or above, and begin below ``upper``."""
    collected = []
    for segment in segments:
        for entry in segment.indexes.aborted:
            if entry.last_offset >= offset and entry.first_offset < upper:
                collected.append(entry)
            if entry.last_stable_offset >= upper:
                return tuple(collected)
    return tuple(collected)


def offset_for_timestamp(
    segments: LogSegments, epochs: LeaderEpochCache, start: int, timestamp: int, limit: int
) -> TimestampAndOffset | None:
    """Return the result for a ListOffsets timestamp in a log that starts at ``start``.

    Records at ``limit`` or above are not visible.
    """
    if timestamp == LATEST:
        return TimestampAndOffset(limit, NO_TIMESTAMP, _known(epochs.latest))
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return TimestampAndOffset(start, NO_TIMESTAMP, _known(epochs.of(start)))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD):
        return TimestampAndOffset(-1, NO_TIMESTAMP, -1)
    if timestamp == MAX_TIMESTAMP:
        found = max(segments, key=lambda segment: segment.indexes.max_timestamp).find_latest()
    else:
        later = (segment for segment in segments if segment.largest_timestamp >= timestamp)
        segment = next(later, None)
        found = None if segment is None else segment.find_time(timestamp, start)
    return found if found is not None and found.offset < limit else None


def _known(epoch: int | None) -> int:
    return -1 if epoch is None else epoch
