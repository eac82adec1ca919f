"""What Spark pays for Kafka's bytes: scans of segments beside scans of Parquet, and decoding beside doing nothing.

One session on two cores; the same records as segments and as Parquet. Every case reads all rows and throws them away
(``noop``), so that what is compared is the way of the data and nothing behind it. The clock on the wall counts, since
the work is done by other processes; rounds are interleaved, and the median of a case counts. Of a busy machine the
fastest round, which the table has as well, is more reliable.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType
from rich.console import Console

from benchmarks.report import Figure, print_figures, rows_table
from kafka_msgs import OffsetCommitKey, OffsetCommitValue
from kafka_msgs.filesystems import files
from kafka_msgs.filesystems.opening import Opened
from kafka_msgs.log.writing.segments import SegmentWriter
from kafka_msgs.prefixed import encode_versioned
from kafka_msgs.records import BatchBuilder, BatchHeader
from kafka_msgs.spark import count_records, from_kafka, register, schema_of
from kafka_msgs.spark.functions import column_function, decode
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.plans import Plan
from kafka_msgs.spark.types import without_notes
from kafka_msgs.topics.records import TopicRecord, encode_record
from tests.support.counted_files import CountedFiles
from tests.support.transactional_log import History

__all__ = ["run"]

FILES: Final = 4
BATCHES: Final = 750
RECORDS: Final = 500
TOMBSTONES: Final = 0.05
ROUNDS: Final = 7
CORES: Final = 2
PROTOCOL: Final = (
    f"local[{CORES}], {FILES * BATCHES * RECORDS:,} records, uncompressed, checksums compared; "
    "interleaved, wall clock, median of {rounds} rounds after one that does not count"
)
_FIELDS: Final = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp")
"""Of the value, what is decoded: five fields side by side."""
_COLUMNS: Final = ("partition", "offset", "timestamp", "key", "value")
_START_MS: Final = 1_767_225_600_000

_IDENTITY: Final = "identity arrow_udf of the values"
_STRUCT: Final = "arrow_udf that returns such structs ready-made"
_DECODE: Final = "from_kafka of the values, five fields"
_ONE: Final = "from_kafka of the values, one field"
_PARQUET: Final = "Parquet, five columns"
_LOG: Final = "kafka-log, the same columns"
_LOG_ALL: Final = "kafka-log, all columns"
_COUNT: Final = "count() of all columns, as it was before there was a choice"
_COUNT_USUAL: Final = "count() of the default columns"
_HEADERS: Final = "count() of the column partition, by headers"
_COUNTED: Final = "count_records, by headers"
_FUSED: Final = "kafka-log, decodedValue instead of value"

PROTOTYPE: Final = 0.16 / 1.55
"""What a source in pure Python had of Parquet's speed, before this one: 70 MB/s over the records of this benchmark."""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-bench-") as directory:
        home = Path(directory)
        size = _write(home / "log")
        last = _read_for_last_percent(home / "log")
        driver = _read_by_driver(home / "remote")
        session = _session(home)
        try:
            taken = _taken(_cases(session, home), min(rounds, ROUNDS))
        finally:
            session.stop()
    seconds = {name: statistics.median(each) for name, each in taken.items()}
    table = rows_table("Spark", "", "seconds", "fastest", "million rows/s", "MB/s a core")
    for name, each in taken.items():
        speed = FILES * BATCHES * RECORDS / seconds[name] / 1e6
        megabytes = size / seconds[name] / CORES / 1e6
        table.add_row(name, f"{seconds[name]:.2f}", f"{min(each):.2f}", f"{speed:.2f}", f"{megabytes:.0f}")
    console.print(table)
    share = seconds[_PARQUET] / seconds[_LOG]
    figures = [
        Figure(
            "from_kafka, over the identity function", seconds[_DECODE] / seconds[_IDENTITY], target=1.15, at_most=True
        ),
        Figure("from_kafka of one field, over the identity function", seconds[_ONE] / seconds[_IDENTITY], at_most=True),
        Figure(
            "from_kafka, over a function that returns structs ready-made",
            seconds[_DECODE] / seconds[_STRUCT],
            at_most=True,
        ),
        Figure("kafka-log: share of Parquet's speed, over the prototype's", share / PROTOTYPE, target=4.0),
        Figure("kafka-log: share of Parquet's speed", 100 * share, unit="%"),
        Figure(
            "kafka-log: count() by headers, over count() of all columns",
            seconds[_COUNT] / seconds[_HEADERS],
            target=5.0,
        ),
        Figure("count_records, over count() of all columns", seconds[_COUNT] / seconds[_COUNTED], target=5.0),
        Figure("count_records, over count() of the default columns", seconds[_COUNT_USUAL] / seconds[_COUNTED]),
        Figure(
            "kafka-log: bytes that the driver reads of a remote log for read_committed",
            100 * driver,
            unit="%",
            target=2.0,
            at_most=True,
        ),
        Figure("kafka-log: bytes read for the last 1 % by time", 100 * last / size, unit="%", target=3.0, at_most=True),
        Figure("kafka-log: a core reads", size / seconds[_LOG] / CORES / 1e6, unit="MB/s"),
    ]
    print_figures(console, "Spark", PROTOCOL.format(rounds=min(rounds, ROUNDS)), figures)
    return figures


