"""A segment of a partition: its bytes, its indexes, and lookups by offset and time.

In Kafka this is ``org.apache.kafka.storage.internals.log.LogSegment``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from attrs import define, field

from kafka_msgs.binary_layouts import NO_TIMESTAMP
from kafka_msgs.broker.storage.batch_headers import PositionedHeader, iter_headers
from kafka_msgs.broker.storage.producer_state import CompletedTransaction
from kafka_msgs.broker.storage.store import SegmentStore
from kafka_msgs.broker.storage.topic_config import TopicConfig
from kafka_msgs.codec import Buffer
from kafka_msgs.errors import RecordError
from kafka_msgs.log.indexes import AbortedTransaction
from kafka_msgs.log.writers.index_writer import SegmentIndexes
from kafka_msgs.records import ReadOptions, Record, read_batches

__all__ = ["LogSegment", "TimestampAndOffset"]

_UNCHECKED = ReadOptions(check_crc=False)


class TimestampAndOffset(NamedTuple):
    """The result of a record lookup. ``leader_epoch`` is -1 if unknown; the timestamp is in milliseconds."""

    offset: int
    timestamp: int
    leader_epoch: int


@define(eq=False)
class LogSegment:
    """The batches from ``base_offset`` up to the next segment. ``created`` is in milliseconds since the epoch."""

    base_offset: int
    store: SegmentStore
    indexes: SegmentIndexes
    created: int
    _first_time: int | None = field(default=None, init=False)
    _modified: int | None = field(default=None, init=False)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return self.store.size

    def append(self, data: Buffer, batches: Iterable[PositionedHeader], now: int) -> None:
        """Append complete batches. The positions of their headers are relative to ``data``."""
        position = self.store.size
        self.store.append(data)
        self._modified = now
        for batch in batches:
            self.indexes.add(position + batch.position, batch.size, batch.last_offset, batch.max_timestamp)

    def complete(self, done: CompletedTransaction, last_stable_offset: int) -> None:
        """Record a transaction whose marker is in this segment. Only aborted transactions are indexed."""
        if done.aborted:
            entry = AbortedTransaction(0, done.producer_id, done.first_offset, done.last_offset, last_stable_offset)
            self.indexes.aborted.append(entry)

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[PositionedHeader]:
        """Yield the headers of the batches that start from byte ``start`` up to but excluding ``stop``."""
        return iter_headers(self.store, start, stop)

    def batch_of(self, offset: int) -> PositionedHeader | None:
        """Return the first batch whose last offset is ``offset`` or higher, or None."""
        start = self.indexes.position_before(offset)
        return next((batch for batch in self.batches(start) if batch.last_offset >= offset), None)

    def records(self, header: PositionedHeader) -> list[Record] | None:
        """Return the records of a batch, or None if they are unreadable: appends do not parse records."""
        try:
            return next(read_batches(b"".join(self.store.read(header.position, header.end)), _UNCHECKED)).records()
        except RecordError:
            return None

    def last_batch_before(self, position: int, start: int) -> PositionedHeader | None:
        """Return the last batch that starts at ``start`` or later and ends at ``position`` or earlier."""
        last, indexed = None, self.indexes.position_at_most(position - 1)
        for batch in self.batches(max(start, indexed), position):
            if batch.end > position:
                break
            last = batch
        if last is None and indexed > start:
            # The batch at the indexed position is too long, so the one before it is the last.
            last = _last(self.batches(max(start, self.indexes.position_at_most(indexed - 1)), indexed))
        return last

    def is_full(self, config: TopicConfig, size: int, last_offset: int, max_timestamp: int, now: int) -> bool:
        """Return whether a batch of ``size`` bytes belongs to the next segment.

        Record timestamps take precedence over the clock, if the records have them (KIP-33).
        """
        waited = self._waited(max_timestamp, now)
        return (
            self.size > config.segment_bytes - size
            or (self.size > 0 and waited > config.longest_segment_ms)
            or self.indexes.is_full(config.segment_index_bytes)
            or not self.indexes.can_hold(last_offset)
        )

    def _waited(self, max_timestamp: int, now: int) -> int:
        first = self.first_timestamp
        return max_timestamp - first if first is not None else now - self.created

    @property
    def first_timestamp(self) -> int | None:
        """The latest timestamp of the first batch, in milliseconds since the epoch, or None without one."""
        if self._first_time is None:
            first = next(self.batches(0, 1), None)
            self._first_time = first.max_timestamp if first else None
        return self._first_time if self._first_time is None or self._first_time >= 0 else None

    @property
    def largest_timestamp(self) -> int:
        """The latest timestamp of the records, or the last modification time of the segment, in milliseconds."""
        if self.indexes.max_timestamp >= 0:
            return self.indexes.max_timestamp
        if self._modified is not None:
            return self._modified
        return self.created if self.store.modified is None else self.store.modified

    def find_time(self, timestamp: int, start_offset: int) -> TimestampAndOffset | None:
        """Return the first record from ``start_offset`` on with ``timestamp`` or later, or None."""
        offset = max(self.indexes.offset_before_time(timestamp), start_offset)
        for header in self.batches(self.indexes.position_before(offset)):
            if header.max_timestamp < timestamp:
                continue
            for record in self.records(header) or ():
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimestampAndOffset(record.offset, record.timestamp, header.leader_epoch)
        return None

    def find_latest(self) -> TimestampAndOffset | None:
        """Return the first record with the latest timestamp, or None."""
        wanted = self.indexes.max_timestamp
        start = self.indexes.position_before(self.indexes.max_timestamp_offset)
        header = next((each for each in self.batches(start) if each.max_timestamp == wanted), None)
        if header is None or wanted == NO_TIMESTAMP:
            return None
        record = next((each for each in self.records(header) or () if each.timestamp == wanted), None)
        return None if record is None else TimestampAndOffset(record.offset, wanted, header.leader_epoch)

    def take_times_after_index(self) -> None:
        """Record the timestamps of batches that the time index does not cover yet."""
        indexes = self.indexes
        for batch in self.batches(indexes.position_before(indexes.max_timestamp_offset)):
            if batch.max_timestamp > indexes.max_timestamp:
                indexes.max_timestamp, indexes.max_timestamp_offset = batch.max_timestamp, batch.last_offset

    def next_offset(self) -> int:
        """Return the offset after the last record."""
        last = _last(self.batches(self.indexes.positions[-1] if self.indexes.positions else 0))
        return last.last_offset + 1 if last else self.base_offset


def _last(batches: Iterator[PositionedHeader]) -> PositionedHeader | None:
    return next(iter(deque(batches, maxlen=1)), None)
