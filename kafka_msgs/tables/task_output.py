"""The files that one attempt of a task writes for a run.

A file is part of the result once it is complete. The commit lists the files of one attempt of each task; files of other
attempts are never visible.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import evolve, frozen

from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog, RunToken, WrittenFile

__all__ = ["TableSpec", "TableWriter", "TaskOutput"]

_REPEATED: Final = frozenset(
    ["group", "topic", "topicPartition", "leaderEpoch", "metadata", "topicId", "tombstone", "transactional", "outcome",
     "logPartition", "file", "producerId", "kind", "state", "role", "producer", "stands_for"]
)  # fmt: skip
"""Columns with few distinct values. For other columns, Parquet would build dictionaries and then discard them."""
_BUFFER: Final = 32 << 20
"""The number of bytes of collected rows."""
_DIFFERENCES: Final = (pa.int64(), pa.timestamp("us", tz="UTC"))
"""Types that are delta-encoded if their values do not repeat: offsets and times."""


@frozen
class TableSpec:
    """The specification of a table: its columns, and those whose values are in the names of directories.

    The files do not contain the columns ``partition_by``.
    """

    schema: pa.Schema
    partition_by: tuple[str, ...] = ()


class TableWriter:
    """Writes one Parquet file, and adds it to the output when it is closed."""

    def __init__(
        self, output: TaskOutput, schema: pa.Schema, file: WrittenFile, table: str, options: Mapping[str, Any]
    ) -> None:
        self._output = output
        self._table = table
        self._file = file
        self._sink = output.storage.output(file.path)
        self._writer = pq.ParquetWriter(self._sink, schema, **options)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close() if kind is None else self.abandon()

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Write rows."""
        self._file = evolve(self._file, rows=self._file.rows + rows.num_rows)
        self._writer.write(rows)

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        self._output.add_file(self._table, evolve(self._file, size=size))

    def abandon(self) -> None:
        """End without a result. The file, if any, stays out of the output."""
        self._writer.close()
        self._sink.close()


class TaskOutput:
    """The output of one task attempt in a run. ``files`` are the complete files by table and name.

    Rows of tables that every run rewrites are collected for all partitions of the task, so that a table has one file
    per task and directory.
    """

    def __init__(self, storage: Storage, token: RunToken) -> None:
        self.storage = storage
        self.attempt = uuid4().hex
        self.files: dict[str, dict[str, WrittenFile]] = {}
        self._token = token
        self._rows: dict[tuple[str, str], list[pa.Table]] = {}
        self._size = 0
        self._shared: dict[tuple[str, str], TableWriter] = {}

    @classmethod
    def start(cls, storage: Storage, token: RunToken) -> TaskOutput:
        """Start an attempt. Raises ``UnseenFileError`` if this process does not see the location of the run."""
        CommitLog(storage).check_visible(token)
        return cls(storage, token)

    def path_of(self, table: str, name: str) -> str:
        """Return the path of a new file in the output directory."""
        return self._token.data_path(self.attempt, table, name)

    def writer(
        self, schema: pa.Schema, table: str, name: str, *, log: str = "", segment: int = -1, is_open: bool = False,
        **options: Any,
    ) -> TableWriter:  # fmt: skip
        """Return the writer of a Parquet file, by its path in a table. ``options`` are of ``pyarrow``'s writer.

        ``log``, ``segment`` and ``is_open`` are attributes of a ``WrittenFile`` in an appended table.
        """
        file = WrittenFile(name, self.path_of(table, name), 0, 0, log, segment, is_open)
        return TableWriter(self, schema, file, table, options or _parquet_options(schema))

    def append(self, table: str, rows: pa.Table, directory: str = "") -> None:
        """Add rows to the file of this task in a directory of a table."""
        if rows.num_rows:
            self._rows.setdefault((table, directory), []).append(rows)
            self._size += rows.nbytes
            if self._size >= _BUFFER:
                self._flush()

    def append_by(self, column: str, table: str, rows: pa.Table) -> None:
        """Add rows to a table that is partitioned by a text column, with one directory per value."""
        for value in pc.unique(rows[column]).to_pylist():
            found = rows.filter(pc.equal(rows[column], value)).drop_columns(column)
            self.append(table, found, f"{column}={quote(value, safe='')}")

    def close(self) -> None:
        """Complete the files of the collected rows."""
        self._flush()
        for writer in self._shared.values():
            writer.close()
        self._shared = {}

    def write(self, content: bytes, table: str, name: str) -> None:
        """Write a small file."""
        self.storage.write(self.path_of(table, name), content)
        self.add(table, name, len(content), 0)

    def add(self, table: str, name: str, size: int, rows: int) -> None:
        """Add a complete file."""
        self.add_file(table, WrittenFile(name, self.path_of(table, name), size, rows))

    def add_file(self, table: str, file: WrittenFile) -> None:
        """Add a complete file."""
        self.files.setdefault(table, {})[file.name] = file

    def discard(self, log: str) -> None:
        """Remove the files of a log from the output."""
        for files in self.files.values():
            for name in [each.name for each in files.values() if each.log == log]:
                del files[name]

    def _flush(self) -> None:
        for (table, directory), rows in self._rows.items():
            if (table, directory) not in self._shared:
                name = f"{directory}/{self.attempt}.parquet".lstrip("/")
                self._shared[table, directory] = self.writer(rows[0].schema, table, name)
            for each in rows:
                self._shared[table, directory].write(each)
        self._rows, self._size = {}, 0


def _parquet_options(schema: pa.Schema) -> dict[str, Any]:
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names if name in _REPEATED],
        "column_encoding": _encodings(schema) or None,
    }


def _encodings(schema: pa.Schema) -> dict[str, str]:
    """Return the encodings of non-repeating columns, which halve the write time and save 75 % of the bytes."""
    varied = {each.name: each.type for each in schema if each.name not in _REPEATED}
    found = {name: "DELTA_BINARY_PACKED" for name, type_ in varied.items() if type_ in _DIFFERENCES}
    return found | {name: "DELTA_BYTE_ARRAY" for name, type_ in varied.items() if name == "key"}
