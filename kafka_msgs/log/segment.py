"""A segment of a partition. Its indexes find the batches from an offset on, or the first record at a time.

Lookups read only the used part of the indexes, and a few batches of the segment. An index entry is trusted only if a
valid batch confirms it, because a wrong position would lose records. ``kafka_msgs.filesystems.segment_lookup`` replaces
the reads on other filesystems.

The checks of indexes make the same comparison as Kafka's tool ``kafka-dump-log``
(``org.apache.kafka.tools.DumpLogSegments``): an entry of the offset index must have the last offset of the batch at its
position, and an entry of the time index the last offset of a batch and the latest timestamp in that batch. ``indexes``
reports damage of the indexes themselves.

``file_scan`` and ``indexes`` read the files. ``log_directory`` lists the segments. In Kafka this is
``org.apache.kafka.storage.internals.log.LogSegment``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

from attrs import field, frozen

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET
from kafka_msgs.errors import KafkaMsgsError, LogFileError, RecordError
from kafka_msgs.log.faults import raise_on_fault, skip_faults
from kafka_msgs.log.file_scan import AnyBatch, walk_headers, walk_log
from kafka_msgs.log.indexes import (
    OFFSET_LAYOUT,
    TIME_LAYOUT,
    AbortedTransaction,
    IndexEntries,
    OffsetEntry,
    TimeEntry,
    read_aborted_transactions,
    read_offset_index,
    read_time_index,
    walk_offset_index,
    walk_time_index,
)
from kafka_msgs.log.mapped_file import Mapped, map_file
from kafka_msgs.log.resync import stated_size
from kafka_msgs.records import DEFAULT_READ_OPTIONS, Batch, ReadOptions, Record, RecordBatch, read_batches

__all__ = [
    "LARGEST",
    "Segment",
    "check_offset_index",
    "check_time_index",
    "next_offsets",
    "read_batch",
    "stated_offset",
]

T = TypeVar("T")
E = TypeVar("E", OffsetEntry, TimeEntry)

LARGEST: Final = 2**63 - 1
"""The largest offset and the largest time."""
_INTERVAL: Final = 4096
"""The number of bytes between two entries without an index, as in the indexes of a broker."""
_KEY: Final = itemgetter(0)
_Entries: TypeAlias = IndexEntries | list[tuple[int, int]]
"""Index entries with relative offsets, by ascending keys."""


@frozen(order=True)
class Segment:
    """The ``.log`` file at ``path``, and its indexes in the same directory. The indexes may be missing.

    ``end`` is the base offset of the next segment, or the largest offset for the last segment.
    """

    path: Path
    end: int = field(default=LARGEST, eq=False, repr=False)

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
        for item in walk_log(self.path, options, start=self.position_of(from_offset), closed=self.closed):
            if isinstance(item, LogFileError) or item.last_offset >= from_offset:
                yield item

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
        batch = self.batch_starting_at(entry.position)
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

    def position_of(self, offset: int) -> int:
        """Return the start of a valid batch such that all earlier records have offsets below ``offset``, or else 0.

        It is the nearest position in the index. Without an index, it is found from batch headers in local files.
        """
        if offset <= self.base_offset:
            return 0
        entries = self._offset_entries()
        at = bisect_right(entries, offset - self.base_offset, key=_KEY) - 1
        batch = self._confirmed(entries, at)
        return entries[at][1] if batch is not None and stated_offset(batch) <= offset else 0

    def position_after(self, offset: int) -> int:
        """Return the start of a valid batch, or the end of the file, with no record below ``offset`` after it."""
        entries = self._offset_entries()
        # The batches of an entry end with its offset, so all batches from the next entry on are later.
        at = bisect_left(entries, offset - 1 - self.base_offset, key=_KEY) + 1
        batch = self._confirmed(entries, at)
        known = isinstance(batch, RecordBatch) and batch.base_offset >= offset
        return entries[at][1] if known else self.size

    def batch_at(self, offset: int) -> AnyBatch | None:
        """Return the first valid batch whose last offset is ``offset`` or later, or None."""
        batches = self._batches(self._places(offset, offset + 1))
        return next((batch for batch in batches if batch.last_offset >= offset), None)

    def first_at(self, timestamp: int, *, skips_unreadable: bool = False) -> Record | None:
        """Return the first record whose timestamp, in ms since the epoch, is ``timestamp`` or later.

        Return None if all are earlier. Damaged batches are skipped, and with ``skips_unreadable`` also batches whose
        records cannot be read. Otherwise raises the errors of a batch's ``records``.
        """
        for batch in self._late_batches(timestamp):
            try:
                found = next((record for record in batch if record.timestamp >= timestamp), None)
            except RecordError:
                if not skips_unreadable:
                    raise
            else:
                if found is not None:
                    return found
        return None

    def _late_batches(self, timestamp: int) -> Iterator[AnyBatch]:
        """Yield the batches with a record at ``timestamp`` or later."""
        if self.is_earlier(timestamp):
            return
        entries = self._time_entries()
        at = bisect_left(entries, timestamp, key=_KEY)
        before, after = self._time_entry(entries, at - 1), self._time_entry(entries, at)
        batches = self._batches(self._places(before.offset if before else 0, after.offset + 1 if after else LARGEST))
        if before is not None and not _confirms(before, batches):
            batches = self._batches([0])
        yield from (batch for batch in batches if batch.max_timestamp >= timestamp)

    def time_before(self, timestamp: int | None = None) -> TimeEntry | None:
        """Return the last entry of the time index that is earlier than ``timestamp``, or the very last entry.

        Return None without such an entry, and for an entry that does not match the batch with its offset.
        """
        entries = self._time_entries()
        at = len(entries) if timestamp is None else bisect_left(entries, timestamp, key=_KEY)
        entry = self._time_entry(entries, at - 1)
        if entry is None or not _confirms(entry, self._batches(self._places(entry.offset, entry.offset + 1))):
            return None
        return entry

    def end_offset(self) -> int:
        """Return the offset after the last valid batch, or the segment's base offset without any.

        An incomplete batch is still being written, and does not count yet.
        """
        last = max((batch.last_offset for batch in self._batches([self.position_of(LARGEST)])), default=-1)
        return max(self.base_offset, last + 1)

    def record_from(self, offset: int) -> Record | None:
        """Return the first record at or after an offset that is not a transaction marker, or None.

        Raises the errors of ``records`` of a batch.
        """
        for batch in self._batches(self._steps(self.position_of(offset))):
            if batch.last_offset >= offset and not (isinstance(batch, RecordBatch) and batch.is_control):
                for record in batch.records():
                    if record.offset >= offset:
                        return record
        return None

    def newest_time(self) -> int | None:
        """Return the latest timestamp, in ms since the epoch, from the last time index entry and later batches."""
        entry = self.time_before()
        start, indexed = (self.base_offset, -1) if entry is None else (entry.offset, entry.timestamp)
        times = [indexed, *(batch.max_timestamp for batch in self._batches([self.position_of(start)]))]
        return max((each for each in times if each >= 0), default=None)

    def is_earlier(self, timestamp: int) -> bool:
        """Return whether all records are earlier than ``timestamp``, if that is known without reading the segment."""
        return False

    @property
    def is_quick(self) -> bool:
        """Whether lookups read only a small part of the segment from its filesystem. Raises ``OSError``."""
        return True

    @property
    def places(self) -> list[int]:
        """The positions where batches should start, from the index or, in local files, from batch headers."""
        entries = list(self._offset_entries())
        if all(one < two and place < after for (one, place), (two, after) in pairwise(entries)):
            return [place for _, place in entries]
        return [place for _, place in self._header_entries]

    def cuts(self, start: int, end: int, size: int, offset: int = -1) -> Iterator[int]:
        """Yield ``start``, and the positions of ``marks`` after it.

        Positions before a batch that starts at or before ``offset`` are left out.
        """
        first = start
        for place, batch in self.marks(start, end, size):
            if stated_offset(batch) > offset:
                yield first
            first = place
        yield first

    def marks(self, start: int, end: int, size: int) -> Iterator[tuple[int, AnyBatch]]:
        """Yield positions between two others that are at least ``size`` bytes apart, and the valid batches there.

        The part after the last position is up to 50 % larger.
        """
        first, half = start, max(size // 2, 1)
        for place in self.places if end - start > size * 3 // 2 else ():
            if place - first >= size and end - place >= half and (batch := self.batch_starting_at(place)) is not None:
                yield place, batch
                first = place

    def batch_starting_at(self, position: int) -> AnyBatch | None:
        """Return the valid batch that starts at a byte position, or None."""
        data = map_file(self.path)
        return read_batch(len(data), lambda size, start: data[start : start + size], position)

    def _batches(self, places: Iterable[int]) -> Iterator[AnyBatch]:
        """Yield the valid batches from the first place on. The other places delimit the parts to fetch."""
        # Zeros at the end do not change the result, so the directory is not listed for later segments.
        return skip_faults(walk_log(self.path, start=next(iter(places))))

    def _places(self, first: int, end: int) -> Iterator[int]:
        """Yield the positions for ``_batches`` to read the offsets from ``first`` to before ``end``."""
        yield self.position_of(first)
        yield self.position_after(end)

    def _steps(self, start: int) -> Iterable[int]:
        """Return the positions for ``_batches`` to search for a record from batch to batch."""
        return [start]

    def _confirmed(self, entries: _Entries, at: int) -> AnyBatch | None:
        """Return the valid batch at the position of an entry, unless that is the start of the segment."""
        position = entries[at][1] if 0 <= at < len(entries) else 0
        return self.batch_starting_at(position) if position > 0 else None

    def _offset_entries(self) -> _Entries:
        found = IndexEntries(self.index(".index"), OFFSET_LAYOUT)
        return found if len(found) else self._header_entries

    @cached_property
    def _header_entries(self) -> list[tuple[int, int]]:
        """Ascending entries from the batch headers, at about the intervals of a broker's index."""
        base, found = self.base_offset, [(-1, -_INTERVAL)]
        for each in walk_headers(map_file(self.path)):
            if each.position - found[-1][1] >= _INTERVAL and each.base_offset - base > found[-1][0]:
                found.append((each.base_offset - base, each.position))
        return found[1:]

    def _time_entries(self) -> IndexEntries:
        return IndexEntries(self.index(".timeindex"), TIME_LAYOUT)

    def _time_entry(self, entries: IndexEntries, at: int) -> TimeEntry | None:
        """Return the entry with this number, or None if it does not exist or its offset is not of this segment."""
        if not 0 <= at < len(entries):
            return None
        timestamp, offset = entries[at]
        return TimeEntry(timestamp, self.base_offset + offset) if 0 <= offset < self.end - self.base_offset else None


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


