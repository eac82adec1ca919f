"""Lookups in segments on other filesystems, and copies of their parts.

Each read is a request, so lookups fetch only the used part of the indexes, and a few batches of the segment.
``kafka_msgs.log.segment_lookup`` finds the batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, pairwise
from pathlib import Path
from struct import error
from typing import Final

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT
from kafka_msgs.filesystems.path_resolution import LogFile, local_copy, open_file
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, walk_log
from kafka_msgs.log.indexes import TIME_LAYOUT
from kafka_msgs.log.resync import stated_size
from kafka_msgs.log.segment_lookup import LARGEST, SegmentLookup, read_batch, segment_lookups

__all__ = ["copy_of_part", "lookup_in", "lookups_in"]

_STEP: Final = 2**16
"""The minimum number of bytes per read during a search for a record from batch to batch."""
_SMALL: Final = 2**20
"""The largest segment size in bytes that lookups may read completely."""


def lookup_in(file: LogFile, end: int = LARGEST) -> SegmentLookup:
    """Return the lookup in a segment on any filesystem, whose records have offsets below ``end``."""
    return _RemoteLookup(file, end) if file.root else SegmentLookup(file, end)


def lookups_in(files: Sequence[LogFile]) -> list[SegmentLookup]:
    """Return the lookups in successive segments of a partition."""
    return segment_lookups(files, lookup_in)


class _RemoteLookup(SegmentLookup):
    """Lookups in a segment on another filesystem. Batch headers replace no index: each would be a request."""

    def __init__(self, file: LogFile, end: int) -> None:
        super().__init__(file, end)
        self._file = file

    def last_time(self) -> int | None:
        """Return the timestamp of the last time index entry; of a closed segment, only the last bytes are read."""
        if self.end == LARGEST:
            entries = self._time_entries()
            entry = self._time_entry(entries, len(entries) - 1)
            return None if entry is None else entry.timestamp
        with suppress(FileNotFoundError, error):
            if (file := self._file.sibling_with_suffix(".timeindex")) is not None:
                with open_file(file) as data:
                    last = data.read_at(TIME_LAYOUT.size, max(data.size() - TIME_LAYOUT.size, 0))
                timestamp, offset = TIME_LAYOUT.unpack(last)
                return timestamp if 0 <= offset < self.end - self._base else None
        return None

    @property
    def is_quick(self) -> bool:
        """Whether the segment is small or has a valid offset index."""
        return self._file.size <= _SMALL or bool(self.places)

    def batch_starting_at(self, position: int) -> AnyBatch | None:
        """Return the valid batch that starts at a byte position, or None."""
        if not 0 <= position < self._file.size:
            return None
        with open_file(self._file) as data:
            return read_batch(data.size(), data.read_at, position)

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

    def _steps(self, start: int) -> Iterable[int]:
        return self.cuts(start, self._file.size, _STEP)

    def _by_headers(self) -> list[tuple[int, int]]:
        return []


@contextmanager
def copy_of_part(file: LogFile, start: int, end: int) -> Iterator[tuple[Path, int]]:
    """Provide a local file with the bytes between two positions, and the position of its first byte in ``file``.

    It also contains the batch after the part, because damage at the end of the part is reported differently without it.
    """
    if file.root and end < file.size:
        with open_file(file) as data:
            stated = stated_size(data.read_at(LENGTH_AND_OFFSET_STRUCT, end), 0)
            end = min(end + max(stated, LENGTH_AND_OFFSET_STRUCT), file.size)
    with local_copy(file, start, end) as copy:
        yield copy
