"""Differential fuzzing: all executors process random messages and damaged bytes, and must agree.

Contains the comparisons, and the data to reproduce a difference: the seed and the bytes. ``kafka_msgs.testing``
generates the values, and ``kafka_msgs.codec`` provides the executors. The reference executor defines the correct
result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from kafka_msgs.catalog import iter_message_classes, message_by_name
from kafka_msgs.codec import DEFAULT_OPTIONS
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.error_explanation import Executor
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.report import Report, Section, Table
from kafka_msgs.spark.jobs.job import DataFrameJob, Tables, TableStep
from kafka_msgs.spark.spark_types import arrow_schema
from kafka_msgs.testing.random_values import random_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["JOB", "damage", "fuzz_units", "wire_compat"]

_RIGHT: Final = "reference"
_DAMAGED: Final = 4
"""The number of damaged variants per message."""
_ROWS: Final = 50
_LENGTH: Final = 160
"""The number of rows that the report shows of a table, and of characters of a text."""
_BYTES: Final = (0x00, 0x01, 0x7F, 0x80, 0xFF)
_TEXT: Final = StringType()
_DIFFERENCE: Final = StructType(
    [StructField(name, _TEXT) for name in ("backend", "action", "input", "expected", "found")]
)
_RUN: Final = (
    StructType().add("message", _TEXT).add("version", IntegerType()).add("seed", LongType())
    .add("backends", ArrayType(_TEXT)).add("checks", IntegerType()).add("differences", ArrayType(_DIFFERENCE))
)  # fmt: skip


def fuzz_units(
    spark: SparkSession, seeds: range, messages: Iterable[str] | None = None, *, slices: int | None = None
) -> DataFrame:
    """Return the units for ``wire_compat``: each seed with each version of each message, by default of all messages.

    ``slices`` is the number of tasks that share the work. Raises ``UnknownNameError``.
    """
    classes = iter_message_classes() if messages is None else map(message_by_name, messages)
    pairs = [(cls.INFO.name, version) for cls in classes for version in cls.INFO.versions]
    wanted = spark.createDataFrame(pairs, "message string, version int")
    numbers = spark.range(seeds.start, seeds.stop, seeds.step, slices).withColumnRenamed("id", "seed")
    return numbers.crossJoin(F.broadcast(wanted)).select("message", "version", "seed")


def wire_compat(units: DataFrame, executors: Mapping[str, Executor] | None = None) -> dict[str, DataFrame]:
    """Compare executors on random messages, and return the results as lazy tables. Equal seeds give equal results.

    ``units`` is the result of ``fuzz_units``. ``executors``, by name, are compared with the reference. By default these
    are all executors available on the worker.

    ``runs`` has one row per unit: each executor encodes a random message, and decodes its bytes and damaged variants of
    them. ``checks`` counts the comparisons. ``mismatches`` has one row per difference, with the data to reproduce it:
    the seed, and as ``input`` the bytes in hexadecimal or the value that could not be encoded.
    """
    return _job(executors).tables({"units": units})


def _job(executors: Mapping[str, Executor] | None = None) -> DataFrameJob:
    def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        against = {name: each for name, each in (executors or EXECUTORS).items() if name != _RIGHT}
        for batch in batches:
            rows = [_run(**unit, executors=against) for unit in batch.to_pylist()]
            yield pa.RecordBatch.from_pylist(rows, schema=arrow_schema(_RUN))

    return DataFrameJob(
        name="wire-compat",
        summary="Differential fuzzing: random messages and damaged bytes through every executor, which must agree.",
        steps=(
            TableStep("runs", lambda tables: tables["units"].mapInArrow(compare, _RUN)),
            TableStep("mismatches", _mismatches),
        ),
        report=_report,
    )


def _run(message: str, version: int, seed: int, executors: Mapping[str, Executor]) -> dict[str, Any]:
    cls, rng = message_by_name(message), Random(f"{seed} {message} {version}")
    plan = compile_plan(cls, version)
    right = Codec[Any](plan, DEFAULT_OPTIONS, EXECUTORS[_RIGHT])
    value = random_message(cls, version, rng)
    data = right.encode(value)
    inputs = [data, *(damage(data, rng) for _ in range(_DAMAGED))]
    found = []
    for name, executor in executors.items():
        codec = Codec[Any](plan, DEFAULT_OPTIONS, executor)
        found += _difference(name, "encode", repr(value), right.encode, codec.encode, value)
        for each in inputs:
            found += _difference(name, "decode", each.hex(), right.decode, codec.decode, each)
    return {
        "message": message,
        "version": version,
        "seed": seed,
        "backends": list(executors),
        "checks": len(executors) * (1 + len(inputs)),
        "differences": found,
    }


def _difference(
    backend: str, action: str, shown: str, right: Callable[[Any], Any], other: Callable[[Any], Any], given: Any
) -> list[dict[str, str]]:
    """Return the differing results of two functions for the same input as one row, or no row if they agree."""
    expected, found = _outcome(right, given), _outcome(other, given)
    if expected == found:
        return []
    return [{"backend": backend, "action": action, "input": shown, "expected": expected, "found": found}]


def _outcome(work: Callable[[Any], Any], given: Any) -> str:
    """Return a text that is equal if results or errors are equal; every failure of an executor counts."""
    try:
        result = work(given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return result.hex() if isinstance(result, bytes) else repr(result)


def damage(data: bytes, rng: Random) -> bytes:
    """Return the bytes truncated, or with one byte changed or inserted, often at lengths and counts."""
    at = rng.randrange(len(data) + 1)
    change = rng.randrange(3)
    if change == 0:
        return data[:at]
    return data[:at] + bytes([rng.choice(_BYTES)]) + data[at + (change == 1) :]


def _report_table(rows: DataFrame, title: str) -> Table:
    """Return a table of the first rows of a DataFrame and the total row count; runs two Spark jobs."""
    total = rows.count()
    shown = tuple(tuple(map(_shortened, row)) for row in rows.take(_ROWS))
    note = f"{len(shown):,} of {total:,} rows" if total > len(shown) else ""
    return Table(title, tuple(rows.columns), shown, note)


def _shortened(cell: Any) -> Any:
    """Return a cell without the end of a long text. The Parquet table contains the full text."""
    return f"{cell[:_LENGTH]}..." if isinstance(cell, str) and len(cell) > _LENGTH else cell


def _mismatches(tables: Tables) -> DataFrame:
    each = tables["runs"].select("message", "version", "seed", F.explode("differences").alias("each"))
    return each.select("message", "version", "seed", "each.*")


def _report(tables: Tables) -> Report:
    runs, mismatches = tables["runs"], tables["mismatches"]
    counts = runs.agg(
        F.count_distinct("message").alias("messages"),
        F.count_distinct("message", "version").alias("versions"),
        F.count_distinct("seed").alias("seeds"),
        F.sum("checks").alias("checks"),
        F.sum(F.size("differences")).alias("mismatches"),
    )
    backends = runs.select(F.explode("backends").alias("backend")).groupBy("backend").agg(F.count("*").alias("runs"))
    by_place = mismatches.groupBy("backend", "action", "message").agg(F.count("*").alias("mismatches"))
    sections: list[Section] = [
        _report_table(counts, "What was compared"),
        _report_table(backends.orderBy("backend"), "Compared with the reference"),
        _report_table(
            by_place.orderBy(F.col("mismatches").desc(), "backend", "action", "message"), "Mismatches by message"
        ),
        _report_table(mismatches.orderBy("message", "version", "seed", "backend"), "Mismatches"),
    ]
    return Report("Executors compared with the reference", tuple(sections))


JOB: Final = _job()
