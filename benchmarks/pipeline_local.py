"""The speed of converting a log directory to Arrow columns and to Parquet in one process, and its memory use.

Batches hold 8 or 500 records: with few records per batch, iterating over batches dominates. The baseline is pyarrow,
which reads and rewrites the same Parquet. Memory is measured in a separate process, for directories of 1 GiB and 2 GiB,
which contain links to one segment. All files are generated in a temporary directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any, Final

import pyarrow.parquet as pq
from rich.console import Console

from benchmarks.report import Figure, Times, print_figures, rows_table
from benchmarks.segment import STATUS
from benchmarks.timing import PROTOCOL, fastest
from kafka_msgs.columns import walk_record_table
from kafka_msgs.engines.record_files import write_records
from kafka_msgs.offline.log_table import DEFAULT_COLUMNS, LogTable
from kafka_msgs.records import BatchBuilder, BatchHeader

__all__ = ["run", "write_partition"]

BYTES: Final = 32 << 20
"""The size of the timed segments. All content differs, since repeated content would compress too well."""
RECORDS: Final = (8, 500)
"""The number of records per batch."""
LINKS: Final = {"1 GiB": 32, "2 GiB": 64}
COLUMNS: Final = ("offset", "timestamp", "key", "value")
TARGET: Final = 150.0
"""The target: megabytes of log per CPU second, to Parquet with 8 records per batch."""

_TO_COLUMNS: Final = "to columns"
_TO_ROWS: Final = "to the table's columns"
_TO_PARQUET: Final = "to Parquet"
_ZSTD: Final = "to Parquet, as zstd"
_REWRITE: Final = "pyarrow: the Parquet read, and written again"
_ROUNDS: Final = 5
_MEMORY: Final = """
import re, sys
from pathlib import Path
from kafka_msgs.offline.log_table import LogTable
from kafka_msgs.engines.record_files import write_records
write_records(LogTable(sys.argv[1]), Path(sys.argv[2]))
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    rounds = min(rounds, _ROUNDS)
    table = rows_table(
        "MB of log in a second of processor time", "records in a batch", _TO_COLUMNS, _TO_ROWS, _TO_PARQUET
    )
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-pipeline-") as directory:
        place = Path(directory)
        for records in RECORDS:
            segment = write_partition(place / f"records-{records}" / "events-0", BYTES, records)
            size, times = segment.stat().st_size / 1e6, _times(segment, place, rounds)
            speeds = {name: size / seconds for name, seconds in times.seconds.items()}
            table.add_row(str(records), *(f"{speeds[name]:.0f}" for name in (_TO_COLUMNS, _TO_ROWS, _TO_PARQUET)))
            figures += _figures(records, speeds, times)
        if STATUS.exists():
            figures += _memory(place / f"records-{RECORDS[0]}", place)
    console.print(table)
    print_figures(console, "A log directory in one process", PROTOCOL.format(rounds=rounds), figures)
    return figures


def write_partition(directory: Path, size: int, records: int) -> Path:
    """Write a segment of about ``size`` bytes with ``records`` records per batch; return its path."""
    directory.mkdir(parents=True)
    path, random, offset, written = directory / f"{0:020}.log", Random(records), 0, 0
    with path.open("wb") as file:
        while written < size:
            builder = BatchBuilder(BatchHeader(base_offset=offset))
            for number in range(offset, offset + records):
                value = b'{"id":%d,"price":%d,"note":"%s"}' % (
                    number,
                    random.randrange(10**4),
                    random.randbytes(8).hex().encode(),
                )
                builder.append(b"key-%d" % random.randrange(10**6), value, timestamp=1_700_000_000_000 + number // 10)
            written += file.write(builder.build())
            offset += records
    return path


def _times(segment: Path, place: Path, rounds: int) -> Times:
    names = sorted(DEFAULT_COLUMNS - {"topic", "partition"})
    table, out, again = LogTable(segment.parent, columns=names), place / "out", place / "again.parquet"
    (file,) = _written(table, out)
    kept = (out / file.path).rename(place / "kept.parquet")
    cases: dict[str, Any] = {
        _TO_COLUMNS: lambda: _drain(walk_record_table(segment, columns=COLUMNS)),
        _TO_ROWS: lambda: _drain(table.batches()),
        _TO_PARQUET: partial(_written, table, out),
        _ZSTD: partial(_written, table, out, "zstd"),
        _REWRITE: partial(_rewrite, kept, again),
    }
    return Times(fastest(cases, rounds))


def _drain(items: Iterable[Any]) -> None:
    for _ in items:
        pass


def _written(table: LogTable, out: Path, compression: str = "snappy") -> list[Any]:
    rmtree(out, ignore_errors=True)
    return write_records(table, out, compression=compression)


def _rewrite(source: Path, target: Path) -> None:
    """Rewrite Parquet with the same encodings, row groups and compression."""
    file = pq.ParquetFile(source)
    options: dict[str, Any] = {
        "compression": "snappy",
        "write_statistics": ["offset", "timestamp"],
    }
    options |= {"use_dictionary": ["timestampType", "_error"], "column_encoding": {"offset": "DELTA_BINARY_PACKED"}}
    with pq.ParquetWriter(target, file.schema_arrow, **options) as writer:
        for group in range(file.num_row_groups):
            writer.write_table(file.read_row_group(group, use_threads=False))


def _figures(records: int, speeds: dict[str, float], times: Times) -> list[Figure]:
    each = f"{records} records in a batch"
    return [
        Figure(f"{each}: a core, {_TO_COLUMNS}", speeds[_TO_COLUMNS], "MB/s"),
        Figure(
            f"{each}: a core, {_TO_PARQUET}", speeds[_TO_PARQUET], "MB/s", TARGET if records == RECORDS[0] else None
        ),
        Figure(f"{each}: a core, {_ZSTD}", speeds[_ZSTD], "MB/s"),
        Figure(f"{each}: {_REWRITE}, takes", times.ratio(_REWRITE, _TO_PARQUET)),
    ]


def _memory(directory: Path, place: Path) -> list[Figure]:
    """Measure the peak memory of a process over directories that contain links to one segment."""
    (segment,) = directory.glob("*/*.log")
    peaks = {}
    for name, links in LINKS.items():
        partition = place / f"linked-{links}" / "events-0"
        partition.mkdir(parents=True)
        for number in range(links):
            os.link(segment, partition / f"{number:020}.log")
        command = [sys.executable, "-c", _MEMORY, str(partition.parent), str(place / f"out-{links}")]
        done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, check=True, timeout=300)
        peaks[name] = int(done.stdout) * 1024 / 1e6
    small, large = peaks.values()
    return [
        Figure("1 GiB to Parquet: peak of resident memory, the mapped file included", small, "MB"),
        Figure("2 GiB: peak of resident memory, over that of 1 GiB", large / small, target=1.1, at_most=True),
    ]
