"""A segment of a partition. Its indexes find the batches from an offset on, or the first record at a time.

``segment_lookup`` finds them. Without an index entry the segment is read from its start. The checks of indexes make the
same comparison as Kafka's tool ``kafka-dump-log`` (``org.apache.kafka.tools.DumpLogSegments``): an entry of the offset
index must have the last offset of the batch at its position, and an entry of the time index the last offset of a batch
and the latest timestamp in that batch. ``indexes`` reports damage of the indexes themselves.

``file_scan`` and ``indexes`` read the files. ``log_directory`` lists the segments. In Kafka this is
``org.apache.kafka.storage.internals.log.LogSegment``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from attrs import frozen

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.log.faults import raise_on_fault
from kafka_msgs.log.file_scan import AnyBatch, walk_log
from kafka_msgs.log.indexes import (
    OFFSET_LAYOUT,
    TIME_LAYOUT,
    AbortedTransaction,
    OffsetEntry,
    TimeEntry,
    read_aborted_transactions,
    read_offset_index,
    read_time_index,
    walk_offset_index,
    walk_time_index,
)
from kafka_msgs.log.mapped_file import Mapped, map_file
from kafka_msgs.log.segment_lookup import SegmentLookup
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
    def local_path(self) -> Path:
        """The ``.log`` file."""
        return self.path

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
        for item in walk_log(self.path, options, start=self.position_of(from_offset), closed=self.closed):
            if isinstance(item, LogFileError) or item.last_offset >= from_offset:
                yield item

    def batch_at(self, offset: int) -> AnyBatch | None:
        """Return the first valid batch whose last offset is ``offset`` or later, or None."""
        return SegmentLookup(self).batch_at(offset)

    def position_of(self, offset: int) -> int:
        """Return the position of a batch; all records before that position have offsets below ``offset``.

        It is the nearest position in the index, or 0 without a valid index.
        """
        return SegmentLookup(self).position_before(offset) if self.path.with_suffix(".index").exists() else 0

    def first_at(self, timestamp: int) -> Record | None:
        """Return the first record whose timestamp is ``timestamp`` or later, in milliseconds since the epoch.

        Return None if all are earlier. Damaged batches are skipped. Raises the errors of a batch's ``records``.
        """
        return SegmentLookup(self).first_at(timestamp)

    def time_before(self, timestamp: int | None = None) -> TimeEntry | None:
        """Return the last entry of the time index that is earlier than ``timestamp``, or the very last entry.

        Return None without such an entry, and for an entry that does not match the batch with its offset.
        """
        return SegmentLookup(self).time_before(timestamp)

    def index(self, suffix: str) -> Mapped:
        """Return the bytes of an index, empty if it is missing. Raises the errors of ``map_file``."""
        path = self.path.with_suffix(suffix)
        return map_file(path) if path.exists() else b""

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

    def _offset_mismatch(self, entry: OffsetEntry) -> str | None:
        batch = SegmentLookup(self).batch_starting_at(entry.position)
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
