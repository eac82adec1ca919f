"""The records of a partition as columns, from its first segment or from the end of an earlier run.

Checks that a log continues an earlier read: the last record read still exists, and no record is missing after it.
Engines provide the files as ``PartitionInput`` and ``SegmentInput``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
from attrs import asdict, frozen

from kafka_msgs.analysis.record_classification import RECORD_COLUMNS
from kafka_msgs.columns.log_table import fault_in_file
from kafka_msgs.columns.record_tables import Fault, walk_record_table
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.batch_runs import Item, RunLimits, walk_runs
from kafka_msgs.log.file_scan import FileScan
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.records import ReadOptions

__all__ = [
    "RECORD_COLUMNS",
    "LogRewrittenError",
    "PartitionInput",
    "PartitionReader",
    "ResumePoint",
    "SegmentInput",
    "SegmentPart",
    "local_segment",
]

_POSITION: Final = "batch_position"
_TIP: Final = (*RECORD_COLUMNS, "partition_leader_epoch")
"""The identity of the last record. Its epoch distinguishes it from a record that a later leader wrote at its offset."""
_MAX_BYTES: Final = 8 << 20
_OPTIONS: Final = ReadOptions(zero_copy=True)
_GONE: Final = "the file was deleted after the read was planned"

Opened: TypeAlias = "AbstractContextManager[tuple[Path, int]]"
"""A local file, and the position of its first byte in the segment."""


class LogRewrittenError(Exception):
    """A log does not continue the earlier read: it was compacted, truncated or recreated. It is reread from its start.

    The text describes the difference.
    """


_NOT_THERE: Final = "the last record that was read is not there any more"
_MISSING: Final = "a record is missing after the last one that was read, as after a compaction"


@frozen
class SegmentPart:
    """The batches of a segment that start at or after byte ``start`` and, unless ``end`` is None, before ``end``."""

    start: int
    end: int | None
    opened: Callable[[], Opened]


@frozen
class SegmentInput:
    """A segment: its display path, base offset and size. ``pieces`` returns the parts to read from a byte on."""

    name: str
    base_offset: int
    size: int
    pieces: Callable[[int], Iterable[SegmentPart]]


@frozen(kw_only=True)
class PartitionInput:
    """A partition: its topic, number and segments, and a function that reads the topic id, None if unknown.

    The task that reads the segments also reads the id, because a remote filesystem may be slow.
    """

    topic: str
    number: int
    topic_id: Callable[[], str | None]
    segments: tuple[SegmentInput, ...]

    @property
    def size(self) -> int:
        """The total size of the segments in bytes."""
        return sum(each.size for each in self.segments)

    @property
    def name(self) -> str:
        """The stem of file names. It starts with the number: table readers skip names with a leading underscore."""
        return f"{self.number}-{quote(self.topic, safe='')}"


def local_segment(path: Path) -> SegmentInput:
    """Return a local segment, which is read in one piece. Raises ``OSError``."""

    def pieces(start: int) -> Iterable[SegmentPart]:
        return (SegmentPart(start, None, lambda: nullcontext((path, 0))),)

    return SegmentInput(str(path.absolute()), int(path.stem), path.stat().st_size, pieces)


@frozen
class ResumePoint:
    """The last record that was read: the position of its batch, its offset, and a digest of its content."""

    segment: int
    position: int
    offset: int
    digest: str

    @classmethod
    def of(cls, segment: int, records: pa.RecordBatch, row: int) -> ResumePoint:
        """Return the resume point at a row of a segment's records."""
        offset, position = records["offset"][row].as_py(), records[_POSITION][row].as_py()
        content = [records[name][row].as_py() for name in _TIP]
        return cls(segment, position, offset, sha256(repr(content).encode()).hexdigest())

    def facts(self) -> dict[str, Any]:
        """Return the attributes as JSON-compatible values."""
        return asdict(self)