def _write(directory: Path) -> int:
    """Write the segments of a topic of commits; return their bytes."""
    dice = random.Random(1)
    for number in range(FILES):
        home = directory / f"commits-{number}"
        home.mkdir(parents=True)
        with SegmentWriter(home, 0) as segment:
            for each in range(BATCHES):
                segment.append(_batch(dice, each * RECORDS))
    return sum(path.stat().st_size for path in directory.rglob("*.log"))


def _read_for_last_percent(directory: Path) -> int:
    """Return the bytes that are read for the last hundredth of each partition, by time; all indexes count."""
    time = _START_MS + BATCHES * RECORDS * 99 // 100
    given = Options("kafka-log", {"path": str(directory), "startingTimestamp": str(time)})
    parts = (part for split in Plan.of("kafka-log", given).splits() for part in split)
    return sum(part.size for part in parts) + sum(path.stat().st_size for path in directory.rglob("*index"))


def _read_by_driver(directory: Path) -> float:
    """Return the share of a running broker's log that planning a read of committed records fetches."""
    home = directory / "events-0"
    home.mkdir(parents=True)
    History(home, random.Random(1), size=1000).write(segments=10, steps=1000)
    counted = CountedFiles(fs.SubTreeFileSystem(str(directory), fs.LocalFileSystem()))
    given = Options("kafka-log", {"path": "s3://bucket/events-0", "isolation": "read_committed"})
    with patch.object(files, "filesystem_of", lambda *_: Opened(counted, "")):
        Plan.of("kafka-log", given).splits()
    return counted.total / sum(path.stat().st_size for path in home.glob("*.log"))


def _batch(dice: random.Random, first: int) -> bytes:
    builder = BatchBuilder(BatchHeader(base_offset=first))
    for offset in range(first, first + RECORDS):
        key = OffsetCommitKey(group=f"group-{dice.randrange(10_000)}", topic="orders", partition=dice.randrange(100))
        at = _START_MS + offset
        value = OffsetCommitValue(offset=dice.randrange(1 << 40), leader_epoch=dice.randrange(9), commit_timestamp=at)
        record = TopicRecord(topic="__consumer_offsets", key=key, value=value, version=3)
        written = encode_record(record)
        builder.append(written.key, None if dice.random() < TOMBSTONES else written.value, timestamp=at)
    return builder.build()


def _session(home: Path) -> SparkSession:
    os.environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    session = (
        SparkSession.builder.master(f"local[{CORES}]")
        .config("spark.driver.memory", "1g")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    register(session)
    return session


def _cases(session: SparkSession, home: Path) -> dict[str, Callable[[], Any]]:
    source = str(home / "log")
    raw = session.read.format("kafka-log").option("mode", "FAILFAST").option("columns", ",".join(_COLUMNS)).load(source)
    raw.write.parquet(str(home / "parquet"))
    stored = session.read.parquet(str(home / "parquet")).select(*_COLUMNS)
    whole = session.read.format("kafka-log").option("columns", "*").load(source)
    headers = session.read.format("kafka-log").option("columns", "partition").load(source)
    fused = (
        session.read.format("kafka-log")
        .option("mode", "FAILFAST")
        .option("valueMessage", "OffsetCommitValue")
        .option("columns", "partition,offset,timestamp,key,decodedValue")
        .load(source)
    )
    made = {
        _PARQUET: stored,
        _LOG: raw,
        _LOG_ALL: whole,
        _FUSED: fused,
        _IDENTITY: stored.select(column_function(_same, BinaryType())("value")),
        _STRUCT: stored.select(
            column_function(_ready_made, without_notes(schema_of("OffsetCommitValue", columns=_FIELDS)))("value")
        ),
        _ONE: stored.select(from_kafka("value", "OffsetCommitValue", columns=_FIELDS[:1], mode="FAILFAST")),
        _DECODE: stored.select(from_kafka("value", "OffsetCommitValue", columns=_FIELDS, mode="FAILFAST")),
    }
    counts: dict[str, Callable[[], Any]] = {
        _COUNT: whole.count,
        _COUNT_USUAL: session.read.format("kafka-log").load(source).count,
        _HEADERS: headers.count,
        _COUNTED: partial(count_records, session, source),
    }
    return {name: _thrown_away(rows) for name, rows in made.items()} | counts


@cache
def _structs(count: int) -> pa.StructArray:
    value = encode_versioned(OffsetCommitValue(offset=1, leader_epoch=1, commit_timestamp=1), 3)
    return decode(pa.array([value] * count, pa.binary()), OffsetCommitValue, None, _FIELDS, "FAILFAST")


def _ready_made(values: pa.Array) -> pa.Array:
    """Return structs of the type that decoding gives without reading a value: what it costs to hand them to Spark."""
    return _structs(len(values))


def _same(values: pa.Array) -> pa.Array:
    return values


def _thrown_away(rows: DataFrame) -> Callable[[], None]:
    return lambda: rows.write.format("noop").mode("overwrite").save()


def _taken(cases: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every round but the first, which starts workers and compiles."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name in list(cases)[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            cases[name]()
            taken[name].append(time.perf_counter() - start)
    return {name: each[1:] for name, each in taken.items()}
