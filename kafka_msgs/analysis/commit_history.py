"""The complete commit history, written during the read of a partition: each commit with its transaction's outcome.

Defines the distinction between final and pending rows, and the file layout. Each run writes final rows to one immutable
file. Rows of open transactions are in the file ``open``, which the next run takes over.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_msgs.analysis.live_records import COMMITS
from kafka_msgs.analysis.offset_tables import HISTORY, commit_history
from kafka_msgs.analysis.record_classification import ClassifiedRecords
from kafka_msgs.analysis.transaction_outcomes import next_markers
from kafka_msgs.tables.task_output import TableWriter, TaskOutput

__all__ = ["HISTORY_TABLE", "HistoryWriter", "is_replaced"]

HISTORY_TABLE: Final = "history"
_OPEN: Final = "open"
_BUFFER: Final = 32 << 20
_MARKERS: Final = pa.schema([HISTORY.field("producerId"), HISTORY.field("logOffset"), ("marker", pa.string())])


def directory_of(number: int) -> str:
    """Return the directory of a partition of the log in the table."""
    return f"logPartition={number}"


class HistoryWriter:
    """Writes the history of a partition from the offset ``start`` on. It ``resumes`` the history of an earlier run."""

    def __init__(self, output: TaskOutput, number: int, start: int, *, resumes: bool) -> None:
        self._directory = directory_of(number)
        self._output = output
        self._name = f"{start:020}"
        self._writer: TableWriter | None = None
        self._waiting = _open_rows(output, number) if resumes else HISTORY.empty_table()
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
        self._new.append(rows.filter(pc.invert(plain)))
        self._markers.append(_markers(found.markers))
        self._size += self._new[-1].nbytes + self._markers[-1].nbytes
        if self._size >= max(_BUFFER, self._waiting.nbytes):
            self._decide()

    def finish(self) -> None:
        """Write the remaining rows, which belong to open transactions."""
        self._decide()
        if self._writer is not None:
            self._writer.close()
        if self._waiting.num_rows:
            at = HISTORY.get_field_index("outcome")
            outcome = pa.repeat(pa.scalar(_OPEN), self._waiting.num_rows)
            with self._new_file(_OPEN) as writer:
                writer.write(self._waiting.set_column(at, HISTORY.field(at), outcome))

    def _decide(self) -> None:
        rows = pa.concat_tables([self._waiting, *self._new, *self._markers], promote_options="default")
        self._new, self._markers, self._size = [], [], 0
        markers = _marker_column(rows)
        outcome = next_markers(rows["producerId"], rows["logOffset"], markers)
        is_marker, ended = markers.is_valid(), outcome.is_valid()
        at = HISTORY.get_field_index("outcome")
        found = rows.select(HISTORY.names).set_column(at, HISTORY.field(at), outcome)
        self._write(found.filter(pc.and_not(ended, is_marker)).sort_by("logOffset"))
        self._waiting = found.filter(pc.invert(pc.or_(ended, is_marker))).sort_by("logOffset").combine_chunks()

    def _write(self, rows: pa.Table) -> None:
        if rows.num_rows:
            if self._writer is None:
                self._writer = self._new_file(self._name)
            self._writer.write(rows)

    def _new_file(self, name: str) -> TableWriter:
        return self._output.writer(HISTORY, HISTORY_TABLE, f"{self._directory}/{name}.parquet")


def _open_rows(output: TaskOutput, number: int) -> pa.Table:
    try:
        # Open only the file: with a path, its directory would be read as a column.
        with pq.ParquetFile(output.open_earlier(HISTORY_TABLE, f"{directory_of(number)}/{_OPEN}.parquet")) as file:
            return file.read().cast(HISTORY)
    except FileNotFoundError:
        return HISTORY.empty_table()


def _marker_column(rows: pa.Table) -> pa.Array:
    nothing = pa.nulls(rows.num_rows, pa.string())
    return rows["marker"].combine_chunks() if "marker" in rows.column_names else nothing


def _markers(markers: pa.Table) -> pa.Table:
    kinds = pc.if_else(pc.equal(markers["role"], COMMITS), "committed", "aborted")
    return pa.Table.from_arrays([markers["producer"], markers["offset"], kinds], schema=_MARKERS)


def is_replaced(name: str, number: int, *, from_start: bool) -> bool:
    """Return whether a run replaces a file of the table: the open rows, or all files of a partition read again."""
    directory, _, file = name.partition("/")
    return directory == directory_of(number) and (from_start or file == f"{_OPEN}.parquet")
