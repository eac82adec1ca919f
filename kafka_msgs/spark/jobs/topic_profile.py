"""The content of topics, per partition and hour: sizes, codecs, producers, transactions, order of times.

Owns the figures. Records are first added up to one row per batch, from which the other tables are made: a batch has one
producer, one codec, and at most one transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from kafka_msgs.report import Bars, Part, Report, Section, by_hour, report_of
from kafka_msgs.spark.jobs.job import Job, Step, Tables
from kafka_msgs.spark.jobs.report_rows import sizes_of_topics
from kafka_msgs.spark.jobs.rows import milliseconds, timed
from kafka_msgs.spark.jobs.transactions import NONE, marker_of, outcome_of
from kafka_msgs.spark.reporting import table_of, time_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["JOB", "topic_profile"]

_PARTITION: Final = ("topic", "partition")
_BATCH: Final = (*_PARTITION, "file", "batchPosition")
_OF_BATCH: Final = ("batchSize", "codec", "producerId", "transactional", "control")
"""What all rows of a batch have in common, beside the reason why it could not be read."""

_HOUR_MS: Final = 3_600_000
_TIMES: Final = ("firstTimestamp", "lastTimestamp", "hour")
_SHOWN_TOPICS: Final = 12
_SHOWN_LINES: Final = 6
_SHOWN_HOURS: Final = 24 * 31


def topic_profile(records: DataFrame) -> dict[str, DataFrame]:
    """Return the profile of topics, as lazy tables.

    ``records`` are rows of ``kafka-log``, read with ``control=true`` and ``isolation=read_uncommitted``.

    ``batches`` has one row per batch: the offset and time of its first record, sizes in bytes, the ``outcome`` of its
    transaction (``none`` without one), and how many records are ``outOfOrder``: earlier in time than the record before
    them in the partition. A batch that could not be read has a ``problem`` instead, and is listed in ``problems``.

    ``profile`` adds batches up per topic, partition and hour, each batch in the hour of its first record. ``hour`` and
    ``hourMs`` (milliseconds since the epoch) are null without a timestamp. ``transactions`` and ``abortedTransactions``
    count the markers that end them. ``contentBytes`` are those of keys, values and headers; ``ratio`` is how many of
    them are stored in a byte, framing included. A batch that compaction has emptied is not in the tables.
    """
    return JOB.tables({"records": records})


def _batches(tables: Tables) -> DataFrame:
    batches = _added_up(tables["records"])
    data = F.col("transactional") & ~F.col("control")
    outcome = F.when(data, outcome_of((*_PARTITION, "producerId"), "offset", "marker")).otherwise(NONE)
    before = F.lag("lastTimestampMs").over(Window.partitionBy(*_PARTITION, "control").orderBy("offset"))
    late = F.col("outOfOrder") + F.coalesce((F.col("firstTimestampMs") < before).cast("long"), F.lit(0))
    counted = F.when(F.col("control"), 0).otherwise(late)
    made = batches.withColumns({"outcome": outcome, "outOfOrder": counted, "hourMs": _hour()})
    times = {f"{name}Ms": timed(name) for name in _TIMES}
    return made.select(*(each for column in made.columns for each in times.get(column, (column,))))


def _added_up(records: DataFrame) -> DataFrame:
    """Add records up to batches; rows of one batch are brought together first, of records only what is counted."""
    sizes = {"keySize": F.length("key"), "valueSize": F.length("value"), "headersSize": _headers_size()}
    marker = F.when(F.col("control"), marker_of(F.col("key"))).alias("marker")
    counted = [F.coalesce(size, F.lit(0)).alias(name) for name, size in sizes.items()]
    nulls = F.col("key").isNull().alias("noKey"), F.col("value").isNull().alias("noValue")
    problem = F.col("_error").alias("problem")
    narrow = records.select(
        *_BATCH, "offset", milliseconds().alias("timestamp"), *_OF_BATCH, problem, marker, *counted, *nulls
    )
    before = F.lag("timestamp").over(Window.partitionBy(*_BATCH).orderBy("offset"))
    late = narrow.withColumn("late", F.col("timestamp") < before)
    return late.groupBy(*_BATCH).agg(
        *(F.first(name).alias(name) for name in (*_OF_BATCH, "problem", "marker")),
        F.min("offset").alias("offset"),
        F.max("offset").alias("lastOffset"),
        F.min_by("timestamp", "offset").alias("firstTimestampMs"),
        F.max_by("timestamp", "offset").alias("lastTimestampMs"),
        F.count("*").alias("records"),
        *(F.sum(name).alias(name) for name in sizes),
        F.max("keySize").alias("maxKeySize"),
        F.max("valueSize").alias("maxValueSize"),
        F.count_if("noKey").alias("withoutKey"),
        F.count_if("noValue").alias("tombstones"),
        F.count_if("late").alias("outOfOrder"),
    )


def _headers_size() -> Column:
    def size(header: Column) -> Column:
        return F.coalesce(F.octet_length(header["key"]), F.lit(0)) + F.coalesce(F.length(header["value"]), F.lit(0))

    return F.aggregate("headers", F.lit(0), lambda total, header: total + size(header))


def _hour() -> Column:
    first = F.col("firstTimestampMs")
    return F.when(first >= 0, F.floor(first / _HOUR_MS) * _HOUR_MS)


def _profile(tables: Tables) -> DataFrame:
    """Add batches up to hours; control batches count for bytes and transactions, and for nothing else."""
    data = ~F.col("control")

    def of_records(name: str) -> Column:
        return F.when(data, F.col(name))

    aborted = F.when(F.col("outcome") == "aborted", F.col("records"))
    records = F.sum(of_records("records"))
    content = F.sum(F.when(data, F.col("keySize") + F.col("valueSize") + F.col("headersSize")))
    return tables["batches"].where("problem IS NULL").groupBy(*_PARTITION, "hour", "hourMs").agg(
        F.coalesce(records, F.lit(0)).alias("records"),
        F.count_if(data).alias("batches"),
        F.sum("batchSize").alias("bytes"),
        F.coalesce(content, F.lit(0)).alias("contentBytes"),
        (content / F.sum(of_records("batchSize"))).alias("ratio"),
        F.sort_array(F.collect_set(of_records("codec"))).alias("codecs"),
        (F.sum(of_records("keySize")) / records).alias("meanKeySize"),
        F.max(of_records("maxKeySize")).alias("maxKeySize"),
        (F.sum(of_records("valueSize")) / records).alias("meanValueSize"),
        F.max(of_records("maxValueSize")).alias("maxValueSize"),
        F.coalesce(F.sum(of_records("withoutKey")), F.lit(0)).alias("withoutKey"),
        F.coalesce(F.sum(of_records("tombstones")), F.lit(0)).alias("tombstones"),
        F.count_distinct(F.when(data & (F.col("producerId") >= 0), F.col("producerId"))).alias("producers"),
        F.count_if(F.col("marker") == "committed").alias("transactions"),
        F.count_if(F.col("marker") == "aborted").alias("abortedTransactions"),
        F.coalesce(F.sum(aborted), F.lit(0)).alias("abortedRecords"),
        F.sum("outOfOrder").alias("outOfOrder"),
        F.min(of_records("offset")).alias("firstOffset"),
        F.max(of_records("lastOffset")).alias("lastOffset"),
    )  # fmt: skip


def _problems(tables: Tables) -> DataFrame:
    return tables["batches"].where("problem IS NOT NULL").select(*_BATCH, "problem")


def _report(tables: Tables) -> Report:
    profile, batches = tables["profile"], tables["batches"].where("problem IS NULL AND NOT control")
    summed = ("records", "batches", "bytes", "contentBytes", "tombstones")
    endings = ("transactions", "abortedTransactions", "abortedRecords", "outOfOrder")
    topics = profile.groupBy("topic").agg(
        F.count_distinct("partition").alias("partitions"),
        *(F.sum(name).alias(name) for name in (*summed, *endings)),
    )
    by_size = topics.orderBy(F.col("bytes").desc(), "topic")
    codecs = batches.groupBy("topic", "codec").agg(
        F.sum("records").alias("records"),
        F.sum("batchSize").alias("bytes"),
        (F.sum(F.col("keySize") + F.col("valueSize") + F.col("headersSize")) / F.sum("batchSize")).alias("ratio"),
    )  # fmt: skip
    largest = profile.orderBy(F.col("bytes").desc(), *_PARTITION, "hourMs")
    sections: list[Section | Part] = [
        table_of(by_size, "Topics"),
        *_size_plot(by_size),
        *_hours_plot(profile),
        *sizes_of_topics(tables),
        table_of(codecs.orderBy("topic", "codec"), "Codecs"),
        table_of(
            largest.withColumn("hour", time_of("hourMs")).drop("hourMs"), "Partitions and hours, the largest first"
        ),
        table_of(tables["problems"], "Problems"),
    ]
    return report_of("What is in topics", sections)


def _size_plot(by_size: DataFrame) -> list[Section]:
    rows = by_size.take(_SHOWN_TOPICS)
    series = {"stored": [row["bytes"] for row in rows], "content": [row["contentBytes"] for row in rows]}
    labels = [row["topic"] for row in rows]
    note = f"the {_SHOWN_TOPICS} largest topics" if len(rows) == _SHOWN_TOPICS else ""
    plot = Bars(title="Bytes of each topic", file="bytes.svg", labels=labels, series=series, unit="bytes", note=note)
    return [plot] if rows else []


def _hours_plot(profile: DataFrame) -> list[Section]:
    """Records an hour of the topics that have most; the latest hours only, so that the plot stays small."""
    known = profile.where("hourMs IS NOT NULL")
    most = known.groupBy("topic").agg(F.sum("records").alias("sum")).orderBy(F.col("sum").desc(), "topic")
    names = [row["topic"] for row in most.take(_SHOWN_LINES)]
    records = [F.when(F.col("topic") == name, F.col("records")) for name in names]
    sums = [F.coalesce(F.sum(each), F.lit(0)).alias(f"n{at}") for at, each in enumerate(records)]
    if not names:
        return []
    rows = known.groupBy("hourMs").agg(*sums).orderBy(F.col("hourMs").desc()).take(_SHOWN_HOURS)
    return [by_hour("Records an hour", "records.svg", "records an hour", names, {row[0]: row[1:] for row in rows})]


JOB: Final = Job(
    name="topic-profile",
    summary="Per topic, partition and hour: records, bytes, codecs, sizes, producers, transactions, order of times.",
    steps=(
        Step("batches", _batches, partition_by=("topic",), time="hour"),
        Step("profile", _profile, partition_by=("topic",), time="hour"),
        Step("problems", _problems),
    ),
    report=_report,
)
