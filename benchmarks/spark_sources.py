"""Spark's cost for Kafka data: segment scans compared with Parquet, and decoding compared with an identity function.

Uses one session on two cores, with the same records as segments and as Parquet. Every case reads and drops all rows
(``noop``), so only the data transfer is compared. The JVM and Python workers do the work, so the CPU time of all these
processes counts. Rounds are interleaved. Ratios are computed within each round, and their median counts; the table also
contains the minimum and the maximum.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.functions import udf
from pyspark.sql.types import BinaryType
from rich.console import Console

from benchmarks.process_tree import tree_seconds
from benchmarks.report import Figure, print_figures, rows_table
from kafka_msgs import OffsetCommitKey, OffsetCommitValue
from kafka_msgs.filesystems import path_resolution
from kafka_msgs.filesystems.resolver import OpenedFilesystem
from kafka_msgs.internal_topics.records import TopicRecord, encode_record
from kafka_msgs.log.writers.segment_writer import SegmentWriter
from kafka_msgs.records import BatchBuilder, BatchHeader
from kafka_msgs.spark import count_records, from_kafka, register, schema_of, to_kafka
from kafka_msgs.spark.functions import column_function, decode
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.read_plan import ReadPlan
from kafka_msgs.spark.spark_types import without_notes
from kafka_msgs.versioned import encode_versioned
from tests.support.counting_filesystem import CountedFiles
from tests.support.transactional_log import History

__all__ = ["run"]

FILES: Final = 4
BATCHES: Final = 750
RECORDS: Final = 500
TOMBSTONES: Final = 0.05
ROUNDS: Final = 10
WARM_UP: Final = 2
CORES: Final = 2
PROTOCOL: Final = (
    f"local[{CORES}], {FILES * BATCHES * RECORDS:,} records, uncompressed, checksums compared; "
    "interleaved, processor time of all processes, median of {rounds} rounds after two that do not count"
)
_FIELDS: Final = ("offset", "leader_epoch", "metadata", "commit_timestamp", "expire_timestamp")
"""The decoded columns of the value: five adjacent fields."""
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
_TO_KAFKA: Final = "to_kafka of five fields"
_TO_IDENTITY: Final = "identity arrow_udf of the structs"
_TO_UDF: Final = "encode_versioned in a Python UDF"
_FUSED: Final = "kafka-log, decodedValue instead of value"

_OVER_IDENTITY: Final = "from_kafka, over the identity function"
_ONE_OVER_IDENTITY: Final = "from_kafka of one field, over the identity function"
_OVER_READY_MADE: Final = "from_kafka, over a function that returns structs ready-made"
_UDF_OVER_TO_KAFKA: Final = "a Python UDF that encodes, over to_kafka"
_TO_KAFKA_OVER_IDENTITY: Final = "to_kafka, over the identity function of the structs"
_ALL_OVER_HEADERS: Final = "kafka-log: count() of all columns, over count() by headers"
_ALL_OVER_COUNTED: Final = "count() of all columns, over count_records"
_USUAL_OVER_COUNTED: Final = "count() of the default columns, over count_records"

_PAIRS: Final = {
    _OVER_IDENTITY: (_DECODE, _IDENTITY),
    _ONE_OVER_IDENTITY: (_ONE, _IDENTITY),
    _OVER_READY_MADE: (_DECODE, _STRUCT),
    _UDF_OVER_TO_KAFKA: (_TO_UDF, _TO_KAFKA),
    _TO_KAFKA_OVER_IDENTITY: (_TO_KAFKA, _TO_IDENTITY),
    _ALL_OVER_HEADERS: (_COUNT, _HEADERS),
    _ALL_OVER_COUNTED: (_COUNT, _COUNTED),
    _USUAL_OVER_COUNTED: (_COUNT_USUAL, _COUNTED),
}
"""The numerator and the denominator of each ratio."""

PROTOTYPE: Final = 0.16 / 1.55
"""The share of Parquet's speed that an earlier pure-Python source reached: 70 MB/s over this benchmark's records."""


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
    table = rows_table("Spark", "", "processor s", "least", "million rows/s a core", "MB/s a core")
    for name, each in taken.items():
        speed = FILES * BATCHES * RECORDS / seconds[name] / 1e6
        megabytes = size / seconds[name] / 1e6
        table.add_row(name, f"{seconds[name]:.2f}", f"{min(each):.2f}", f"{speed:.2f}", f"{megabytes:.0f}")
    console.print(table)
    ratios = {what: _ratios(taken, *pair) for what, pair in _PAIRS.items()}
    ranges = rows_table("Spark: ratios within a round", "", "least", "median", "most")
    for what, each in ratios.items():
        ranges.add_row(what, *(f"{value:.2f}x" for value in (min(each), statistics.median(each), max(each))))
    console.print(ranges)
    ratio = {what: statistics.median(each) for what, each in ratios.items()}
    share = seconds[_PARQUET] / seconds[_LOG]
    figures = [
        Figure(_OVER_IDENTITY, ratio[_OVER_IDENTITY], target=1.15, at_most=True),
        Figure(_ONE_OVER_IDENTITY, ratio[_ONE_OVER_IDENTITY], at_most=True),
        Figure(_OVER_READY_MADE, ratio[_OVER_READY_MADE], at_most=True),
        Figure(_UDF_OVER_TO_KAFKA, ratio[_UDF_OVER_TO_KAFKA], target=8.0),
        Figure(_TO_KAFKA_OVER_IDENTITY, ratio[_TO_KAFKA_OVER_IDENTITY], at_most=True),
        Figure("kafka-log: share of Parquet's speed, over the prototype's", share / PROTOTYPE, target=4.0),
        Figure("kafka-log: share of Parquet's speed", 100 * share, unit="%"),
        Figure(_ALL_OVER_HEADERS, ratio[_ALL_OVER_HEADERS], target=5.0),
        Figure(_ALL_OVER_COUNTED, ratio[_ALL_OVER_COUNTED], target=5.0),
        Figure(_USUAL_OVER_COUNTED, ratio[_USUAL_OVER_COUNTED]),
        Figure(
            "kafka-log: bytes that the driver reads of a remote log for read_committed",
            100 * driver,
            unit="%",
            target=2.0,
            at_most=True,
        ),
        Figure("kafka-log: bytes read for the last 1 % by time", 100 * last / size, unit="%", target=3.0, at_most=True),
        Figure("kafka-log: a core reads", size / seconds[_LOG] / 1e6, unit="MB/s"),
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
    """Return the bytes read for the last 1 % of each partition, by time, including all indexes."""
    time = _START_MS + BATCHES * RECORDS * 99 // 100
    given = Options("kafka-log", {"path": str(directory), "startingTimestamp": str(time)})
    parts = (part for split in ReadPlan.of(given).splits() for part in split)
    return sum(part.size for part in parts) + sum(path.stat().st_size for path in directory.rglob("*index"))


def _read_by_driver(directory: Path) -> float:
    """Return the share of a running broker's log that planning a read of committed records fetches."""
    home = directory / "events-0"
    home.mkdir(parents=True)
    History(home, random.Random(1), size=1000).write(segments=10, steps=1000)
    counted = CountedFiles(fs.SubTreeFileSystem(str(directory), fs.LocalFileSystem()))
    given = Options("kafka-log", {"path": "s3://bucket/events-0", "isolation": "read_committed"})
    with patch.object(path_resolution, "filesystem_of", lambda *_: OpenedFilesystem(counted, "")):
        ReadPlan.of(given).splits()
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
    made |= _writing_cases(session, home)
    counts: dict[str, Callable[[], Any]] = {
        _COUNT: whole.count,
        _COUNT_USUAL: session.read.format("kafka-log").load(source).count,
        _HEADERS: headers.count,
        _COUNTED: partial(count_records, session, source),
    }
    return {name: _thrown_away(rows) for name, rows in made.items()} | counts


