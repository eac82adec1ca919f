"""Lookups in a segment by offset or time, and its cut positions, on any filesystem.

Lookups read only the used part of the indexes, and a few batches of the segment. An index entry is trusted only if a
valid batch with matching offsets is at its position, because a wrong position would lose rows.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from operator import itemgetter
from pathlib import Path
from struct import Struct, error
from typing import Final, NamedTuple

from pyarrow import NativeFile

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET
from kafka_msgs.errors import RecordError
from kafka_msgs.filesystems.path_resolution import LogFile, local_copy, open_file
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, walk_headers, walk_log
from kafka_msgs.log.indexes import OFFSET_LAYOUT, TIME_LAYOUT
from kafka_msgs.log.mapped_file import map_file
from kafka_msgs.records import Record, RecordBatch, read_batches

__all__ = ["LARGEST", "SegmentLookup", "copy_of_part", "sound_batch", "stated_offset"]

LARGEST: Final = 2**63 - 1
"""The largest offset and the largest time."""
_FIRST_CHUNK: Final = 171 * OFFSET_LAYOUT.size * TIME_LAYOUT.size // 4
"""The size of the first read of an index. A broker allocates 10 MiB for an index, and most of that is zeros.

It is a multiple of the entry sizes of both indexes.
"""
_STEP: Final = 2**16
"""The minimum number of bytes per read during a search for a record from batch to batch."""
_INTERVAL: Final = 4096
"""The number of bytes between two entries without an index, as in the indexes of a broker."""
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
        batch = self._batch(entries[at].found) if at >= 0 else None
        return entries[at].found if batch is not None and stated_offset(batch) <= offset else 0

    def position_after(self, offset: int) -> int:
        """Return the start of a valid batch, or the end of the file, with no record below ``offset`` after it."""
        entries = self._offset_entries()
        # The batches of an entry end with its offset, so all batches from the next entry on are later.
        at = bisect_left(entries, offset - 1, key=_PLACE) + 1
        batch = self._batch(entries[at].found) if at < len(entries) else None
        known = isinstance(batch, RecordBatch) and batch.base_offset >= offset
        return entries[at].found if known else self._file.size

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
        late = (batch for batch in self._batches([start, middle]) if batch.max_timestamp >= timestamp)
        return next((found for batch in late if (found := _first_in(batch, timestamp)) is not None), None)

    def end_offset(self) -> int:
        """Return the offset after the last valid batch, or the segment's base offset without any.

        An incomplete batch is still being written, and does not count yet.
        """
        last = max((batch.last_offset for batch in self._batches([self.position_before(LARGEST)])), default=-1)
        return max(self._base, last + 1)

    def batch_end(self, offset: int) -> int | None:
        """Return the end of the valid batch that reaches ``offset``, or of the first one after it; None without one.

        The end of a batch is the offset after its last record.
        """
        batches = self._batches([self.position_before(offset - 1), self.position_after(offset)])
        return next((batch.last_offset + 1 for batch in batches if batch.last_offset + 1 >= offset), None)

    def record_from(self, offset: int) -> Record | None:
        """Return the first record at or after an offset that is not a transaction marker, or None.

        The segment is read in small steps. Raises the errors of ``records`` of a batch.
        """
        for batch in self._batches(self.cuts(self.position_before(offset), self._file.size, _STEP)):
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
        """Return whether positions of batches are known without reading the segment. Raises ``OSError``."""
        return bool(self._offset_entries())

    @property
    def places(self) -> list[int]:
        """The positions where batches should start, from the index or, in local files, from batch headers."""
        return [entry.found for entry in self._offset_entries()]

    def cuts(self, start: int, end: int, size: int, offset: int = -1) -> Iterator[int]:
        """Yield ``start``, and positions of valid batches up to ``end`` that are at least ``size`` bytes apart.

        The last part is up to 50 % larger. Positions before a batch that starts at or before ``offset`` are left out.
        """
        first, half = start, max(size // 2, 1)
        for place in self.places if end - start > size * 3 // 2 else ():
            if place - first >= size and end - place >= half and (batch := self._batch(place)) is not None:
                if stated_offset(batch) > offset:
                    yield first
                first = place
        yield first

    def _batches(self, places: Iterable[int]) -> Iterator[AnyBatch]:
        """Yield the valid batches from the first place on. Each part up to the next place is fetched when reached."""
        for start, stop in pairwise(chain(places, [self._file.size])):
            if start < stop:
                with local_copy(self._file, start, stop) as (path, shift):
                    batches: Iterator[AnyBatch] = skip_faults(walk_log(path, start=start - shift))
                    for batch in batches:
                        if batch.position + shift >= stop:
                            break
                        yield batch

    def _batch(self, position: int) -> AnyBatch | None:
        if not 0 < position < self._file.size:
            return None
        with open_file(self._file) as data:
            return sound_batch(data, position)

    def _offset_entries(self) -> list[_Entry]:
        """Return the entries of the offset index, or else entries from the headers of a local file.

        Headers are only used in local files, because each one would be a request on a remote filesystem.
        """
        if self._offsets is None:
            found = [_Entry(self._base + given, place) for given, place in self._entries(".index", OFFSET_LAYOUT)]
            if not all(one.given < two.given and one.found < two.found for one, two in pairwise(found)):
                found = []
            self._offsets = found or ([] if self._file.root else list(_by_headers(self._file.path)))
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
                return list(layout.iter_unpack(_used_part(data, layout.size)))
        except FileNotFoundError:
            return []


def stated_offset(batch: AnyBatch) -> int:
    """Return the offset in a batch header: its first record's, in a compressed message set the last one's."""
    return batch.base_offset if isinstance(batch, RecordBatch) else batch.last_offset


def sound_batch(data: NativeFile, position: int) -> AnyBatch | None:
    """Return the batch at a position of a file, or None if it is damaged or does not start there."""
    size = _stated_size(data, position)
    if not MAGIC_OFFSET < size <= data.size() - position:
        return None
    try:
        return next(read_batches(data.read_at(size, position)), None)
    except RecordError:
        return None


@contextmanager
def copy_of_part(file: LogFile, start: int, end: int) -> Iterator[tuple[Path, int]]:
    """Provide a local file with the bytes between two positions, and the position of its first byte in ``file``.

    It also contains the batch after the part, because damage at the end of the part is reported differently without it.
    """
    if file.root and end < file.size:
        with open_file(file) as data:
            end = min(end + max(_stated_size(data, end), LENGTH_AND_OFFSET_STRUCT), file.size)
    with local_copy(file, start, end) as copy:
        yield copy


def _stated_size(data: NativeFile, position: int) -> int:
    start = data.read_at(LENGTH_AND_OFFSET_STRUCT, position)
    return int.from_bytes(start[8:], "big", signed=True) + LENGTH_AND_OFFSET_STRUCT


def _by_headers(path: str) -> Iterator[_Entry]:
    """Yield ascending entries from the batch headers of a local file, at about the intervals of a broker's index."""
    last = _Entry(-1, -_INTERVAL)
    for each in walk_headers(map_file(Path(path))):
        if each.position - last.found >= _INTERVAL and each.base_offset > last.given:
            last = _Entry(each.base_offset, each.position)
            yield last


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
    used = -(-len(found.rstrip(b"\0")) // entry_size) * entry_size
    return found[:used] if used <= len(found) else b""
