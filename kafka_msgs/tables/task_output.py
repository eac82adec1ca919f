"""The files that one attempt of a task writes for a run, and the files of the commit that the run builds on.

A file is part of the result once it is complete. The commit lists the files of one attempt of each task; files of other
attempts are never visible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import TracebackType
from typing import Any, Final
from urllib.parse import quote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from attrs import frozen
from pyarrow import NativeFile

from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog, RunToken, Snapshot, WrittenFile

__all__ = ["TableSpec", "TableWriter", "TaskOutput", "write_partitioned", "write_table"]

_REPEATED: Final = frozenset(
    ["group", "topic", "topicPartition", "leaderEpoch", "metadata", "topicId", "tombstone", "transactional", "outcome",
     "logPartition", "file", "producerId", "kind", "state", "role", "producer", "stands_for"]
)  # fmt: skip
"""Columns with few distinct values. For other columns, Parquet would build dictionaries and then discard them."""
_DIFFERENCES: Final = (pa.int64(), pa.timestamp("us", tz="UTC"))
"""Types that are delta-encoded if their values do not repeat: offsets and times."""


@frozen
class TableSpec:
    """The specification of a table: its columns, and its settings in formats other than Parquet.

    ``keys`` are columns whose combined values are unique and never null. The table is partitioned by the columns
    ``partition_by`` and by the day of ``time``.
    """

    schema: pa.Schema
    keys: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    time: str = ""


class TableWriter:
    """Writes one Parquet file, and adds it to the output when it is closed."""

    def __init__(
        self, output: TaskOutput, schema: pa.Schema, table: str, name: str, options: Mapping[str, Any]
    ) -> None:
        self._output = output
        self._place = table, name
        self._sink = output.storage.output(output.path_of(table, name))
        self._rows = 0
        self._writer = pq.ParquetWriter(self._sink, schema, **options)

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close() if kind is None else self.abandon()

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Write rows."""
        self._rows += rows.num_rows
        self._writer.write(rows)

    def close(self) -> None:
        """Complete the file."""
        self._writer.close()
        size = self._sink.tell()
        self._sink.close()
        self._output.add(*self._place, size, self._rows)

    def abandon(self) -> None:
        """End without a result. The file, if any, stays out of the output."""
        self._writer.close()
        self._sink.close()


class TaskOutput:
    """The output of one task attempt in a run.

    ``files`` are the complete files by table and name. Files of an earlier run are read from the commit that the run
    builds on.
    """

    def __init__(self, storage: Storage, token: RunToken) -> None:
        self.storage = storage
        self.attempt = uuid4().hex
        self.files: dict[str, dict[str, WrittenFile]] = {}
        self._token = token

    @classmethod
    def start(cls, storage: Storage, token: RunToken) -> TaskOutput:
        """Start an attempt. Raises ``UnseenFileError`` if this process does not see the location of the run."""
        CommitLog(storage).check_visible(token)
        return cls(storage, token)

    def path_of(self, table: str, name: str) -> str:
        """Return the path of a new file in the output directory."""
        return self._token.data_path(self.attempt, table, name)

    def writer(self, schema: pa.Schema, table: str, name: str, **options: Any) -> TableWriter:
        """Return the writer of a Parquet file, by its path in a table. ``options`` are of ``pyarrow``'s writer."""
        return TableWriter(self, schema, table, name, options or _parquet_options(schema))

    def write(self, content: bytes, table: str, name: str) -> None:
        """Write a small file."""
        self.storage.write(self.path_of(table, name), content)
        self.add(table, name, len(content), 0)

    def add(self, table: str, name: str, size: int, rows: int) -> None:
        """Add a complete file."""
        self.files.setdefault(table, {})[name] = WrittenFile(name, self.path_of(table, name), size, rows)

    def remove(self, table: str, name: str) -> None:
        """Remove a file from the output, if it was added."""
        self.files.get(table, {}).pop(name, None)

    def clear(self, table: str) -> None:
        """Remove all files of a table from the output."""
        self.files.pop(table, None)

    def read_earlier(self, table: str, name: str) -> bytes | None:
        """Return the content of a small file of the earlier run, or None."""
        file = self._earlier(table, name)
        return None if file is None else self.storage.read(file.path)

    def open_earlier(self, table: str, name: str) -> NativeFile:
        """Return a file of the earlier run. Raises ``FileNotFoundError``."""
        file = self._earlier(table, name)
        if file is None:
            raise FileNotFoundError(f"{table}/{name}")
        return self.storage.open(file.path)

    def _earlier(self, table: str, name: str) -> WrittenFile | None:
        if not self._token.base:
            return None
        return _read_snapshot(self.storage, self._token.base).file(table, name)


@lru_cache(maxsize=2)
def _read_snapshot(storage: Storage, number: int) -> Snapshot:
    """Return a commit, read once in each process: manifests are not sent with tasks."""
    return CommitLog(storage).snapshot(number)


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


def write_table(name: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema, output: TaskOutput, part: str) -> int:
    """Write rows as one part of a table, a Parquet file named ``part``, and return their number.

    ``part`` may include directories, such as ``kind=classic/0``. No file is written for zero rows.
    """
    writer: Any = None
    rows = 0
    try:
        for batch in batches:
            if batch.num_rows:
                writer = writer or output.writer(schema, name, f"{part}.parquet")
                writer.write(batch)
                rows += batch.num_rows
    except BaseException:
        if writer is not None:
            writer.abandon()
        raise
    if writer is not None:
        writer.close()
    return rows


def write_partitioned(column: str, name: str, rows: pa.Table, output: TaskOutput, part: str) -> None:
    """Write rows as one part of a table that is partitioned by a text column, with one directory per value."""
    for value in pc.unique(rows[column]).to_pylist():
        found = rows.filter(pc.equal(rows[column], value)).drop_columns(column)
        write_table(name, found.to_batches(), found.schema, output, f"{column}={quote(value, safe='')}/{part}")
