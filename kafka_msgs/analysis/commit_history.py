"""The complete commit history, written during the read of a partition: each commit with its transaction's outcome.

Final rows are in immutable files. Rows of open transactions wait for the next markers, in this run or in the next one,
and are in a file that each run rewrites.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.analysis.arrow_tables import replaced
from kafka_msgs.analysis.job import LogRange
from kafka_msgs.analysis.live_records import COMMITS
from kafka_msgs.analysis.offset_tables import HISTORY, commit_history
from kafka_msgs.analysis.record_classification import ClassifiedRecords
from kafka_msgs.analysis.transaction_outcomes import first_markers, next_markers
from kafka_msgs.tables.task_output import TableWriter, TaskOutput

__all__ = ["HISTORY_TABLE", "MARKERS", "HistoryWriter"]

HISTORY_TABLE: Final = "history"
_OPEN: Final = "open"
_BUFFER: Final = 32 << 20
MARKERS: Final = pa.schema([HISTORY.field("producerId"), HISTORY.field("logOffset"), ("marker", pa.string())])
"""The first marker of each producer in a range, which ends transactions in the range before it."""


class HistoryWriter:
    """Writes the history of a range of a partition. ``waiting`` are the rows of its open transactions."""

    def __init__(self, output: TaskOutput, of: LogRange, waiting: pa.Table, markers: pa.Table) -> None:
        self.waiting = waiting
        self.markers = markers
        self._output = output
        self._range = of
        self._writer: TableWriter | None = None
        self._files = 0
        self._new: list[pa.Table] = []
        self._markers: list[pa.Table] = []
        self._size = 0

    def add(self, found: ClassifiedRecords, file: str) -> None:
        """Add the next commits and markers of the log."""
        commits = found.commits
        files = pa.repeat(pa.scalar(file), commits.num_rows)
        plain = pc.invert(commits["transactional"].combine_chunks())
        rows = commit_history(commits, pc.if_else(plain, "none", pa.scalar(None, pa.string())), files)
        self._write(rows.filter(plain))
        self._add(rows.filter(pc.invert(plain)), _marker_rows(found.markers))

    def merge(self, later: HistoryWriter) -> None:
        """Add the state of the next range."""
        self._add(pa.concat_tables([later.waiting]), later.markers)
        self.end()

    def end(self) -> None:
        """Complete the file of the final rows, after the last record of the range."""
        self._decide()
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def finish(self) -> None:
        """Write the rows of open transactions."""
        if self.waiting.num_rows:
            outcome = pa.repeat(pa.scalar(_OPEN), self.waiting.num_rows)
            with self._new_file(f"{self._range.stem}-{_OPEN}", is_open=True) as writer:
                writer.write(replaced(self.waiting, outcome=outcome))

    def _add(self, rows: pa.Table, markers: pa.Table) -> None:
        self._new.append(rows)
        self._markers.append(markers)
        self._size += rows.nbytes + markers.nbytes
        if self._size >= max(_BUFFER, self.waiting.nbytes):
            self._decide()

    def _decide(self) -> None:
        found = pa.concat_tables([MARKERS.empty_table(), *self._markers])
        if self._range.sequence:
            self.markers = first_markers(pa.concat_tables([self.markers, found]), "producerId", "logOffset")
        rows = pa.concat_tables([self.waiting, *self._new, found], promote_options="default")
        self._new, self._markers, self._size = [], [], 0
        markers = rows["marker"].combine_chunks()
        outcome = next_markers(rows["producerId"], rows["logOffset"], markers)
        is_marker, ended = markers.is_valid(), outcome.is_valid()
        decided = replaced(rows.select(HISTORY.names), outcome=outcome)
        self._write(decided.filter(pc.and_not(ended, is_marker)).sort_by("logOffset"))
        self.waiting = decided.filter(pc.invert(pc.or_(ended, is_marker))).sort_by("logOffset").combine_chunks()

    def _write(self, rows: pa.Table) -> None:
        if rows.num_rows:
            if self._writer is None:
                self._writer = self._new_file(f"{self._range.part}-{self._files}")
                self._files += 1
            self._writer.write(rows)

    def _new_file(self, name: str, *, is_open: bool = False) -> TableWriter:
        path = f"logPartition={self._range.number}/{name}-{self._output.attempt[:8]}.parquet"
        return self._output.writer(HISTORY, HISTORY_TABLE, path, log=self._range.log, is_open=is_open)


def _marker_rows(markers: pa.Table) -> pa.Table:
    kinds = pc.if_else(pc.equal(markers["role"], COMMITS), "committed", "aborted")
    return pa.Table.from_arrays([markers["producer"], markers["offset"], kinds], schema=MARKERS)
