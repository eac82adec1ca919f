"""A segment of a partition. Its indexes find the batches from an offset on, or the first record at a time.

An index entry is used only if the segment confirms it. Without an entry the segment is read from its start.
``file_scan`` and ``indexes`` read the files. ``log_directory`` lists the segments. In Kafka this is
``org.apache.kafka.storage.internals.log.LogSegment``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.faults import raise_on_fault, skip_faults
from kafka_msgs.log.file_scan import AnyBatch, walk_log
from kafka_msgs.log.indexes import (
    AbortedTransaction,
    OffsetEntry,
    TimeEntry,
    find_offset,
    find_time,
    walk_aborted_transactions,
    walk_offset_index,
    walk_time_index,
)
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions, Record

__all__ = ["Segment"]


@frozen(order=True)
class Segment:
    """The ``.log`` file at ``path``, and its indexes in the same directory. The indexes may be missing."""

    path: Path

    @property
    def base_offset(self) -> int:
        """The offset in the file names. No record of the segment has a lower offset."""
        return int(self.path.stem)

    @property
    def size(self) -> int:
        """The size of the ``.log`` file in bytes."""
        return self.path.stat().st_size

    @property
    def closed(self) -> bool:
        """Whether the directory contains a later segment, so that the broker no longer writes to this one."""
        names = (path.stem for path in self.path.parent.glob("*.log"))
        return any(int(name) > self.base_offset for name in names if name.isdecimal())

    def batches(self, from_offset: int = 0, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Iterator[AnyBatch]:
        """Yield the batches, starting with the batch that contains ``from_offset``, or with the first batch after it.

        That batch may start before the offset. Raises the errors of ``read_log``.
        """
        return raise_on_fault(self.walk_batches(from_offset, options))

    def walk_batches(
        self, from_offset: int = 0, options: ReadOptions = DEFAULT_READ_OPTIONS
    ) -> Iterator[AnyBatch | LogFileError]:
        """Yield the batches and, in its place, each ``LogFileError``."""
        yield from self._walk(from_offset, options, closed=self.closed)

    def batch_at(self, offset: int) -> AnyBatch | None:
        """Return the first valid batch whose last offset is ``offset`` or later, or None."""
        return next(self._sound_batches(offset), None)

    def _sound_batches(self, from_offset: int) -> Iterator[AnyBatch]:
        # Zeros at the end do not change the result here, so the directory, which may be long, is not listed.
        return skip_faults(self._walk(from_offset, DEFAULT_READ_OPTIONS, closed=False))

    def _walk(self, from_offset: int, options: ReadOptions, *, closed: bool) -> Iterator[AnyBatch | LogFileError]:
        for item in walk_log(self.path, options, start=self.position_of(from_offset), closed=closed):
            if isinstance(item, LogFileError) or item.last_offset >= from_offset:
                yield item

    def position_of(self, offset: int) -> int:
        """Return the position of a batch; all records before that position have offsets below ``offset``.

        It is the nearest position in the index, or 0 without a valid index.
        """
        if offset <= self.base_offset:
            return 0
        path = self.path.with_suffix(".index")
        entry = find_offset(path, offset) if path.exists() else None
        return entry.position if entry is not None and self._fits(entry) else 0

    def first_at(self, timestamp: int) -> Record | None:
        """Return the first record whose timestamp is ``timestamp`` or later, in milliseconds since the epoch.

        Return None if all are earlier. Damaged batches are skipped. Raises the errors of a batch's ``records``.
        """
        entry = self.time_before(timestamp)
        start = self.base_offset if entry is None else entry.offset
        for batch in self._sound_batches(start):
            if batch.max_timestamp >= timestamp:
                for record in batch:
                    if record.timestamp >= timestamp:
                        return record
        return None

    def time_before(self, timestamp: int | None = None) -> TimeEntry | None:
        """Return the last entry of the time index that is earlier than ``timestamp``, or the very last entry.

        Return None without such an entry, and for an entry that does not match the batch with its offset.
        """
        path = self.path.with_suffix(".timeindex")
        entry = find_time(path, timestamp) if path.exists() else None
        return entry if entry is not None and self._entry_is_useful(entry) else None

    def offset_index(self) -> Iterator[OffsetEntry]:
        """Yield the entries of the ``.index`` file, or none if it is missing; like ``read_offset_index``."""
        return raise_on_fault(self.walk_offset_index())

    def walk_offset_index(self) -> Iterator[OffsetEntry | LogFileError]:
        """Yield the entries like ``offset_index``, and each ``LogFileError`` in its place."""
        path = self.path.with_suffix(".index")
        return walk_offset_index(path) if path.exists() else iter(())

    def time_index(self) -> Iterator[TimeEntry]:
        """Yield the entries of the ``.timeindex`` file, or none if it is missing; like ``read_time_index``."""
        return raise_on_fault(self.walk_time_index())

    def walk_time_index(self) -> Iterator[TimeEntry | LogFileError]:
        """Yield the entries like ``time_index``, and each ``LogFileError`` in its place."""
        path = self.path.with_suffix(".timeindex")
        return walk_time_index(path) if path.exists() else iter(())

    def aborted_transactions(self) -> Iterator[AbortedTransaction]:
        """Yield the entries of the ``.txnindex`` file, or none if it is missing; like ``read_aborted_transactions``."""
        return raise_on_fault(self.walk_aborted_transactions())

    def walk_aborted_transactions(self) -> Iterator[AbortedTransaction | LogFileError]:
        """Yield the entries like ``aborted_transactions``, and each ``LogFileError`` in its place."""
        path = self.path.with_suffix(".txnindex")
        return walk_aborted_transactions(path) if path.exists() else iter(())

    def _fits(self, entry: OffsetEntry) -> bool:
        """Return whether a valid batch starts at the position of an entry.

        Its last offset must not exceed the offset of the entry.
        """
        if not 0 <= entry.position < self.size:
            return False
        first = next(walk_log(self.path, start=entry.position), None)
        return not isinstance(first, LogFileError) and first is not None and first.last_offset <= entry.offset

    def _entry_is_useful(self, entry: TimeEntry) -> bool:
        """Return whether the batch with the offset of an entry has its latest timestamp."""
        batch = self.batch_at(entry.offset) if entry.offset >= self.base_offset else None
        return batch is not None and batch.max_timestamp == entry.timestamp
