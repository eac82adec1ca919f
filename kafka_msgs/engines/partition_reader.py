"""The records of a range of a partition as columns, from its first segment or from the end of an earlier run.

Checks that a log continues an earlier read: the last record read still exists, and no record is missing after it, in
any of the ranges. Also checks that a range still begins where it was cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from attrs import frozen

from kafka_msgs.analysis.record_classification import RECORD_COLUMNS
from kafka_msgs.columns.log_table import item_in_file
from kafka_msgs.columns.record_tables import walk_record_table
from kafka_msgs.engines.plan import RangeEdge
from kafka_msgs.engines.replicas import offset_at
from kafka_msgs.errors import LogFileError
from kafka_msgs.filesystems.path_resolution import GONE, LogFile, local_copy
from kafka_msgs.filesystems.segment_lookup import copy_of_part, lookup_in
from kafka_msgs.log.batch_runs import Item, RunLimits, walk_runs
from kafka_msgs.log.file_scan import FileScan
from kafka_msgs.records import ReadOptions

__all__ = ["RECORD_COLUMNS", "LogRewrittenError", "PartitionReader", "ResumePoint"]

_POSITION: Final = "batch_position"
_TIP: Final = (*RECORD_COLUMNS, "partition_leader_epoch")
"""The identity of the last record. Its epoch distinguishes it from a record that a later leader wrote at its offset."""
_MAX_BYTES: Final = 8 << 20
_PIECE_BYTES: Final = 32 << 20
"""The maximum size of a remote segment's part on the disk of a worker."""
_OPTIONS: Final = ReadOptions(zero_copy=True)

_Opened: TypeAlias = "AbstractContextManager[tuple[Path, int]]"
"""A local file, and the position of its first byte in the segment."""


class LogRewrittenError(Exception):
    """A log does not continue the earlier read: it was compacted, truncated or recreated. It is reread from its start.

    The text describes the difference.
    """


_NOT_THERE: Final = "the last record that was read is not there any more"
_MISSING: Final = "a record is missing after the last one that was read, as after a compaction"
_MOVED: Final = "segments were replaced while it was read"


@frozen
class ResumePoint:
    """The last record that was read: the position of its batch, its offset and leader epoch, and a content digest.

    The position is valid only in the replica that was read. The other values identify the record in each replica.
    """

    segment: int
    position: int
    offset: int
    epoch: int
    digest: str

    @classmethod
    def of(cls, segment: int, records: pa.RecordBatch, row: int) -> ResumePoint:
        """Return the resume point at a row of a segment's records."""
        offset, position = records["offset"][row].as_py(), records[_POSITION][row].as_py()
        content = [records[name][row].as_py() for name in _TIP]
        return cls(segment, position, offset, content[-1], sha256(repr(content).encode()).hexdigest())

    def is_record(self, records: pa.RecordBatch, row: int) -> bool:
        """Return whether a row is the last record that was read, in any replica."""
        found = ResumePoint.of(0, records, row)
        return (found.offset, found.epoch, found.digest) == (self.offset, self.epoch, self.digest)


