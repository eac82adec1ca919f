"""Client traffic per API and version: counts, latencies, sizes and errors.

Spark tasks run the reducer of ``kafka_msgs.analysis.capture_stats`` over the rows of captures. One task merges their
states, which have one number per exchange.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812

from kafka_msgs.analysis.capture_report import captures_report
from kafka_msgs.analysis.capture_stats import COLUMNS, PROBLEM_COLUMNS, QUANTILES, TABLES, UNDECODED, CaptureStats
from kafka_msgs.report import Report
from kafka_msgs.spark.jobs.job import DataFrameJob, Tables, TableStep
from kafka_msgs.spark.spark_types import spark_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["COLUMNS", "JOB", "capture_report", "exchanges_frame"]

_TYPES: Final = {
    **dict.fromkeys(("api", "name", "clientId", "software"), pa.string()),
    **dict.fromkeys(("apiKey", "version", "code", "maxRequestSize", "maxResponseSize"), pa.int32()),
    **dict.fromkeys(QUANTILES, pa.float64()),
}
"""The types of columns other than counts."""
_SCHEMAS: Final = {
    table: pa.schema([(name, _TYPES.get(name, pa.int64())) for name in names]) for table, names in TABLES.items()
}


def exchanges_frame(spark: SparkSession, paths: Sequence[str], options: Mapping[str, str]) -> DataFrame:
    """Return the rows of ``kafka-capture`` that the job needs."""
    source = spark.read.format("kafka-capture").options(columns=",".join(COLUMNS), **options)
    return source.load(list(paths))


def capture_report(exchanges: DataFrame) -> dict[str, DataFrame]:
    """Return the statistics of captures, as lazy tables.

    ``exchanges`` are rows of ``kafka-capture``, with at least ``COLUMNS``.

    ``summary`` has one row per API and version: the number of ``exchanges``, and of ``answered`` ones; the exact
    latency quantiles in microseconds, ``p50Us``, ``p90Us`` and ``p99Us``, and ``maxUs``; the total and largest
    ``requestBytes`` and ``responseBytes``; the number of exchanges with ``problems``, and with ``errors`` other than 0
    in their responses; and the number of ``clients``. ``errors`` counts error codes per API and version. ``clients``
    counts the exchanges per client id. ``slowClients`` lists, per client id and software, latency quantiles (excluding
    requests that wait on purpose), throttle times and errors. ``seconds`` counts the requests in each second
    (``second``, and ``secondMs`` in milliseconds since the epoch).
    ``problems`` has one row for each item that is not an exchange or could not be decoded, with its size in bytes.
    ``states`` has the state of each task, from which the other tables are computed.
    """
    return JOB.tables({"exchanges": exchanges})


def _facts(tables: Tables) -> DataFrame:
    """Return the rows of exchanges and faults, so that captures are read only once."""
    return tables["exchanges"].select(*COLUMNS)


def _states(tables: Tables) -> DataFrame:
    """Return the state of each task, so that the rows are reduced only once."""
    return tables["facts"].mapInArrow(_reduce, "checkpoint string")


def _reduce(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    stats = CaptureStats()
    for batch in batches:
        for row in batch.to_pylist():
            stats.add(row)
    yield pa.RecordBatch.from_pydict({"checkpoint": [stats.checkpoint()]})


def _from_states(function: Callable[[CaptureStats], pa.RecordBatch], schema: Any) -> Callable[[Tables], DataFrame]:
    """Return the function that builds a table from the merged states, in one task."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        states = (CaptureStats.from_checkpoint(text) for batch in batches for text in batch["checkpoint"].to_pylist())
        yield function(reduce(CaptureStats.merge, states, CaptureStats()))

    return lambda tables: tables["states"].coalesce(1).mapInArrow(work, schema)


def _table(name: str) -> Callable[[Tables], DataFrame]:
    schema = _SCHEMAS[name]

    def rows(stats: CaptureStats) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(stats.table(name), schema=schema)

    return _from_states(rows, spark_type(pa.struct(list(schema))))


def _seconds(tables: Tables) -> DataFrame:
    counted = _table("seconds")(tables)
    return counted.select(F.timestamp_millis("secondMs").alias("second"), *_SCHEMAS["seconds"].names)


def _problems(tables: Tables) -> DataFrame:
    return (
        tables["facts"]
        .where("_error IS NOT NULL OR problem IS NOT NULL")
        .withColumns(
            {
                "kind": F.coalesce("_errorKind", F.lit(UNDECODED)),
                "bytes": F.coalesce("_errorBytes", F.col("requestSize") + F.coalesce("responseSize", F.lit(0))),
                "problem": F.coalesce("_error", "problem"),
            }
        )
        .select(*PROBLEM_COLUMNS)
    )


def _report(tables: Tables) -> Report:
    (row,) = _from_states(_pickled_report, "report binary")(tables).collect()
    report: Report = pickle.loads(row["report"])
    return report


def _pickled_report(stats: CaptureStats) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"report": pa.array([pickle.dumps(captures_report(stats.finish()))], pa.binary())}
    )


JOB: Final = DataFrameJob(
    name="capture-report",
    summary="Per api and version of captured traffic: counts, latency quantiles, sizes, error codes, clients.",
    steps=(
        TableStep("facts", _facts),
        TableStep("states", _states),
        *(TableStep(name, _table(name)) for name in TABLES if name != "seconds"),
        TableStep("seconds", _seconds),
        TableStep("problems", _problems),
    ),
    report=_report,
)
