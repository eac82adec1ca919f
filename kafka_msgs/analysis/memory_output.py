"""The output of a task in memory: it collects the rows of tables, for commands and frames that write no files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from attrs import define

from kafka_msgs.tables.task_output import TaskOutput

__all__ = ["MemoryOutput"]


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
