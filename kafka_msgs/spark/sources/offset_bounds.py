"""The byte ranges of segments with the records that the options select by offset or time.

Segments are chosen by the base offsets in their names, and positions within them by ``segment_lookup``. The driver
decides this, and reads little more than the indexes of the first and the last segment of a partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Final

from attrs import evolve, frozen

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.spark.sources.offset_options import EARLIEST, LARGEST, LATEST, StartingOffsets
from kafka_msgs.spark.sources.offset_range import OffsetRange
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.remote_files import RemoteSegmentFile
from kafka_msgs.spark.sources.segment_lookup import SegmentLookup

__all__ = ["ByteRange", "OffsetBounds", "offset_of"]

_START: Final = "starting"
_END: Final = "ending"
_REFUSED: Final = {
    _START: (LATEST, "reading cannot begin at the latest offset (-1)"),
    _END: (EARLIEST, "reading cannot end at the earliest offset (-2)"),
}
_MEANT: Final = {EARLIEST: 0, LATEST: LARGEST}
_EARLIEST: Final = StartingOffsets(EARLIEST)
_LATEST: Final = StartingOffsets(LATEST)


@frozen
class ByteRange:
    """The bytes of a file from ``start`` to before ``end``, and the offsets to read in them; None for all."""

    file: LogFile
    start: int
    end: int
    offsets: OffsetRange | None = None

    @classmethod
    def whole(cls, file: LogFile) -> ByteRange:
        """Return the full range of a file."""
        return cls(file, 0, file.size)

    @property
    def size(self) -> int:
        """The number of bytes to read."""
        return self.end - self.start


@frozen
class OffsetBounds:
    """The start and end positions of a read in each partition."""

    starting: StartingOffsets = _EARLIEST
    ending: StartingOffsets = _LATEST

    @classmethod
    def of(cls, options: Options) -> OffsetBounds:
        """Parse the options. Raises ``OptionError``."""
        return cls(_position(options, _START, EARLIEST), _position(options, _END, LATEST))

    def check_table(self, source: str) -> None:
        """Raise ``OptionError`` for bounds that are invalid for a table."""
        for prefix, position in ((_START, self.starting), (_END, self.ending)):
            wrong, reason = _REFUSED[prefix]
            if wrong in (position.time, *position.offsets.values()):
                raise OptionError(source=source, option=f"{prefix}Offsets", value=None, reason=reason)

    def check_stream(self, source: str) -> None:
        """Raise ``OptionError`` for bounds that are invalid for a stream, which has no end."""
        if self.ending != _LATEST:
            raise OptionError(
                source=source, option=self.ending.option(_END), value=None, reason="a stream does not end"
            )

    def places(self) -> Iterator[tuple[str, str, int]]:
        """Yield the partitions given in options, each preceded by the option name."""
        for prefix, position in ((_START, self.starting), (_END, self.ending)):
            yield from ((position.option(prefix), *place) for place in (*position.offsets, *position.times))

    def stretches(self, files: Iterable[LogFile]) -> Iterator[ByteRange]:
        """Yield the byte ranges to read from files sorted by partition and offset. Raises ``OSError``."""
        if self == OffsetBounds():
            yield from map(_all_of, files)
            return
        for _, group in groupby(files, key=_log_of):
            yield from self._of_partition(list(group))

    def _of_partition(self, files: Sequence[LogFile]) -> Iterator[ByteRange]:
        ends = [after.first for after in files[1:]] + [LARGEST]
        ends = [file.end if isinstance(file, RemoteSegmentFile) else end for file, end in zip(files, ends, strict=True)]
        lookups = [_lookup(file, end) for file, end in zip(files, ends, strict=True)]
        wanted = OffsetRange(*(offset_of(each, files[0], lookups) for each in (self.starting, self.ending)))
        for file, end, lookup in zip(files, ends, lookups, strict=True):
            if max(file.first, wanted.start) < min(end, wanted.end):
                yield _stretch(file, end, lookup, wanted)


def _position(options: Options, prefix: str, default: int) -> StartingOffsets:
    found = StartingOffsets.of(options, prefix, default)
    if any(offset < EARLIEST for offset in found.offsets.values()):
        options.refuse(f"{prefix}Offsets", "an offset is not negative")
    return found


def _log_of(file: LogFile) -> tuple[str, ...]:
    """Return a key shared by the segments of one partition. A file without a segment name has a unique key."""
    segment = isinstance(file, RemoteSegmentFile) or (file.base_offset is not None and file.path.endswith(".log"))
    return file.log if segment else (*file.log, file.path)


def _all_of(file: LogFile) -> ByteRange:
    """Return the range of a file without bounds. A segment in remote storage may be limited to some of its offsets."""
    if not isinstance(file, RemoteSegmentFile) or file.is_whole:
        return ByteRange.whole(file)
    return _stretch(file, file.end, _lookup(file, file.end), OffsetRange(file.first, file.end))


def _lookup(file: LogFile, end: int) -> SegmentLookup:
    """Return the lookup in a file. ``end`` is the end of the read; a remote segment may end later."""
    return SegmentLookup(file, file.ends if isinstance(file, RemoteSegmentFile) else end)


def offset_of(position: StartingOffsets, first: LogFile, segments: Sequence[SegmentLookup]) -> int:
    """Return the offset of a position in the partition of ``first``, or ``LARGEST`` for a position after its end."""
    place = first.topic or "", -1 if first.partition is None else first.partition
    given, time = position.offsets.get(place), position.time_of(place)
    if given is not None or time < 0:
        known = time if given is None else given
        return _MEANT.get(known, known)
    for segment in segments:
        with suppress(FileNotFoundError):
            if (found := segment.first_at(time)) is not None:
                return found
    return LARGEST


def _stretch(file: LogFile, end: int, lookup: SegmentLookup, wanted: OffsetRange) -> ByteRange:
    begins, ends = file.first < wanted.start, wanted.end < end
    if isinstance(file, RemoteSegmentFile):
        wanted = OffsetRange(max(file.first, wanted.start), min(end, wanted.end))
        begins, ends = (file.base_offset or 0) < wanted.start, wanted.end < file.ends
    places = ByteRange.whole(file)
    # A broker may delete segments during planning. The reader of the part reports that.
    with suppress(FileNotFoundError):
        start = lookup.position_before(wanted.start) if begins else 0
        places = ByteRange(file, start, lookup.position_after(wanted.end) if ends else file.size)
    return evolve(places, offsets=wanted) if begins or ends else places
