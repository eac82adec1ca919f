"""The records of log directories as Parquet files, each written with the memory of a few row batches.

Defines the file layout, the encodings and the result per file. ``kafka_msgs.offline.log_table`` provides the rows. A
file is complete once it has its final name; until then it has another suffix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
from attrs import frozen

from kafka_msgs.errors import JobPathError
from kafka_msgs.offline.log_table import ERROR, LogTable, SegmentRows
from kafka_msgs.offline.partition_discovery import Progress

__all__ = ["RecordFile", "write_records"]

COMPRESSIONS: Final = ("snappy", "zstd", "lz4", "none")
"""The compression types of the files. The first one is the default, as in Spark and Arrow."""

_LEVELS: Final = {"zstd": 1}
"""Higher levels take much more time and save little space."""
_IN_PATH: Final = ("topic", "partition")
"""Columns that are part of the directory names instead of the files."""
_REPEATED: Final = ["timestampType", "codec", "magic", "transactional", "control", "producerId", "file", ERROR]
"""Columns with few distinct values. For other columns, Parquet would build dictionaries and then discard them."""
_COUNTERS: Final = {"offset": "DELTA_BINARY_PACKED", "sequence": "DELTA_BINARY_PACKED"}
_RANGES: Final = ["offset", "timestamp", "timestampMs"]
"""Columns with minimum and maximum values, by which readers skip parts of a file."""
_UNFINISHED: Final = ".unfinished"


@frozen(kw_only=True)
class RecordFile:
    """A written file: its partition, its record count, its size, and the size of the source segment.

    ``damaged`` counts the rows that report damage. They do not count as records.
    """

    path: Path
    topic: str
    partition: int
    records: int
    damaged: int
    size: int
    read: int


def check_empty(out: Path) -> None:
    """Raise ``JobPathError`` if ``out`` is not empty or not a directory."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise JobPathError(path=str(out), reason="it exists and is not an empty directory; nothing is overwritten")


def write_records(table: LogTable, out: Path, *, compression: str = "snappy", workers: int = 1) -> Iterator[RecordFile]:
    """Write the records of a table to Parquet files, one per non-empty segment, and yield the written files.

    ``topic=orders/partition=0/00000000000000000000.parquet`` below ``out`` contains the records of the first segment of
    that partition. Hive, Spark, DuckDB and Polars read the directory names as the columns ``topic`` and ``partition``.
    A damaged part is a row with the reason in ``_error``. Memory use does not depend on file sizes. Two or more
    workers run as that many processes and write the same files. Raises the errors of reading the table, and
    ``JobPathError`` if ``out`` is not empty.
    """
    check_empty(out)
    segments, write = list(table.segments()), partial(_write, out, compression)
    written = map(write, segments) if workers == 1 else _in_processes(write, segments, table.progress, workers)
    yield from (file for file in written if file is not None)


def _in_processes(
    write: Callable[[SegmentRows], RecordFile | None], segments: Sequence[SegmentRows], progress: Progress, workers: int
) -> Iterator[RecordFile | None]:
    """Write with worker processes, and yield their files in segment order."""
    # The processes are spawned: after a fork, Arrow's threads would be missing.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        for segment, written in zip(segments, pool.map(write, segments), strict=True):
            progress.file(segment.path)
            progress.read(segment.size)
            yield written
    finally:
        pool.shutdown(cancel_futures=True)


def _write(out: Path, compression: str, segment: SegmentRows) -> RecordFile | None:
    """Write the file of a segment; return None if it has no rows."""
    names = [name for name in segment.table.schema.names if name not in _IN_PATH]
    path = out / f"topic={segment.topic}" / f"partition={segment.partition}" / f"{segment.path.stem}.parquet"
    unfinished = path.with_suffix(_UNFINISHED)
    writer, rows, damaged = None, 0, 0
    try:
        for batch in segment.rows:
            if writer is None:
                path.parent.mkdir(parents=True, exist_ok=True)
                writer = _writer(unfinished, batch.select(names).schema, compression)
            writer.write_batch(batch.select(names))
            rows += batch.num_rows
            damaged += batch.num_rows - batch.column(ERROR).null_count
    finally:
        if writer is not None:
            writer.close()
    if writer is None:
        return None
    unfinished.replace(path)
    return RecordFile(
        path=path,
        topic=segment.topic,
        partition=segment.partition,
        records=rows - damaged,
        damaged=damaged,
        size=path.stat().st_size,
        read=segment.size,
    )


def _writer(path: Path, schema: Any, compression: str) -> Any:
    names = set(schema.names)
    return pq.ParquetWriter(
        path,
        schema,
        compression=compression,
        compression_level=_LEVELS.get(compression),
        use_dictionary=[name for name in _REPEATED if name in names],
        column_encoding={name: encoding for name, encoding in _COUNTERS.items() if name in names} or None,
        write_statistics=[name for name in _RANGES if name in names],
    )
