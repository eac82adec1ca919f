"""Lookups in a segment by offset or time, through its indexes.

Implements the lookups, on any filesystem. They read only the used part of the indexes, and a few batches of the
segment. An index entry is trusted only if a valid batch with matching offsets is at its position, because a wrong
position would lose rows. ``offset_bounds`` chooses the segments.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise, takewhile
from operator import itemgetter
from pathlib import Path
from struct import Struct, error
from typing import Final, NamedTuple

from pyarrow import NativeFile

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET
from kafka_msgs.columns.python import stated_offset
from kafka_msgs.errors import RecordError
from kafka_msgs.filesystems.path_resolution import LogFile, local_copy, open_file
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, walk_headers, walk_log
from kafka_msgs.log.indexes import OFFSET_LAYOUT, TIME_LAYOUT
from kafka_msgs.log.mapped_file import map_file
from kafka_msgs.records import Record, RecordBatch, read_batches
from kafka_msgs.spark.sources.offset_options import LARGEST

__all__ = ["SegmentLookup", "sound_batch"]

_FIRST_CHUNK: Final = 171 * OFFSET_LAYOUT.size * TIME_LAYOUT.size // 4
"""The size of the first read of an index. A broker allocates 10 MiB for an index, and most of that is zeros.

It is a multiple of the entry sizes of both indexes.
"""
_STEP: Final = 2**16
"""The minimum number of bytes per read during a search for a record from batch to batch."""
_PLACE: Final = itemgetter(0)


class _Entry(NamedTuple):
    """An index entry: its key and its target. Offsets are absolute."""

    given: int
    found: int


class SegmentLookup:
    """Lookups in one segment, whose records have offsets below ``end``. Raises ``OSError``.

    ``end`` is the base offset of the next segment, or ``LARGEST`` for the last segment.
    """

    def __init__(self, file: LogFile, end: int = LARGEST) -> None:
        self._file = file
        self._base = file.base_offset or 0
        self._end = end
        self._offsets: list[_Entry] | None = None

    def position_before(self, offset: int) -> int:
        """Return the start of a valid batch such that all earlier records have offsets below ``offset``, or else 0.

        It is the nearest position in the index. Without an index, it is found from batch headers in local files.
        """
        entries = self._offset_entries()
        at = bisect_right(entries, offset, key=_PLACE) - 1
        place = entries[at].found if at >= 0 else 0 if entries else self._by_headers(offset)[0]
        batch = self._batch(place) if place else None
        return place if batch is not None and stated_offset(batch) <= offset else 0

    def position_after(self, offset: int) -> int:
        """Return the start of a valid batch, or the end of the file, with no record below ``offset`` after it."""
        entries = self._offset_entries()
        # The batches of an entry end with its offset, so all batches from the next entry on are later.
        at = bisect_left(entries, offset - 1, key=_PLACE) + 1
        place = entries[at].found if at < len(entries) else None if entries else self._by_headers(offset)[1]
        batch = self._batch(place) if place else None
        known = isinstance(batch, RecordBatch) and batch.base_offset >= offset
        return place if place and known else self._file.size

    def first_at(self, timestamp: int) -> int | None:
        """Return the offset of the first record whose timestamp, in ms since the epoch, is ``timestamp`` or later.

        Return None if all are earlier. Damaged batches are skipped.
        """
        entries = self._time_entries()
        if entries and entries[-1].given < timestamp and self._end < LARGEST:
            # A broker adds the latest time of a segment when it begins the next one.
            return None
        at = bisect_left(entries, timestamp, key=_PLACE)
        start = self.position_before(entries[at - 1].found) if at else 0
        middle = self.position_after(entries[at].found + 1) if at < len(entries) else self._file.size
        for first, end in ((start, middle), (middle, self._file.size)):
            found = self._first_between(first, end, timestamp)
            if found is not None:
                return found
        return None

    def _first_between(self, start: int, end: int, timestamp: int) -> int | None:
        for batch in self._batches(start, end):
            found = _first_in(batch, timestamp) if batch.max_timestamp >= timestamp else None
            if found is not None:
                return found
        return None

    def end_offset(self) -> int:
        """Return the offset after the last valid batch, or the segment's base offset without any.

        An incomplete batch is still being written, and does not count yet.
        """
        last = max((batch.last_offset for batch in self._batches(self.position_before(LARGEST))), default=-1)
        return max(self._base, last + 1)

    def batch_end(self, offset: int) -> int | None:
        """Return the end of the valid batch that reaches ``offset``, or of the first one after it; None without one.

        The end of a batch is the offset after its last record.
        """
        start, middle = self.position_before(offset - 1), self.position_after(offset)
        for first, end in ((start, middle), (middle, self._file.size)):
            for batch in self._batches(first, end):
                if batch.last_offset + 1 >= offset:
                    return batch.last_offset + 1
        return None

    def record_from(self, offset: int) -> Record | None:
        """Return the first record at or after an offset that is not a transaction marker, or None.

        The segment is read in small steps. Raises the errors of ``records`` of a batch.
        """
        for batch in self._in_steps(self.position_before(offset)):
            if batch.last_offset >= offset and not (isinstance(batch, RecordBatch) and batch.is_control):
                for record in batch.records():
                    if record.offset >= offset:
                        return record
        return None

    def _in_steps(self, start: int) -> Iterator[AnyBatch]:
        for place in self.places(start, self._file.size):
            if place - start >= _STEP and self._batch(place) is not None:
                yield from self._batches(start, place)
                start = place
        yield from self._batches(start)

    def newest_time(self) -> int | None:
        """Return the latest timestamp, in ms since the epoch, from the last index entries and later batches."""
        known = [batch.max_timestamp for batch in self._batches(self.position_before(LARGEST))]
        return max((each for each in (*known, self.last_time() or -1) if each >= 0), default=None)

    def last_time(self) -> int | None:
        """Return the timestamp of the last time index entry, in ms since the epoch; None without one.

        In a closed segment it is the latest timestamp. Only the last few bytes of the index are read.
        """
        if self._end == LARGEST:
            entries = self._time_entries()
            return entries[-1].given if entries else None
        with suppress(FileNotFoundError, error):
            if (file := self._file.sibling_with_suffix(".timeindex")) is not None:
                with open_file(file) as data:
                    last = data.read_at(TIME_LAYOUT.size, max(data.size() - TIME_LAYOUT.size, 0))
                time, given = TIME_LAYOUT.unpack(last)
                return time if self._base <= self._base + given < self._end else None
        return None

    @property
    def is_indexed(self) -> bool:
        """Return whether an offset index exists. Without one, lookups start at the beginning. Raises ``OSError``."""
        return bool(self._offset_entries())

    def _batches(self, start: int, end: int | None = None) -> Iterator[AnyBatch]:
        """Yield the valid batches that start between two bytes, by default up to the end of the file."""
        stop = self._file.size if end is None else end
        if start >= stop:
            return
        with local_copy(self._file, start, stop) as (path, shift):
            batches: Iterator[AnyBatch] = skip_faults(walk_log(path, start=start - shift))
            yield from takewhile(lambda batch: batch.position + shift < stop, batches)

    def places(self, start: int, end: int) -> Iterator[int]:
        """Yield the positions between two bytes where batches should start, from the index or from batch headers.

        Headers are only used in local files, because each one would be a request on a remote filesystem.
        """
        entries = self._offset_entries()
        if entries:
            found = iter(entry.found for entry in entries)
        elif self._file.root:
            return
        else:
            found = iter(each.position for each in walk_headers(map_file(Path(self._file.path)), start))
        for position in found:
            if position >= end:
                return
            if position > start:
                yield position

    def _by_headers(self, offset: int) -> tuple[int, int | None]:
        """Return the last batch that starts at or before an offset, and the first batch at or after it, if known."""
        before = 0
        if not self._file.root:
            for each in walk_headers(map_file(Path(self._file.path))):
                if each.base_offset >= offset:
                    return (each.position if each.base_offset == offset else before), each.position
                before = each.position
        return before, None

    def _batch(self, position: int) -> AnyBatch | None:
        if not 0 <= position < self._file.size:
            return None
        with open_file(self._file) as data:
            return sound_batch(data, position)

    def _offset_entries(self) -> list[_Entry]:
        if self._offsets is None:
            found = [_Entry(self._base + given, place) for given, place in self._entries(".index", OFFSET_LAYOUT)]
            ascends = all(one.given < two.given and one.found < two.found for one, two in pairwise(found))
            self._offsets = found if ascends else []
        return self._offsets

    def _time_entries(self) -> list[_Entry]:
        """Return the entries of the time index; none if it is damaged or inconsistent with the segment."""
        found = [_Entry(time, self._base + given) for time, given in self._entries(".timeindex", TIME_LAYOUT)]
        ascends = all(one.given <= two.given and one.found <= two.found for one, two in pairwise(found))
        within = not found or (self._base <= found[0].found and found[-1].found < self._end)
        return found if ascends and within else []

    def _entries(self, suffix: str, layout: Struct) -> list[tuple[int, int]]:
        file = self._file.sibling_with_suffix(suffix)
        try:
            if file is None:
                return []
            with open_file(file) as data:
                used = _used_part(data, layout.size)
        except FileNotFoundError:
            return []
        return list(layout.iter_unpack(used))


def sound_batch(data: NativeFile, position: int) -> AnyBatch | None:
    """Return the batch at a position of a file, or None if it is damaged or does not start there."""
    start = data.read_at(LENGTH_AND_OFFSET_STRUCT, position)
    size = int.from_bytes(start[8:], "big", signed=True) + LENGTH_AND_OFFSET_STRUCT
    if not MAGIC_OFFSET < size <= data.size() - position:
        return None
    try:
        return next(read_batches(data.read_at(size, position)), None)
    except RecordError:
        return None


def _first_in(batch: AnyBatch, timestamp: int) -> int | None:
    try:
        return next((record.offset for record in batch if record.timestamp >= timestamp), None)
    except RecordError:
        return None


def _used_part(data: NativeFile, entry_size: int) -> bytes:
    """Return the entries of an index without the trailing zeros. The read size depends on the used part."""
    found, chunk, size = b"", _FIRST_CHUNK, data.size()
    while len(found) < size and (more := data.read_at(min(chunk, size - len(found)), len(found))):
        found += more
        if not any(more[-entry_size:]):
            break
        chunk = len(found)
    entries = -(-len(found.rstrip(b"\0")) // entry_size)
    used = entries * entry_size
    return found[:used] if used <= len(found) else b""
