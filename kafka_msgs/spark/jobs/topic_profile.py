"""Topic statistics per partition and hour, as lazy tables over a DataFrame of records.

Records are first aggregated to one row per batch, from which the other tables are built: a batch has one producer, one
codec, and at most one transaction. The job ``topic-profile`` produces the same statistics without passing rows through
the JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812

from kafka_msgs.spark.jobs.job import Tables
from kafka_msgs.spark.jobs.offsets_topic_rows import milliseconds, timed
from kafka_msgs.spark.jobs.transaction_outcomes import NONE, marker_of, outcome_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["topic_profile"]

_PARTITION: Final = ("topic", "partition")
_BATCH: Final = (*_PARTITION, "file", "batchPosition")
_OF_BATCH: Final = ("batchSize", "codec", "producerId", "transactional", "control")
"""The columns that all rows of a batch share, in addition to the reason why it could not be read."""

_HOUR_MS: Final = 3_600_000
_TIMES: Final = ("firstTimestamp", "lastTimestamp", "hour")


def topic_profile(records: DataFrame) -> dict[str, DataFrame]:
    """Return the profile of topics, as lazy tables.

    ``records`` are rows of ``kafka-log``, read with ``control=true`` and ``isolation=read_uncommitted``.

    ``batches`` has one row per batch: the offset and time of its first record, sizes in bytes, the ``outcome`` of its
    transaction (``none`` without one), and the number of ``outOfOrder`` records, which are older than the previous
    record in the partition. An unreadable batch has a ``problem`` instead, and is listed in ``problems``.

    ``profile`` aggregates batches per topic, partition and hour, each batch in the hour of its first record. ``hour``
    and ``hourMs`` (milliseconds since the epoch) are null without a timestamp. ``transactions`` and
    ``abortedTransactions`` count the commit and abort markers. ``contentBytes`` is the size of keys, values and
    headers; ``ratio`` is the number of content bytes per stored byte, including framing. Batches emptied by compaction
    are not in the tables.
    """
    known = {"records": records}
    for name, build in _TABLES.items():
        known[name] = build(known)
    return {name: known[name] for name in _TABLES}


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
    """Aggregate records to batches. Rows of a batch are first grouped, with only the columns that are aggregated."""
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
    """Aggregate batches to hours. Control batches count only for bytes and transactions."""
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


_TABLES: Final[Mapping[str, Callable[[Tables], DataFrame]]] = {
    "batches": _batches,
    "profile": _profile,
    "problems": _problems,
}
"""The tables, each built from the inputs and earlier tables."""
