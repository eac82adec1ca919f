"""Lookups in segments on other filesystems, and copies of their parts.

Each read is a request, so lookups fetch only the used part of the indexes, and a few batches of the segment.
``kafka_msgs.log.segment`` finds the batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

from attrs import field, frozen
from pyarrow import NativeFile

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT
from kafka_msgs.filesystems.path_resolution import FileSlice, LogFile, local_copy, open_file
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, walk_log
from kafka_msgs.log.indexes import OFFSET_LAYOUT, TIME_LAYOUT, IndexEntries
from kafka_msgs.log.mapped_file import Mapped, map_file
from kafka_msgs.log.resync import stated_size
from kafka_msgs.log.segment import LARGEST, Segment, next_offsets, read_batch

__all__ = ["copy_of_part", "lookup_in", "lookups_in"]

_STEP: Final = 2**16
"""The minimum number of bytes per read during a search for a record from batch to batch."""
_SMALL: Final = 2**20
"""The largest segment size in bytes that lookups may read completely."""

_LAST_TIME: Final = "the last entry of the time index"
_LONGEST_ENTRY: Final = max(OFFSET_LAYOUT.size, TIME_LAYOUT.size)
_FIRST_CHUNK: Final = 171 * OFFSET_LAYOUT.size * TIME_LAYOUT.size // 4
"""The size of the first read of an index. A broker allocates 10 MiB for an index, and most of that is zeros.

It is a multiple of the entry sizes of both indexes.
"""


def lookup_in(file: LogFile, end: int = LARGEST) -> Segment:
    """Return the lookup in a segment on any filesystem, whose records have offsets below ``end``."""
    kind = _RemoteSegment if file.root else _FileSegment
    return kind(Path(file.path), end, file=file)


def lookups_in(files: Sequence[LogFile]) -> list[Segment]:
    """Return the lookups in successive segments of a partition."""
    return list(map(lookup_in, files, next_offsets(each.first for each in files)))


@frozen(kw_only=True)
class _FileSegment(Segment):
    """A segment whose indexes may have other names than in the directory of a broker."""

    file: LogFile

    @property
    def base_offset(self) -> int:
        return self.file.base_offset or 0

    @property
    def size(self) -> int:
        return self.file.size

    def index(self, suffix: str) -> Mapped:
        file = self.file.sibling_with_suffix(suffix)
        try:
            if file is None:
                return b""
            if not file.root and not isinstance(file, FileSlice):
                return map_file(Path(file.path))
            with open_file(file) as data:
                return _used_part(data)
        except FileNotFoundError:
            return b""


@frozen(kw_only=True)
class _RemoteSegment(_FileSegment):
    """Lookups in a segment on another filesystem. Batch headers replace no index: each would be a request."""

    _fetched: dict[str, Mapped] = field(factory=dict, init=False, eq=False)

    def index(self, suffix: str) -> Mapped:
        if suffix not in self._fetched:
            self._fetched[suffix] = super().index(suffix)
        return self._fetched[suffix]

    @cached_property
    def _header_entries(self) -> list[tuple[int, int]]:
        return []

    def newest_time(self) -> int | None:
        """Return the latest timestamp from the last index entries and the batches after the last offset index entry."""
        places = [self.position_of(LARGEST)] if self.is_quick else [self.size]
        times = [self._last_time() or -1, *(batch.max_timestamp for batch in self._batches(places))]
        return max((each for each in times if each >= 0), default=None)

    def is_earlier(self, timestamp: int) -> bool:
        """Return whether the last time index entry is earlier: a broker adds the latest time to a closed segment."""
        last = self._last_time() if self.end < LARGEST else None
        return last is not None and last < timestamp

    def _last_time(self) -> int | None:
        """Return the timestamp of the last time index entry; of a closed segment, only the last bytes are read."""
        entries = self._time_entries() if self.end == LARGEST else IndexEntries(self._last_time_entry(), TIME_LAYOUT)
        entry = self._time_entry(entries, len(entries) - 1)
        return None if entry is None else entry.timestamp

    def _last_time_entry(self) -> Mapped:
        if _LAST_TIME not in self._fetched:
            file, data = self.file.sibling_with_suffix(".timeindex"), b""
            with suppress(FileNotFoundError):
                if file is not None:
                    with open_file(file) as opened:
                        data = opened.read_at(TIME_LAYOUT.size, max(opened.size() - TIME_LAYOUT.size, 0))
            self._fetched[_LAST_TIME] = data
        return self._fetched[_LAST_TIME]

    @property
    def is_quick(self) -> bool:
        """Whether the segment is small or has a valid offset index."""
        return self.file.size <= _SMALL or bool(self.places)

    def batch_starting_at(self, position: int) -> AnyBatch | None:
        """Return the valid batch that starts at a byte position, or None."""
        if not 0 <= position < self.file.size:
            return None
        with open_file(self.file) as data:
            return read_batch(data.size(), data.read_at, position)

    def _batches(self, places: Iterable[int]) -> Iterator[AnyBatch]:
        """Yield the valid batches from the first place on. Each part up to the next place is fetched when reached."""
        for start, stop in pairwise(chain(places, [self.file.size])):
            if start < stop:
                with local_copy(self.file, start, stop) as (path, shift):
                    batches: Iterator[AnyBatch] = skip_faults(walk_log(path, start=start - shift))
                    for batch in batches:
                        if batch.position + shift >= stop:
                            break
                        yield batch

    def _steps(self, start: int) -> Iterable[int]:
        return self.cuts(start, self.file.size, _STEP)


def _used_part(data: NativeFile) -> bytes:
    """Return the bytes of an index without most of the trailing zeros. The read size depends on the used part."""
    found, chunk, size = b"", _FIRST_CHUNK, data.size()
    while len(found) < size and (more := data.read_at(min(chunk, size - len(found)), len(found))):
        found += more
        if not any(more[-_LONGEST_ENTRY:]):
            break
        chunk = len(found)
    return found


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