class PartitionReader:
    """One pass over a range of a partition, starting after ``tip`` if given. ``tip`` advances with the records read.

    ``columns`` are read in addition to ``RECORD_COLUMNS`` and ``batch_position``. ``is_continued`` is set for all
    ranges after the end of an earlier run. ``first`` is the offset of the first record, None before it.
    """

    def __init__(
        self,
        segments: Sequence[LogFile],
        tip: ResumePoint | None = None,
        columns: Sequence[str] = (),
        start: RangeEdge | None = None,
        end: RangeEdge | None = None,
        *,
        is_continued: bool = False,
    ) -> None:
        self.tip = tip
        self.first: int | None = None
        self._columns = (*_TIP, _POSITION, *columns)
        self._segments = segments
        self._start, self._end = start, end
        self._is_continued = is_continued
        self._found = tip is None

    def __iter__(self) -> Iterator[tuple[LogFile, pa.RecordBatch | LogFileError]]:
        """Yield records and damage, each with its segment.

        Raises ``LogRewrittenError`` only if a tip or a start was given, or if the range is continued.
        """
        for segment, start, end in self._parts():
            for item in self._walk(segment, start, end):
                if isinstance(item, LogFileError):
                    # The earlier run already reported damage before the tip.
                    if self._found:
                        yield segment, item
                elif (rows := self._new(segment, item)).num_rows:
                    yield segment, rows
        if not self._found:
            raise LogRewrittenError(_NOT_THERE)

    def _parts(self) -> Iterator[tuple[LogFile, int, int | None]]:
        """Yield the segments of the range, each with its first byte and its end, None for the end of the file."""
        first, position = self._first()
        for number, segment in enumerate(self._segments[first:]):
            start = position if number == 0 else 0
            if self._end is None or segment.first < self._end.segment:
                yield segment, start, None
            elif segment.first == self._end.segment and self._end.position > start:
                yield segment, start, self._end.position

    def _first(self) -> tuple[int, int]:
        """Return the number of the first segment, and the first byte in it."""
        if self.tip is not None:
            return self._place_of_tip(self.tip)
        if self._start is None:
            return 0, 0
        edge = self._start
        for number, segment in enumerate(self._segments):
            if segment.first == edge.segment:
                if edge.position and offset_at(segment, edge.position) != edge.offset:
                    raise LogRewrittenError(_MOVED)
                return number, edge.position
        raise LogRewrittenError(_MOVED)

    def _place_of_tip(self, tip: ResumePoint) -> tuple[int, int]:
        numbers = [number for number, each in enumerate(self._segments) if each.first <= tip.offset]
        if not numbers:
            raise LogRewrittenError(_NOT_THERE)
        segment = self._segments[numbers[-1]]
        base = offset_at(segment, tip.position) if segment.first == tip.segment else None
        if base is not None and base <= tip.offset:
            return numbers[-1], tip.position
        return numbers[-1], lookup_in(segment).position_of(tip.offset)

    def _walk(self, segment: LogFile, start: int, end: int | None) -> Iterator[pa.RecordBatch | LogFileError]:
        try:
            for first, stop, opened in _pieces(segment, start, end):
                with opened as (path, shift):
                    closed = segment is not self._segments[-1]
                    scan = FileScan(path, _OPTIONS, start=first - shift, closed=closed)
                    items: Iterable[Item] = walk_runs(scan, RunLimits(stop=stop - shift) if stop else RunLimits())
                    for item in walk_record_table(items, _OPTIONS, columns=self._columns, max_bytes=_MAX_BYTES):
                        yield item_in_file(item, segment.name, shift)
        except FileNotFoundError:
            yield LogFileError(file=segment.name, position=start, skipped=segment.size - start, reason=GONE)

    def _new(self, segment: LogFile, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records after the tip, and advance the tip."""
        if not self._found:
            records = self._after_tip(records)
        if records.num_rows:
            offsets = records["offset"]
            if self.first is None:
                self.first = offsets[0].as_py()
            if self._is_continued:
                check_contiguous(self.first if self.tip is None else self.tip.offset + 1, offsets[0].as_py())
                check_contiguous(offsets[0].as_py() + len(offsets), offsets[-1].as_py() + 1)
            self.tip = ResumePoint.of(segment.first, records, records.num_rows - 1)
        return records

    def _after_tip(self, records: pa.RecordBatch) -> pa.RecordBatch:
        assert self.tip is not None
        if records["offset"][-1].as_py() < self.tip.offset:
            return records.slice(0, 0)
        row = pc.index(records["offset"], self.tip.offset).as_py()
        if row < 0 or not self.tip.is_record(records, row):
            raise LogRewrittenError(_NOT_THERE)
        self._found = True
        return records.slice(row + 1)


def _pieces(segment: LogFile, start: int, end: int | None) -> Iterator[tuple[int, int | None, _Opened]]:
    """Yield a local segment in one piece, and a remote one in pieces that are copied to the disk of this machine."""
    if not segment.root:
        yield start, end, local_copy(segment)
    elif start < segment.size:
        last = segment.size if end is None else end
        for first, stop in pairwise([*lookup_in(segment).cuts(start, last, _PIECE_BYTES), last]):
            yield first, stop, copy_of_part(segment, first, stop)


def check_contiguous(end: int, first: int) -> None:
    """Raise ``LogRewrittenError`` if an offset between two records is missing: its record may have been a deletion."""
    if end != first:
        raise LogRewrittenError(_MISSING)
