"""Where in a segment the records of some offsets are, and the first one at a time; asked of its indexes.

Owns the questions, on any filesystem: indexes are read as far as they are used, and of the segment a few batches. What
an index says about a place is believed only if a sound batch with such offsets is there, because a place that is wrong
would lose rows. Which segments are asked is left to ``offset_bounds``.
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
"""How much of an index is read first: a broker allocates 10 MiB for one, and most of that is zeros.

It is a whole number of entries of either index.
"""
_STEP: Final = 2**16
"""How many bytes are read at least at a time, where a record is looked for from batch to batch."""
_PLACE: Final = itemgetter(0)


class _Entry(NamedTuple):
    """An entry of an index: what is looked for, and what it leads to. Offsets are absolute."""

    given: int
    found: int


class SegmentLookup:
    """The places in one segment, whose records have offsets below ``end``. Raises ``OSError``.

    ``end`` is the base offset of the segment after it; ``LARGEST`` means that there is none.
    """

    def __init__(self, file: LogFile, end: int = LARGEST) -> None:
        self._file = file
        self._base = file.base_offset or 0
        self._end = end
        self._offsets: list[_Entry] | None = None

    def position_before(self, offset: int) -> int:
        """Return where a sound batch starts; all records before it have offsets below ``offset``. 0 if none is known.

        It is the nearest place that the index has, and without one, on this machine, that the headers lead to.
        """
        entries = self._offset_entries()
        at = bisect_right(entries, offset, key=_PLACE) - 1
        place = entries[at].found if at >= 0 else 0 if entries else self._by_headers(offset)[0]
        batch = self._batch(place) if place else None
        return place if batch is not None and stated_offset(batch) <= offset else 0

    def position_after(self, offset: int) -> int:
        """Return where a sound batch starts, or the file ends; no record from there on is below ``offset``."""
        entries = self._offset_entries()
        # The batches of an entry end with its offset, so that all from the next entry on are later.
        at = bisect_left(entries, offset - 1, key=_PLACE) + 1
        place = entries[at].found if at < len(entries) else None if entries else self._by_headers(offset)[1]
        batch = self._batch(place) if place else None
        known = isinstance(batch, RecordBatch) and batch.base_offset >= offset
        return place if place and known else self._file.size

    def first_at(self, timestamp: int) -> int | None:
        """Return the offset of the first record whose timestamp, in ms since the epoch, is ``timestamp`` or later.

        Return None if all are earlier. Damaged batches are left out.
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
        """Return the offset after the last sound batch, and without one that of the segment's name.

        A batch that is not whole is being written: it counts when it is.
        """
        last = max((batch.last_offset for batch in self._batches(self.position_before(LARGEST))), default=-1)
        return max(self._base, last + 1)

    def batch_end(self, offset: int) -> int | None:
        """Return the end of the sound batch that reaches ``offset``, or of the first one after it; None without one.

        The end of a batch is the offset after its last one.
        """
        start, middle = self.position_before(offset - 1), self.position_after(offset)
        for first, end in ((start, middle), (middle, self._file.size)):
            for batch in self._batches(first, end):
                if batch.last_offset + 1 >= offset:
                    return batch.last_offset + 1
        return None

    def record_from(self, offset: int) -> Record | None:
        """Return the first record at an offset or after it that is not a marker of a transaction, or None.

        The segment is read in small steps. Raises what ``records`` of a batch raises.
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
        """Return the latest timestamp, in ms since the epoch, by the last entries of the indexes and what follows."""
        known = [batch.max_timestamp for batch in self._batches(self.position_before(LARGEST))]
        return max((each for each in (*known, self.last_time() or -1) if each >= 0), default=None)

    def last_time(self) -> int | None:
        """Return the timestamp of the last entry of the time index, in ms since the epoch; None without one.

        In a segment that was closed that is its latest. Of its index these few bytes are read.
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
        """Whether there is an offset index: without one a place is found from the start only. Raises ``OSError``."""
        return bool(self._offset_entries())

    def _batches(self, start: int, end: int | None = None) -> Iterator[AnyBatch]:
        """Yield the sound batches that start between two bytes, the second one by default the end of the file."""
        stop = self._file.size if end is None else end
        if start >= stop:
            return
        with local_copy(self._file, start, stop) as (path, shift):
            batches: Iterator[AnyBatch] = skip_faults(walk_log(path, start=start - shift))
            yield from takewhile(lambda batch: batch.position + shift < stop, batches)

    def places(self, start: int, end: int) -> Iterator[int]:
        """Yield places between two bytes where batches should start: those of the index, or by the headers.

        Headers are followed on this machine only: elsewhere each of them would be a request.
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
        """Return the last batch that starts at or before an offset, and the first one at or after it, if known."""
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
        """Return the entries of the time index; none if it is damaged, or says what the segment cannot have."""
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
    """Return the batch at a place of a file, or None if it is damaged, or does not start there."""
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
    """Return the entries of an index without the zeros after them; what is read grows with what is used."""
    found, chunk, size = b"", _FIRST_CHUNK, data.size()
    while len(found) < size and (more := data.read_at(min(chunk, size - len(found)), len(found))):
        found += more
        if not any(more[-entry_size:]):
            break
        chunk = len(found)
    entries = -(-len(found.rstrip(b"\0")) // entry_size)
    used = entries * entry_size
    return found[:used] if used <= len(found) else b""
