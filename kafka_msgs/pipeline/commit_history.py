"""The complete commit history, written during the read of a partition: each commit with its transaction's outcome.

Defines the distinction between final and pending rows, and the file layout. Each run writes final rows to one immutable
file. Rows of open transactions are in the file ``open``, which the next run takes over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_msgs.pipeline.live_records import COMMITS
from kafka_msgs.pipeline.offset_tables import HISTORY, commit_history
from kafka_msgs.pipeline.record_classification import ClassifiedRecords
from kafka_msgs.pipeline.table_output import OutputDirectory
from kafka_msgs.pipeline.transaction_outcomes import next_markers

__all__ = ["HISTORY_TABLE", "HistoryWriter", "directory_of"]

HISTORY_TABLE: Final = "history"
_OPEN: Final = "open"
_BUFFER: Final = 32 << 20
_MARKERS: Final = pa.schema([HISTORY.field("producerId"), HISTORY.field("logOffset"), ("marker", pa.string())])


def directory_of(number: int) -> str:
    """Return the directory of a partition of the log in the table."""
    return f"logPartition={number}"


class HistoryWriter:
    """Writes the history of a partition from the offset ``start`` on; ``earlier`` is the output of an earlier run."""

    def __init__(self, place: OutputDirectory, number: int, start: int, earlier: OutputDirectory | None) -> None:
        self._path = (HISTORY_TABLE, directory_of(number))
        self._place = place
        self._name = f"{start:020}"
        self._writer: pq.ParquetWriter | None = None
        self._waiting = HISTORY.empty_table() if earlier is None else _open_rows(earlier, number)
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
        self._size += self._new[-1].nbytes
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
            with self._place.writer(HISTORY, *self._path, f"{_OPEN}.parquet") as writer:
                writer.write_table(self._waiting.set_column(at, HISTORY.field(at), outcome))

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
                self._writer = self._place.writer(HISTORY, *self._path, f"{self._name}.parquet")
            self._writer.write_table(rows)


def _open_rows(earlier: OutputDirectory, number: int) -> pa.Table:
    path = earlier.path_of(HISTORY_TABLE, directory_of(number), f"{_OPEN}.parquet")
    try:
        # Open only the file: with a path, its directory would be read as a column.
        with pq.ParquetFile(earlier.filesystem.open_input_file(path)) as file:
            return file.read().cast(HISTORY)
    except FileNotFoundError:
        return HISTORY.empty_table()


def _marker_column(rows: pa.Table) -> pa.Array:
    nothing = pa.nulls(rows.num_rows, pa.string())
    return rows["marker"].combine_chunks() if "marker" in rows.column_names else nothing


def _markers(markers: pa.Table) -> pa.Table:
    kinds = pc.if_else(pc.equal(markers["role"], COMMITS), "committed", "aborted")
    return pa.Table.from_arrays([markers["producer"], markers["offset"], kinds], schema=_MARKERS)


def files_of(place: OutputDirectory, number: int) -> Iterator[str]:
    """Yield the files of a partition in the table, by their paths in it."""
    for name in place.subdirectory(HISTORY_TABLE, directory_of(number)).files():
        yield f"{directory_of(number)}/{name}"
