"""A small digest table of a log directory, computed by Spark, by ``kafka_msgs.log``, and by Kafka's own classes.

A row covers one file and compression and holds thirteen sums over the records, including the end markers of
transactions: the number of all records, of control records, of transactional records, and of records without a key or
without a value; sums of offsets, times of day, producer ids, and bytes of keys and values; and checksums of headers,
keys and values. Each checksum of a key or value is multiplied by a number derived from the offset, so a value at the
wrong record changes the sum.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias
from zlib import crc32

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from kafka_msgs.log.file_scan import read_log
from kafka_msgs.log.log_directory import LogDirectory
from kafka_msgs.records import CompressionType, Record, RecordBatch
from tests.recorders.broker import java_command

__all__ = ["COLUMNS", "Digests", "by_kafka", "by_library", "by_spark", "digests_of", "records_in"]

Digests: TypeAlias = dict[tuple[str, str], tuple[int, ...]]
"""Sums by file (``orders-0/00000000000000000000.log``) and compression name."""

_DAY_MS: Final = 86_400_000
COLUMNS: Final = "file,codec,offset,timestampMs,producerId,control,transactional,key,value,headers"
"""Columns of ``kafka-log`` that the sums use."""
_PROGRAM: Final = Path(__file__).parent / "FileDigests.java"
_SECONDS: Final = 1800


def records_in(digests: Digests) -> int:
    """Return the number of records in the files."""
    return sum(sums[0] for sums in digests.values())


def by_spark(spark: SparkSession, directory: Path, **options: object) -> Digests:
    """Return the table computed from the data source ``kafka-log`` with ``options``."""
    given = {"control": "true", "columns": COLUMNS, **{name: str(value) for name, value in options.items()}}
    rows = spark.read.format("kafka-log").options(**given).load(str(directory))
    return digests_of(rows)


def digests_of(rows: DataFrame) -> Digests:
    """Return the table for rows of ``kafka-log`` with the columns ``COLUMNS``."""
    sums = [sf.sum(each).alias(f"sum{number}") for number, each in enumerate(_spark_numbers())]
    found = rows.groupBy("file", "codec").agg(*sums).collect()
    return {(_short(row[0]), row[1]): tuple(int(each) for each in row[2:]) for row in found}


def _spark_numbers() -> Iterator[Column]:
    offset = sf.col("offset")
    yield sf.lit(1)
    for name in ("control", "transactional"):
        yield sf.col(name).cast("int")
    yield from (offset, sf.col("timestampMs") % _DAY_MS, sf.col("producerId"))
    for name in ("key", "value"):
        yield sf.col(name).isNull().cast("int")
    for name in ("key", "value"):
        yield sf.coalesce(sf.length(name), sf.lit(0))
    for name, modulus in (("key", 61), ("value", 59)):
        yield sf.coalesce(sf.crc32(name) * (offset % modulus + 1), sf.lit(0))
    yield sf.crc32(sf.array_join(sf.transform("headers", _header), ","))


def _header(header: Column) -> Column:
    return sf.concat(header["key"], sf.lit("="), sf.coalesce(sf.hex(header["value"]), sf.lit("null")))


def by_library(directory: Path, *, progress: Callable[[Path], object] = lambda path: None) -> Digests:
    """Return the table computed by ``kafka_msgs.log`` in two processes."""
    digests: Digests = {}
    paths = _files(directory)
    with ProcessPoolExecutor(2) as pool:
        for path, found in zip(paths, pool.map(_file, paths), strict=True):
            progress(path)
            digests |= found
    return digests


def _files(directory: Path) -> list[Path]:
    return [segment.path for each in LogDirectory(directory).partitions for segment in each.segments]


def _file(path: Path) -> Digests:
    sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0] * 13)
    for batch in read_log(path):
        assert isinstance(batch, RecordBatch)
        into = sums[_short(str(path)), CompressionType(batch.codec).name.lower()]
        for record in batch:
            for number, value in enumerate(_numbers(batch, record)):
                into[number] += value
    return {place: tuple(values) for place, values in sums.items()}


def _numbers(batch: RecordBatch, record: Record) -> tuple[int, ...]:
    key, value, offset = record.key, record.value, record.offset
    return (
        1,
        batch.is_control,
        batch.is_transactional,
        offset,
        record.timestamp % _DAY_MS,
        batch.producer_id,
        key is None,
        value is None,
        0 if key is None else len(key),
        0 if value is None else len(value),
        0 if key is None else crc32(key) * (offset % 61 + 1),
        0 if value is None else crc32(value) * (offset % 59 + 1),
        crc32(_text(record).encode()) if record.headers else 0,
    )


def _text(record: Record) -> str:
    return ",".join(
        f"{name}={'null' if content is None else bytes(content).hex().upper()}" for name, content in record.headers
    )


def by_kafka(directory: Path) -> Digests:
    """Return the table computed by Kafka's own classes; requires Java and Maven."""
    files = [str(path) for path in _files(directory)]
    command = java_command(str(_PROGRAM), files, heap_mb=512)
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_SECONDS).stdout
    return dict(_parsed(said.splitlines()))


def _parsed(lines: Iterable[str]) -> Iterator[tuple[tuple[str, str], tuple[int, ...]]]:
    for line in lines:
        name, codec, *sums = line.split("\t")
        yield (_short(name), codec), tuple(map(int, sums))


def _short(path: str) -> str:
    return "/".join(path.split("/")[-2:])