class PartitionReader:
    """One pass over a partition, starting at ``tip`` if given. ``tip`` advances with the records read.

    ``columns`` are read in addition to ``RECORD_COLUMNS`` and ``batch_position``.
    """

    def __init__(
        self,
        segments: Sequence[SegmentInput],
        tip: ResumePoint | None = None,
        progress: Progress | None = None,
        columns: Sequence[str] = (),
    ) -> None:
        self.tip = tip
        self._columns = (*_TIP, _POSITION, *columns)
        self._segments = segments
        self._progress = progress or Progress()
        self._expected = None if tip is None else tip.offset + 1
        self._found = tip is None

    def __iter__(self) -> Iterator[tuple[SegmentInput, pa.RecordBatch | LogFileError]]:
        """Yield records and damage, each with its segment. Raises ``LogRewrittenError`` only if a tip was given."""
        first = self._first()
        for number, segment in enumerate(self._segments[first:]):
            self._progress.file(Path(segment.name))
            start = self.tip.position if self.tip is not None and not self._found and number == 0 else 0
            for piece in segment.pieces(start):
                for item in self._walk(segment, piece):
                    if isinstance(item, LogFileError):
                        # The earlier run already reported damage before the tip.
                        if self._found:
                            yield segment, item
                    elif (rows := self._new(segment, item)).num_rows:
                        yield segment, rows
        if not self._found:
            raise LogRewrittenError(_NOT_THERE)

    def _first(self) -> int:
        if self.tip is None:
            return 0
        for number, segment in enumerate(self._segments):
            if segment.base_offset == self.tip.segment:
                return number
        raise LogRewrittenError(_NOT_THERE)

    def _walk(self, segment: SegmentInput, piece: SegmentPart) -> Iterator[pa.RecordBatch | LogFileError]:
        try:
            with piece.opened() as (path, shift):
                for item in walk_record_table(
                    self._batches(path, piece, shift), _OPTIONS, columns=self._columns, max_bytes=_MAX_BYTES
                ):
                    yield _shifted(item, shift) if isinstance(item, pa.RecordBatch) else _fault(item, segment, shift)
        except FileNotFoundError:
            yield LogFileError(
                file=segment.name, position=piece.start, skipped=segment.size - piece.start, reason=_GONE
            )

    def _batches(self, path: Path, piece: SegmentPart, shift: int) -> Iterator[Item]:
        stop = sys.maxsize if piece.end is None else piece.end - shift
        return walk_runs(FileScan(path, _OPTIONS, start=piece.start - shift), RunLimits(stop=stop))

    def _new(self, segment: SegmentInput, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records after the tip, and advance the tip."""
        self._progress.read(records[_POSITION][-1].as_py())
        if not self._found:
            records = self._after_tip(segment, records)
        if records.num_rows:
            if self._expected is not None:
                self._expected = _contiguous(records["offset"], self._expected)
            self.tip = ResumePoint.of(segment.base_offset, records, records.num_rows - 1)
        return records

    def _after_tip(self, segment: SegmentInput, records: pa.RecordBatch) -> pa.RecordBatch:
        tip = self.tip
        row = -1 if tip is None else pc.index(records["offset"], tip.offset).as_py()
        if row < 0 or ResumePoint.of(segment.base_offset, records, row) != tip:
            raise LogRewrittenError(_NOT_THERE)
        self._found = True
        return records.slice(row + 1)


def _contiguous(offsets: pa.Array, expected: int) -> int:
    """Return the offset after records. Raises ``LogRewrittenError`` if one is missing, since it may be a deletion."""
    first, last = offsets[0].as_py(), offsets[-1].as_py()
    if first != expected or last - first + 1 != len(offsets):
        raise LogRewrittenError(_MISSING)
    return int(last) + 1


def _shifted(records: pa.RecordBatch, shift: int) -> pa.RecordBatch:
    at = records.schema.get_field_index(_POSITION)
    return records.set_column(at, _POSITION, pc.add(records.column(at), shift)) if shift else records


def _fault(fault: Fault, segment: SegmentInput, shift: int) -> LogFileError:
    return fault_in_file(fault, segment.name, shift)
