"""A segment of a partition. Its indexes find the batches from an offset on, or the first record at a time.

An index entry is used only if the segment confirms it. Without an entry the segment is read from its start. The checks
of indexes make the same comparison as Kafka's tool ``kafka-dump-log`` (``org.apache.kafka.tools.DumpLogSegments``): an
entry of the offset index must have the last offset of the batch at its position, and an entry of the time index the
last offset of a batch and the latest timestamp in that batch. ``indexes`` reports damage of the indexes themselves.

``file_scan`` and ``indexes`` read the files. ``log_directory`` lists the segments. In Kafka this is
``org.apache.kafka.storage.internals.log.LogSegment``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from attrs import frozen

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.log.faults import raise_on_fault, skip_faults
from kafka_msgs.log.file_scan import AnyBatch, walk_log
from kafka_msgs.log.indexes import (
    OFFSET_LAYOUT,
    TIME_LAYOUT,
    AbortedTransaction,
    OffsetEntry,
    TimeEntry,
    find_offset,
    find_time,
    read_aborted_transactions,
    read_offset_index,
    read_time_index,
    walk_offset_index,
    walk_time_index,
)
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions, Record

__all__ = ["Segment", "check_offset_index", "check_time_index"]

T = TypeVar("T")
E = TypeVar("E", OffsetEntry, TimeEntry)


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
        batch = self._batch_starting_at(entry.position) if entry else None
        return entry.position if entry and batch and batch.last_offset <= entry.offset else 0

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
        batch = self.batch_at(entry.offset) if entry and entry.offset >= self.base_offset else None
        return entry if entry and batch and batch.max_timestamp == entry.timestamp else None

    def offset_index(self) -> Iterator[OffsetEntry]:
        """Yield the entries of the ``.index`` file, or none if it is missing; like ``read_offset_index``."""
        return self._entries(".index", read_offset_index)

    def time_index(self) -> Iterator[TimeEntry]:
        """Yield the entries of the ``.timeindex`` file, or none if it is missing; like ``read_time_index``."""
        return self._entries(".timeindex", read_time_index)

    def aborted_transactions(self) -> Iterator[AbortedTransaction]:
        """Yield the entries of the ``.txnindex`` file, or none if it is missing; like ``read_aborted_transactions``."""
        return self._entries(".txnindex", read_aborted_transactions)

    def _entries(self, suffix: str, read: Callable[[Path], Iterator[T]]) -> Iterator[T]:
        path = self.path.with_suffix(suffix)
        return read(path) if path.exists() else iter(())

    def _batch_starting_at(self, position: int) -> AnyBatch | None:
        """Return the valid batch that starts at a byte position, or None."""
        item = next(walk_log(self.path, start=position), None) if 0 <= position < self.size else None
        return None if isinstance(item, LogFileError) else item

    def _offset_mismatch(self, entry: OffsetEntry) -> str | None:
        batch = self._batch_starting_at(entry.position)
        if batch is not None and batch.last_offset == entry.offset:
            return None
        return "there is no batch" if batch is None else f"the batch ends with offset {batch.last_offset}"

    def _time_mismatch(self, entry: TimeEntry) -> str | None:
        batch = self.batch_at(entry.offset)
        if batch is None or batch.last_offset != entry.offset:
            return "no batch ends with that offset"
        try:
            latest = max((record.timestamp for record in batch), default=None)
        except KafkaMsgsError as error:
            return str(error)
        return None if latest == entry.timestamp else f"the latest time in that batch is {latest}"


def check_offset_index(path: Path) -> Iterator[OffsetEntry | LogFileError]:
    """Yield the entries of an ``.index`` file and its faults. A mismatch with the segment follows its entry.

    Without a segment there are no mismatches. Raises ``LogFileError`` for a file whose name is not an offset, and
    ``OSError``.
    """
    return _checked(path, OFFSET_LAYOUT.size, walk_offset_index(path), Segment._offset_mismatch)


def check_time_index(path: Path) -> Iterator[TimeEntry | LogFileError]:
    """Yield the entries of a ``.timeindex`` file, its faults and mismatches; works like ``check_offset_index``."""
    return _checked(path, TIME_LAYOUT.size, walk_time_index(path), Segment._time_mismatch)


def _checked(
    path: Path, size: int, items: Iterator[E | LogFileError], mismatch: Callable[[Segment, E], str | None]
) -> Iterator[E | LogFileError]:
    segment = Segment(path.with_suffix(".log"))
    for number, item in enumerate(items):
        yield item
        if not isinstance(item, LogFileError) and segment.path.exists() and (found := mismatch(segment, item)):
            reason = f"{item}: {found}"
            yield LogFileError(file=str(path), position=number * size, skipped=size, reason=reason)
