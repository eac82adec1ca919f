"""The in-memory engine: reducers over local partitions, for the commands on log directories.

It only reads records and collects problems and rows. The jobs run the same reducers in tasks, and write files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
from attrs import define, frozen

from kafka_msgs.columns.log_table import walk_segment
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import Progress
from kafka_msgs.tables.task_output import TaskOutput

__all__ = ["MemoryOutput", "ReadProblem", "read_partition"]

AddRecords: TypeAlias = Callable[[pa.RecordBatch, str, int], pa.Table]
"""Adds records of a file, given the base offset of its segment, to a reducer; returns the problems among them."""


@frozen(kw_only=True)
class ReadProblem:
    """Unreadable data: the ``topic``, ``partition`` and ``file``, and the reason.

    ``offset`` is the offset of a record, and ``position`` the byte of an unreadable part of the file.
    """

    topic: str
    partition: int
    offset: int | None = None
    position: int | None = None
    file: str
    reason: str


def read_partition(
    partition: Partition, add: AddRecords, columns: Sequence[str], progress: Progress
) -> Iterator[ReadProblem]:
    """Read the records of a partition with these columns into a reducer, and yield the problems.

    Raises ``OSError``.
    """
    topic, number = partition.topic, partition.partition
    segments = partition.segments
    for segment in segments:
        file, closed = str(segment.path.absolute()), segment is not segments[-1]
        for item in walk_segment(segment.path.absolute(), columns, progress, closed=closed):
            if isinstance(item, LogFileError):
                yield ReadProblem(topic=topic, partition=number, position=item.position, file=file, reason=str(item))
                continue
            for row in add(item, file, segment.base_offset).to_pylist():
                yield ReadProblem(
                    topic=topic, partition=number, offset=row["logOffset"], file=row["file"], reason=row["problem"]
                )


class MemoryOutput(TaskOutput):
    """Collects the rows of tables instead of writing files. Rows of tables without a schema are dropped."""

    def __init__(self, schemas: Mapping[str, pa.Schema] | None = None) -> None:
        self.attempt = ""
        self.files = {}
        self.schemas = schemas or {}
        self._found: list[tuple[str, pa.RecordBatch]] = []

    def writer(self, schema: pa.Schema, table: str, name: str, **_: Any) -> Any:
        """Return a writer that collects rows."""
        return _RowWriter(self, table, name.rpartition("/")[0])

    def append(self, table: str, rows: pa.Table | pa.RecordBatch, directory: str = "") -> None:
        """Collect rows, with the columns in the name of their directory."""
        if table not in self.schemas or not rows.num_rows:
            return
        schema = self.schemas[table]
        found = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        for part in filter(None, directory.split("/")):
            column, _, value = part.partition("=")
            repeated = pa.repeat(pa.scalar(unquote(value)), found.num_rows).cast(schema.field(column).type)
            found = found.append_column(column, repeated)
        batches = found.select(schema.names).cast(schema).combine_chunks().to_batches()
        self._found += [(table, batch) for batch in batches]

    def discard(self, log: str) -> None:
        """Forget the collected rows."""
        self._found = []

    def drain(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the rows that were collected since the last call, each batch with the name of its table."""
        found, self._found = self._found, []
        yield from found


@define
class _RowWriter:
    """Replaces the writer of a file."""

    _output: MemoryOutput
    _table: str
    _directory: str

    def __enter__(self) -> _RowWriter:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Collect rows."""
        self._output.append(self._table, rows, self._directory)

    def close(self) -> None:
        """Do nothing."""

    def abandon(self) -> None:
        """Do nothing."""
