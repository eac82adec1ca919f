"""Client traffic per API and version: counts, latencies, sizes and errors.

Computes the statistics, which are the same as in ``kafka_msgs.capture.summary``, for captures of any size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812

from kafka_msgs.analysis.capture_clients import highest_versions
from kafka_msgs.capture.summary import QUANTILES
from kafka_msgs.report import BarPlot, LinePlot, Report, ReportPart, Section, report_of
from kafka_msgs.report.sections.clients import WAITING, client_part
from kafka_msgs.spark.jobs.job import DataFrameJob, Tables, TableStep
from kafka_msgs.spark.report_tables import report_table, rows_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

__all__ = ["COLUMNS", "JOB", "capture_report", "exchanges_frame"]

COLUMNS: Final = (
    "file",
    "connection",
    "clientHost",
    "clientPort",
    "serverHost",
    "serverPort",
    "apiKey",
    "api",
    "version",
    "clientId",
    "requestAt",
    "latencyUs",
    "requestSize",
    "responseSize",
    "errors",
    "throttleMs",
    "clientSoftware",
    "problem",
    "_error",
    "_errorKind",
    "_errorBytes",
)
"""The columns of ``kafka-capture`` that the job needs, without the bodies."""

_API: Final = ("apiKey", "api", "version")
_CONNECTION: Final = ("file", "connection")
_SLOWEST: Final = ("clientId", "clientHost", "api", "version", "latencyUs", "requestSize", "responseSize")
_LATENCIES: Final = {f"p{share * 100:g}Us": share for share in QUANTILES}
_MICROS: Final = 1_000_000
_MILLIS: Final = 1000
_FEWEST: Final = 10
_SHOWN_APIS: Final = 12
_SHOWN_LINES: Final = 6
_SHOWN_TIMES: Final = 300
_SHOWN_EXCHANGES: Final = 30


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
    """
    return JOB.tables({"exchanges": exchanges})


def _facts(tables: Tables) -> DataFrame:
    """Return the rows of exchanges and faults, so that captures are read only once."""
    return tables["exchanges"].select(*COLUMNS)


def _exchanges(tables: Tables) -> DataFrame:
    return tables["facts"].where("_error IS NULL")


def _summary(tables: Tables) -> DataFrame:
    return _exchanges(tables).groupBy(*_API).agg(
        F.count("*").alias("exchanges"),
        F.count("latencyUs").alias("answered"),
        *(F.percentile("latencyUs", F.lit(share)).alias(name) for name, share in _LATENCIES.items()),
        F.max("latencyUs").alias("maxUs"),
        _sum("requestSize").alias("requestBytes"),
        _sum("responseSize").alias("responseBytes"),
        F.max("requestSize").alias("maxRequestSize"),
        F.max("responseSize").alias("maxResponseSize"),
        F.count("problem").alias("problems"),
        F.sum(F.size("errors")).alias("errors"),
        F.count_distinct("clientId").alias("clients"),
    )  # fmt: skip


def _sum(name: str) -> Column:
    return F.coalesce(F.sum(name), F.lit(0))


def _errors(tables: Tables) -> DataFrame:
    each = (
        _exchanges(tables).select(*_API, F.explode("errors").alias("error")).select(*_API, "error.code", "error.name")
    )
    return each.groupBy(*_API, "code", "name").agg(F.count("*").alias("count"))


def _clients(tables: Tables) -> DataFrame:
    return _exchanges(tables).groupBy("clientId", *_API).agg(
        F.count("*").alias("exchanges"),
        F.count_distinct("clientHost").alias("hosts"),
        F.max("latencyUs").alias("maxUs"),
        _sum("requestSize").alias("requestBytes"),
        _sum("responseSize").alias("responseBytes"),
    )  # fmt: skip


def _slow_clients(tables: Tables) -> DataFrame:
    """Return the statistics per client id and software. The software of a connection is the one that it sent."""
    exchanges = _exchanges(tables)
    named = exchanges.where("clientSoftware IS NOT NULL").groupBy(*_CONNECTION).agg(
        F.min("clientSoftware").alias("software")
    )  # fmt: skip
    prompt = F.when(~F.coalesce(F.col("api").isin(*WAITING), F.lit(False)), F.col("latencyUs"))
    return exchanges.join(named, [*_CONNECTION], "left").groupBy("clientId", "software").agg(
        F.count_distinct("clientHost").alias("hosts"),
        F.count_distinct(*_CONNECTION).alias("connections"),
        F.count("*").alias("exchanges"),
        F.count("latencyUs").alias("answered"),
        F.count(prompt).alias("measured"),
        *(F.percentile(prompt, F.lit(share)).alias(name) for name, share in _LATENCIES.items()),
        F.max(prompt).alias("maxUs"),
        F.count_if(F.col("throttleMs") > 0).alias("throttled"),
        _sum("throttleMs").alias("throttleMs"),
        F.sum(F.size("errors")).alias("errors"),
        F.count("problem").alias("problems"),
    )  # fmt: skip


def _slowest(tables: Tables) -> DataFrame:
    prompt = _exchanges(tables).where(F.col("latencyUs").isNotNull() & ~F.col("api").isin(*WAITING))
    known = prompt.select(*_SLOWEST, F.unix_micros("requestAt").alias("requestAtUs"))
    return known.orderBy(F.col("latencyUs").desc(), "requestAtUs", *_SLOWEST)