def _writing_cases(session: SparkSession, home: Path) -> dict[str, DataFrame]:
    """Return cases that encode messages of five fields; like all other cases, they read from Parquet."""
    place = str(home / "structs")
    values = session.read.parquet(str(home / "parquet")).where("value IS NOT NULL")
    values.select(from_kafka("value", "OffsetCommitValue", columns=_FIELDS, mode="FAILFAST").alias("m")).write.parquet(
        place
    )
    stored = session.read.parquet(place)
    by_row = udf(_encode_row, BinaryType(), useArrow=False)
    return {
        _TO_IDENTITY: stored.select(column_function(_same, stored.schema["m"].dataType)("m")),
        _TO_KAFKA: stored.select(to_kafka("m", "OffsetCommitValue", 3, prefix=True)),
        _TO_UDF: stored.select(by_row("m")),
    }


def _encode_row(row: Row) -> bytes:
    """Encode one message as a user without column support would do it."""
    return encode_versioned(OffsetCommitValue(**row.asDict()), 3)


@cache
def _structs(count: int) -> pa.StructArray:
    value = encode_versioned(OffsetCommitValue(offset=1, leader_epoch=1, commit_timestamp=1), 3)
    return decode(pa.array([value] * count, pa.binary()), OffsetCommitValue, None, _FIELDS, "FAILFAST")


def _ready_made(values: pa.Array) -> pa.Array:
    """Return structs of the decoded type without reading any value: the cost of passing them to Spark."""
    return _structs(len(values))


def _same(values: pa.Array) -> pa.Array:
    return values


def _thrown_away(rows: DataFrame) -> Callable[[], None]:
    return lambda: rows.write.format("noop").mode("overwrite").save()


def _ratios(taken: dict[str, list[float]], case: str, base: str) -> list[float]:
    return [ours / theirs for ours, theirs in zip(taken[case], taken[base], strict=True)]


def _taken(cases: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of every round except the first ones, which start workers and compile."""
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + WARM_UP):
        for name in list(cases)[:: 1 if number % 2 else -1]:
            start = tree_seconds()
            cases[name]()
            taken[name].append(tree_seconds() - start)
    return {name: each[WARM_UP:] for name, each in taken.items()}
