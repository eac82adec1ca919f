"""The records of log directories as Parquet files, each written with the memory of a few row batches.

Defines the file layout, the encodings and the result per file. ``kafka_msgs.columns.log_table`` provides the rows. All
files become visible by one commit, so that an ended export leaves no part of a table.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import pyarrow as pa
from attrs import frozen

from kafka_msgs.columns.log_table import ERROR, LogTable, SegmentRows
from kafka_msgs.engines.local import map_in_processes
from kafka_msgs.errors import JobPathError
from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import NOT_EMPTY, CommitLog, RunToken, WrittenFile
from kafka_msgs.tables.current_link import finish_commit
from kafka_msgs.tables.task_output import TableWriter, TaskOutput

__all__ = ["RecordFile", "write_records"]

_LEVELS: Final = {"zstd": 1}
"""Higher levels take much more time and save little space."""
_IN_PATH: Final = ("topic", "partition")
"""Columns that are part of the directory names instead of the files."""
_REPEATED: Final = ["timestampType", "codec", "magic", "transactional", "control", "producerId", "file", ERROR]
"""Columns with few distinct values. For other columns, Parquet would build dictionaries and then discard them."""
_COUNTERS: Final = {"offset": "DELTA_BINARY_PACKED", "sequence": "DELTA_BINARY_PACKED"}
_RANGES: Final = ["offset", "timestamp", "timestampMs"]
"""Columns with minimum and maximum values, by which readers skip parts of a file."""
_TABLE: Final = "records"


@frozen(kw_only=True)
class RecordFile:
    """A written file: its path in the output directory, its partition, its record count, and its size in bytes.

    ``damaged`` counts the rows that report damage. They do not count as records. ``read`` is the size of the segment.
    """

    path: str
    topic: str
    partition: int
    records: int
    damaged: int
    size: int
    read: int


_Result: TypeAlias = tuple[WrittenFile, RecordFile] | None


def write_records(
    table: LogTable, out: str | Path, *, compression: str = "snappy", workers: int = 1
) -> list[RecordFile]:
    """Write the records of a table to Parquet files, one per non-empty segment, and return the written files.

    ``current/records/topic=orders/partition=0/00000000000000000000.parquet`` below ``out`` contains the records of the
    first segment of that partition. Hive, Spark, DuckDB and Polars read the directory names as the columns ``topic``
    and ``partition``. On an object store, the manifest in ``_commits`` lists the files instead of ``current``. A
    damaged part is a row with the reason in ``_error``. Memory use does not depend on file sizes. Two or more workers
    run as that many processes and write the same files. Raises the errors of reading the table, and ``JobPathError`` if
    ``out`` is not empty.
    """
    log = CommitLog(Storage.at(str(out)))
    if not log.is_unused():
        raise JobPathError(path=str(log.storage), reason=NOT_EMPTY)
    segments = list(table.segments())
    token = log.begin({"job": _TABLE}, None)
    write = partial(_write, log.storage, token, compression)
    results = []
    for segment, written in zip(segments, map_in_processes(write, segments, workers), strict=True):
        if workers > 1:
            table.progress.file(segment.path)
            table.progress.read(segment.size)
        if written is not None:
            results.append(written)
    log.commit(token, {_TABLE: [file for file, _ in results]})
    finish_commit(log)
    return [record_file for _, record_file in results]


def _write(storage: Storage, token: RunToken, compression: str, segment: SegmentRows) -> _Result:
    """Write the file of a segment; return None if it has no rows."""
    names = [name for name in segment.table.schema.names if name not in _IN_PATH]
    name = f"topic={segment.topic}/partition={segment.partition}/{segment.path.stem}.parquet"
    output, damaged = TaskOutput.start(storage, token), 0
    with ExitStack() as opened:
        writer: TableWriter | None = None
        for batch in segment.rows:
            rows = batch.select(names)
            if writer is None:
                options = _parquet_options(rows.schema, compression)
                writer = opened.enter_context(output.writer(rows.schema, _TABLE, name, **options))
            writer.write(rows)
            damaged += batch.num_rows - batch.column(ERROR).null_count
    if writer is None:
        return None
    file = output.files[_TABLE][name]
    return file, RecordFile(
        path=file.path,
        topic=segment.topic,
        partition=segment.partition,
        records=file.rows - damaged,
        damaged=damaged,
        size=file.size,
        read=segment.size,
    )


def _parquet_options(schema: pa.Schema, compression: str) -> dict[str, Any]:
    names = set(schema.names)
    return {
        "compression": compression,
        "compression_level": _LEVELS.get(compression),
        "use_dictionary": [name for name in _REPEATED if name in names],
        "column_encoding": {name: encoding for name, encoding in _COUNTERS.items() if name in names} or None,
        "write_statistics": [name for name in _RANGES if name in names],
    }