def next_offsets(bases: Iterable[int]) -> list[int]:
    """Return the offset at which each segment ends, from the base offsets of successive segments."""
    return [*bases, LARGEST][1:]


def _confirms(entry: TimeEntry, batches: Iterator[AnyBatch]) -> bool:
    """Return whether the batch with the offset of a time index entry has its time. Advances to the batch after it."""
    batch = next((batch for batch in batches if batch.last_offset >= entry.offset), None)
    return batch is not None and batch.max_timestamp == entry.timestamp


def stated_offset(batch: Batch) -> int:
    """Return the offset in a batch header: its first record's, in a compressed message set the last one's."""
    return batch.base_offset if isinstance(batch, RecordBatch) else batch.last_offset


def read_batch(size: int, read: Callable[[int, int], bytes], position: int) -> AnyBatch | None:
    """Return the batch at a position of a file, or None if it is damaged or does not start there.

    ``size`` is the size of the file. ``read`` returns a number of bytes from a position on.
    """
    if not 0 <= position < size - MAGIC_OFFSET:
        return None
    stated = stated_size(read(LENGTH_AND_OFFSET_STRUCT, position), 0)
    if not MAGIC_OFFSET < stated <= size - position:
        return None
    try:
        return next(read_batches(read(stated, position)), None)
    except RecordError:
        return None
