"""The records of log directories as Parquet files, each written in the memory of a few batches of rows.

Owns where the files go, how they are encoded, and what is said about each. The rows are those of
``kafka_msgs.offline.log_table``. A file is complete when it has its name; before that it has another ending.
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

__all__ = ["COMPRESSIONS", "RecordFile", "check_empty", "write_records"]

COMPRESSIONS: Final = ("snappy", "zstd", "lz4", "none")
"""How the files can be compressed; the first one, which Spark and Arrow also choose, if nothing is said."""

_LEVELS: Final = {"zstd": 1}
"""Higher levels take much more time for little less space."""
_IN_PATH: Final = ("topic", "partition")
"""Columns that are not in the files, because the names of their directories have them."""
_REPEATED: Final = ["timestampType", "codec", "magic", "transactional", "control", "producerId", "file", ERROR]
"""Columns with few different values. Dictionaries of the others would be given up, after the time to make them."""
_COUNTERS: Final = {"offset": "DELTA_BINARY_PACKED", "sequence": "DELTA_BINARY_PACKED"}
_RANGES: Final = ["offset", "timestamp", "timestampMs"]
"""Columns by whose lowest and highest value a reader passes over parts of a file."""
_UNFINISHED: Final = ".unfinished"


@frozen(kw_only=True)
class RecordFile:
    """A file that was written: the partition of its records, how many, its bytes, and the bytes of their segment.

    ``damaged`` counts the rows that report damage. They are not among ``record_files``.
    """

    path: Path
    topic: str
    partition: int
    records: int
    damaged: int
    size: int
    read: int


def check_empty(out: Path) -> None:
    """Raise ``JobPathError`` if there is something in the directory ``out``, or if it is not one."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise JobPathError(path=str(out), reason="it exists and is not an empty directory; nothing is overwritten")


def write_records(table: LogTable, out: Path, *, compression: str = "snappy", workers: int = 1) -> Iterator[RecordFile]:
    """Write the records of a table into Parquet files, one for each segment that has any, and yield what was written.

    ``topic=orders/partition=0/00000000000000000000.parquet`` below ``out`` has the records of the first segment of that
    partition. The names of the directories are its columns ``topic`` and ``partition_task``, as Hive, Spark, DuckDB and
    Polars read them. Damage is a row with its reason in ``_error``. What is kept in memory does not depend on the sizes
    of the files. More than one worker are so many processes; the files are the same. Raises what reading the table
    raises, and ``JobPathError`` if ``out`` is not empty.
    """
    check_empty(out)
    segments, write = list(table.segments()), partial(_write, out, compression)
    written = map(write, segments) if workers == 1 else _in_processes(write, segments, table.progress, workers)
    yield from (file for file in written if file is not None)


def _in_processes(
    write: Callable[[SegmentRows], RecordFile | None], segments: Sequence[SegmentRows], progress: Progress, workers: int
) -> Iterator[RecordFile | None]:
    """Yield what processes of their own write, in the order of the segments."""
    # They are not forked: threads of Arrow would be missing in them.
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
