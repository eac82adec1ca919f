"""The table of batches, written during the read of a partition: each batch with the outcome of its transaction.

Final rows are in immutable files per segment, so that they are deleted with the segment. Pending rows are in a file
that each run rewrites. These are the batches of open transactions, and the first client batch of each segment,
because the segment before it may be deleted, and with it the timestamp that makes this batch late.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.analysis.arrow_tables import begins, columns, filled, named, one_array, replaced
from kafka_msgs.analysis.batch_rows import NO_HOUR, ROWS
from kafka_msgs.analysis.job import LogRange
from kafka_msgs.analysis.offset_tables import to_timestamps
from kafka_msgs.analysis.transaction_outcomes import first_markers, next_markers
from kafka_msgs.tables.task_output import TaskOutput

__all__ = ["BATCHES", "BATCHES_TABLE", "MARKERS", "BatchTableWriter", "directory_of"]

BATCHES_TABLE: Final = "batches"
_OPEN: Final = "open"
_BUFFER: Final = 32 << 20
_ABORTED: Final = "aborted"
_TIMES: Final = ("firstTimestamp", "lastTimestamp", "maxTimestamp", "hour")


BATCHES: Final = columns(
    """topic partition file batchPosition batchSize codec producerId transactional control marker offset lastOffset
    firstTimestamp firstTimestampMs lastTimestamp lastTimestampMs maxTimestamp maxTimestampMs records keySize valueSize
    headersSize maxKeySize maxValueSize withoutKey tombstones outOfOrder outcome hour hourMs"""
)
_IN_FILE: Final = pa.schema(list(BATCHES)[1:])
"""The columns without the topic, which is part of the directory names."""
MARKERS: Final = pa.schema([ROWS.field(name) for name in ("producerId", "offset", "marker")])
"""The first marker of each producer in a range, which ends transactions in the range before it."""


def directory_of(topic: str) -> str:
    """Return the directory of a topic in the table."""
    return f"topic={quote(topic, safe='')}"


class BatchTableWriter:
    """Writes the batches of a range of a partition; ``waiting`` contains the pending batches."""

    def __init__(self, output: TaskOutput, of: LogRange, waiting: pa.Table, markers: pa.Table) -> None:
        self.waiting = waiting
        self.markers = markers
        self._output = output
        self._range = of
        self._rows: list[pa.Table] = []
        self._size = 0
        self._count = 0

    def add(self, batches: pa.Table) -> pa.Table:
        """Add the next batches; return the pending batches whose transaction was aborted."""
        self._rows.append(batches)
        self._size += batches.nbytes
        if self._range.sequence:
            ends = batches.filter(batches["marker"].is_valid()).select(MARKERS.names)
            self.markers = first_markers(pa.concat_tables([self.markers, ends]), "producerId", "offset")
        return self.apply_markers() if self._size >= max(_BUFFER, self.waiting.nbytes) else ROWS.empty_table()

    def merge(self, later: pa.Table, markers: pa.Table) -> pa.Table:
        """Add the pending batches and the markers of the next range; return what ``add`` returns."""
        if self._range.sequence:
            self.markers = first_markers(pa.concat_tables([self.markers, markers]), "producerId", "offset")
        self._rows.append(later)
        return self.apply_markers(markers)

    def apply_markers(self, later: pa.Table | None = None) -> pa.Table:
        """Write the final batches, and return the aborted batches. ``later`` are markers without batches."""
        before = pa.concat_tables([self.waiting, *self._rows]).combine_chunks()
        self._rows, self._size = [], 0
        rows = _ended(before, MARKERS.empty_table() if later is None else later)
        waits = pc.or_(rows["outcome"].is_null(), rows["first"])
        self.waiting = rows.filter(waits).combine_chunks()
        self._write(rows.filter(pc.invert(waits)))
        aborted = pc.fill_null(pc.equal(rows["outcome"], _ABORTED), False)
        return rows.filter(pc.and_(before["outcome"].is_null(), aborted))

    def finish(self, late: pa.Array) -> None:
        """Write the pending batches. ``late`` counts the records that are older than an earlier segment's last one."""
        if self.waiting.num_rows:
            outcomes, order = pc.fill_null(self.waiting["outcome"], _OPEN), pc.add(self.waiting["outOfOrder"], late)
            rows = replaced(self.waiting, outcome=outcomes, outOfOrder=order)
            self._write_file(rows, f"{self._range.stem}-{_OPEN}", is_open=True)

    def _write(self, rows: pa.Table) -> None:
        rows = rows.sort_by([("segment", "ascending"), ("offset", "ascending")])
        starts = pc.indices_nonzero(begins(one_array(rows["segment"]))).to_pylist()
        for start, end in pairwise([*starts, rows.num_rows]):
            segment = rows["segment"][start].as_py()
            self._write_file(rows.slice(start, end - start), f"{self._range.part}-{self._count}", segment)

    def _write_file(self, rows: pa.Table, name: str, segment: int = -1, *, is_open: bool = False) -> None:
        self._count += 1
        path = f"{directory_of(self._range.topic)}/{name}-{self._output.attempt[:8]}.parquet"
        log = self._range.log
        with self._output.writer(_IN_FILE, BATCHES_TABLE, path, log=log, segment=segment, is_open=is_open) as writer:
            writer.write(_shown(rows, self._range.number))


def _ended(rows: pa.Table, later: pa.Table) -> pa.Table:
    """Return batches with the outcomes given by the markers among them, and by later ones."""
    asked = rows["outcome"].is_null()
    if not pc.any(asked).as_py():
        return rows
    concerned = pc.or_(asked, rows["marker"].is_valid()).combine_chunks()
    ending = rows.filter(concerned)
    known = pa.concat_tables([ending.select(MARKERS.names), later])
    found = next_markers(known["producerId"], known["offset"], known["marker"]).slice(0, ending.num_rows)
    outcomes = pc.coalesce(one_array(ending["outcome"]), found)
    return replaced(rows, outcome=pc.replace_with_mask(one_array(rows["outcome"]), concerned, outcomes))


def _shown(rows: pa.Table, number: int) -> pa.Table:
    """Return rows in the form of the table: with timestamps, and null for no hour."""
    hours = pc.if_else(pc.not_equal(rows["hourMs"], NO_HOUR), rows["hourMs"], None)
    known: dict[str, Any] = {**named(rows), "hourMs": hours}
    known |= {name: to_timestamps(known[f"{name}Ms"].combine_chunks()) for name in _TIMES}
    return filled(_IN_FILE, rows.num_rows, known | {"partition": number})
