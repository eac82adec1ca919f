"""Lookups in a segment by offset or time, and its cut positions.

Lookups read only the used part of the indexes, and a few batches of the segment. An index entry is trusted only if a
valid batch confirms it, because a wrong position would lose rows. ``SegmentLookup`` reads local files, which are
memory-mapped; ``kafka_msgs.filesystems.segment_lookup`` replaces its reads on other filesystems.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final, Protocol, TypeAlias, TypeVar

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET
from kafka_msgs.errors import RecordError
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, walk_headers, walk_log
from kafka_msgs.log.indexes import OFFSET_LAYOUT, TIME_LAYOUT, IndexEntries, TimeEntry
from kafka_msgs.log.mapped_file import Mapped, map_file
from kafka_msgs.log.resync import stated_size
from kafka_msgs.records import Batch, Record, RecordBatch, read_batches

__all__ = [
    "LARGEST",
    "SegmentFiles",
    "SegmentLookup",
    "next_offsets",
    "read_batch",
    "segment_lookups",
    "stated_offset",
]

LARGEST: Final = 2**63 - 1
"""The largest offset and the largest time."""
_INTERVAL: Final = 4096
"""The number of bytes between two entries without an index, as in the indexes of a broker."""
_KEY: Final = itemgetter(0)
_Entries: TypeAlias = IndexEntries | list[tuple[int, int]]
"""Index entries with relative offsets, by ascending keys."""


class SegmentFiles(Protocol):
    """The ``.log`` file of a segment, and its indexes."""

    @property
    def base_offset(self) -> int | None:
        """The offset in the file name, or None for another name."""

    @property
    def size(self) -> int:
        """The size of the ``.log`` file in bytes."""

    @property
    def local_path(self) -> Path:
        """The ``.log`` file."""

    def index(self, suffix: str) -> Mapped:
        """Return the bytes of an index, possibly with zeros after its entries; empty if missing. Raises ``OSError``."""


F = TypeVar("F", bound=SegmentFiles)


def next_offsets(bases: Iterable[int]) -> list[int]:
    """Return the offset at which each segment ends, from the base offsets of successive segments."""
    return [*bases, LARGEST][1:]


class SegmentLookup:
    """Lookups in one segment, whose records have offsets below ``end``. Raises ``OSError``.

    ``end`` is the base offset of the next segment, or ``LARGEST`` for the last segment.
    """

    def __init__(self, files: SegmentFiles, end: int = LARGEST) -> None:
        self._files = files
        self._base = files.base_offset or 0
        self.end = end
        self._offsets: _Entries | None = None

    def position_before(self, offset: int) -> int:
        """Return the start of a valid batch such that all earlier records have offsets below ``offset``, or else 0.

        It is the nearest position in the index. Without an index, it is found from batch headers in local files.
        """
        if offset <= self._base:
            return 0
        entries = self._offset_entries()
        at = bisect_right(entries, offset - self._base, key=_KEY) - 1
        batch = self._confirmed(entries, at)
        return entries[at][1] if batch is not None and stated_offset(batch) <= offset else 0

    def position_after(self, offset: int) -> int:
        """Return the start of a valid batch, or the end of the file, with no record below ``offset`` after it."""
        entries = self._offset_entries()
        # The batches of an entry end with its offset, so all batches from the next entry on are later.
        at = bisect_left(entries, offset - 1 - self._base, key=_KEY) + 1
        batch = self._confirmed(entries, at)
        known = isinstance(batch, RecordBatch) and batch.base_offset >= offset
        return entries[at][1] if known else self._files.size

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
        last = self.last_time() if self.end < LARGEST else None
        if last is not None and last < timestamp:
            # A broker adds the latest time of a segment when it begins the next one.
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
        last = max((batch.last_offset for batch in self._batches([self.position_before(LARGEST)])), default=-1)
        return max(self._base, last + 1)

    def record_from(self, offset: int) -> Record | None:
        """Return the first record at or after an offset that is not a transaction marker, or None.

        Raises the errors of ``records`` of a batch.
        """
        for batch in self._batches(self._steps(self.position_before(offset))):
            if batch.last_offset >= offset and not (isinstance(batch, RecordBatch) and batch.is_control):
                for record in batch.records():
                    if record.offset >= offset:
                        return record
        return None

    def newest_time(self) -> int | None:
        """Return the latest timestamp, in ms since the epoch, from the last index entries and later batches."""
        known = [batch.max_timestamp for batch in self._batches([self.position_before(LARGEST)])]
        return max((each for each in (*known, self.last_time() or -1) if each >= 0), default=None)

    def last_time(self) -> int | None:
        """Return the timestamp of the last time index entry, in ms since the epoch; None without a valid one.

        In a closed segment it is the latest timestamp.
        """
        entry = self.time_before()
        return None if entry is None else entry.timestamp

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
        return [place for _, place in self._by_headers()]

    def cuts(self, start: int, end: int, size: int, offset: int = -1) -> Iterator[int]:
        """Yield ``start``, and positions of valid batches up to ``end`` that are at least ``size`` bytes apart.

        The last part is up to 50 % larger. Positions before a batch that starts at or before ``offset`` are left out.
        """
        first, half = start, max(size // 2, 1)
        for place in self.places if end - start > size * 3 // 2 else ():
            if place - first >= size and end - place >= half and (batch := self.batch_starting_at(place)) is not None:
                if stated_offset(batch) > offset:
                    yield first
                first = place
        yield first

    def batch_starting_at(self, position: int) -> AnyBatch | None:
        """Return the valid batch that starts at a byte position, or None."""
        data = map_file(self._files.local_path)
        return read_batch(len(data), lambda size, start: data[start : start + size], position)

    def _batches(self, places: Iterable[int]) -> Iterator[AnyBatch]:
        """Yield the valid batches from the first place on. The other places delimit the parts to fetch."""
        # Zeros at the end do not change the result, so the directory is not listed for later segments.
        return skip_faults(walk_log(self._files.local_path, start=next(iter(places))))

    def _places(self, first: int, end: int) -> Iterator[int]:
        """Yield the positions for ``_batches`` to read the offsets from ``first`` to before ``end``."""
        yield self.position_before(first)
        yield self.position_after(end)

    def _steps(self, start: int) -> Iterable[int]:
        """Return the positions for ``_batches`` to search for a record from batch to batch."""
        return [start]

    def _confirmed(self, entries: _Entries, at: int) -> AnyBatch | None:
        """Return the valid batch at the position of an entry, unless that is the start of the segment."""
        position = entries[at][1] if 0 <= at < len(entries) else 0
        return self.batch_starting_at(position) if position > 0 else None

    def _offset_entries(self) -> _Entries:
        if self._offsets is None:
            found = IndexEntries(self._files.index(".index"), OFFSET_LAYOUT)
            self._offsets = found if len(found) else self._by_headers()
        return self._offsets

    def _by_headers(self) -> list[tuple[int, int]]:
        """Return ascending entries from the batch headers, at about the intervals of a broker's index."""
        found = [(-1, -_INTERVAL)]
        for each in walk_headers(map_file(self._files.local_path)):
            if each.position - found[-1][1] >= _INTERVAL and each.base_offset - self._base > found[-1][0]:
                found.append((each.base_offset - self._base, each.position))
        return found[1:]

    def _time_entries(self) -> IndexEntries:
        return IndexEntries(self._files.index(".timeindex"), TIME_LAYOUT)

    def _time_entry(self, entries: IndexEntries, at: int) -> TimeEntry | None:
        """Return the entry with this number, or None if it does not exist or its offset is not of this segment."""
        if not 0 <= at < len(entries):
            return None
        timestamp, offset = entries[at]
        return TimeEntry(timestamp, self._base + offset) if 0 <= offset < self.end - self._base else None


def segment_lookups(files: Sequence[F], make: Callable[[F, int], SegmentLookup] = SegmentLookup) -> list[SegmentLookup]:
    """Return the lookups in successive segments of a partition."""
    return list(map(make, files, next_offsets(each.base_offset or 0 for each in files)))


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