def _seconds(tables: Tables) -> DataFrame:
    second = (F.floor(F.unix_micros("requestAt") / _MICROS) * _MILLIS).alias("secondMs")
    counted = _exchanges(tables).groupBy(second, "api").agg(
        F.count("*").alias("exchanges"), F.max("latencyUs").alias("maxUs")
    )  # fmt: skip
    return counted.select(F.timestamp_millis("secondMs").alias("second"), "secondMs", "api", "exchanges", "maxUs")


def _problems(tables: Tables) -> DataFrame:
    place = ("file", "connection", "clientHost", "clientPort", "serverHost", "serverPort")
    return tables["facts"].where("_error IS NOT NULL OR problem IS NOT NULL").select(
        *place,
        *_API,
        F.coalesce("_errorKind", F.lit("undecoded")).alias("kind"),
        F.coalesce("_errorBytes", F.col("requestSize") + F.coalesce("responseSize", F.lit(0))).alias("bytes"),
        F.coalesce("_error", "problem").alias("problem"),
    )  # fmt: skip


def _report(tables: Tables) -> Report:
    summary = _with_sound_quantiles(tables["summary"]).orderBy(F.col("exchanges").desc(), *_API)
    problems = tables["problems"].groupBy("kind").agg(F.count("*").alias("count"), F.sum("bytes").alias("bytes"))
    sections: list[Section | ReportPart] = [
        report_table(
            summary, "Apis and versions; times in microseconds, quantiles of ten answers or more (p99: a hundred)"
        ),
        *_latency_plot(summary),
        *_time_plot(tables["seconds"]),
        report_table(tables["errors"].orderBy(F.col("count").desc(), *_API, "code"), "Error codes in responses"),
        _clients_part(tables),
        report_table(
            problems.orderBy("kind"), "Bytes that are not an exchange, and exchanges that could not be decoded"
        ),
        report_table(tables["problems"].orderBy("file", "connection"), "Problems"),
    ]
    return report_of("What clients asked brokers", sections)


def _clients_part(tables: Tables) -> ReportPart:
    versions = tables["clients"].where("api IS NOT NULL").select("clientId", "api", "version").distinct()
    return client_part(
        rows_of(tables["slowClients"].orderBy(F.col("maxUs").desc_nulls_last(), "clientId", "software")),
        rows_of(versions.orderBy("clientId", "api", "version")),
        rows_of(_slowest(tables), _SHOWN_EXCHANGES),
        highest_versions(),
    )


def _latency_plot(summary: DataFrame) -> list[Section]:
    rows = summary.where("answered > 0").take(_SHOWN_APIS)
    series = {name.removesuffix("Us"): [_shown_latency(row[name]) for row in rows] for name in (*_LATENCIES, "maxUs")}
    labels = [f"{row['api'] or row['apiKey']} v{row['version']}" for row in rows]
    note = f"the {_SHOWN_APIS} that were called most" if len(rows) == _SHOWN_APIS else ""
    bars = BarPlot(
        title="Latency",
        file="latency.svg",
        labels=labels,
        series=series,
        unit="latency in microseconds",
        log=True,
        note=note,
    )
    return [bars] if rows else []


def _shown_latency(micros: float | None) -> float | None:
    """Return a latency of at least a microsecond: a logarithmic axis has no 0."""
    return None if micros is None else max(micros, 1)


def _enough(share: float) -> int:
    """Return how many responses a quantile needs to be shown: at least one beyond it, and at least ten in total."""
    return max(_FEWEST, round(1 / (1 - share)))


def _with_sound_quantiles(summary: DataFrame) -> DataFrame:
    shown = {name: F.when(F.col("answered") >= _enough(share), F.col(name)) for name, share in _LATENCIES.items()}
    return summary.withColumns(shown)


def _time_plot(seconds: DataFrame) -> list[Section]:
    """Return a plot of exchanges over time for the most called APIs, with a bounded number of points."""
    ends: Any = seconds.agg(F.min("secondMs").alias("first"), F.max("secondMs").alias("last")).first()
    most = seconds.groupBy("api").agg(F.sum("exchanges").alias("sum")).where("api IS NOT NULL")
    names = [row["api"] for row in most.orderBy(F.col("sum").desc(), "api").take(_SHOWN_LINES)]
    if not names:
        return []
    step = _MILLIS * (1 + (ends["last"] - ends["first"]) // (_SHOWN_TIMES * _MILLIS))
    sums = [_sum_of(name).alias(f"n{place}") for place, name in enumerate(names)]
    time = (F.floor((F.col("secondMs") - ends["first"]) / step) * step + ends["first"]).alias("time")
    rows = {row["time"]: row for row in seconds.groupBy(time).agg(*sums).take(_SHOWN_TIMES + 1)}
    times = range(ends["first"], ends["last"] + 1, step)
    series = {
        name: [rows[each][f"n{place}"] or 0 if each in rows else 0 for each in times]
        for place, name in enumerate(names)
    }
    unit = f"exchanges in {step // _MILLIS} s"
    return [LinePlot(title="Exchanges over time", file="exchanges.svg", x=list(times), series=series, unit=unit)]


def _sum_of(name: str) -> Column:
    return F.sum(F.when(F.col("api") == name, F.col("exchanges")))


JOB: Final = DataFrameJob(
    name="capture-report",
    summary="Per api and version of captured traffic: counts, latency quantiles, sizes, error codes, clients.",
    steps=(
        TableStep("facts", _facts),
        TableStep("summary", _summary),
        TableStep("errors", _errors),
        TableStep("clients", _clients),
        TableStep("slowClients", _slow_clients),
        TableStep("seconds", _seconds),
        TableStep("problems", _problems),
    ),
    report=_report,
)
