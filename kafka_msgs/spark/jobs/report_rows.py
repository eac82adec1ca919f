"""The rows that parts of reports are made of, out of the tables of jobs.

Owns how many rows of a table are fetched for a part. What follows from them is left to ``kafka_msgs.report.sections``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import functions as F  # noqa: N812

from kafka_msgs.offline.times import newest_of
from kafka_msgs.report import Part
from kafka_msgs.report.sections.retention import retention_part
from kafka_msgs.report.sections.skew import broker_part, partition_part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["rows_of", "sizes_of_topics"]

_SERIES: Final = 10_000
"""How many rows are fetched for a part of a report: the first ones in the order that matters."""

Tables: TypeAlias = "Mapping[str, DataFrame]"


def rows_of(frame: DataFrame, limit: int = _SERIES) -> list[dict[str, Any]]:
    """Return the first rows of a DataFrame; runs a Spark job."""
    return [row.asDict(recursive=True) for row in frame.take(limit)]


def sizes_of_topics(tables: Tables) -> list[Part]:
    """Return size, retention and skew for the tables ``batches`` and ``profile``.

    ``placements`` and ``configs``, where they are among the inputs, are what the metadata log says.
    """
    place = ("topic", "partition")
    sums = [F.sum(name).alias(name) for name in ("bytes", "records")]
    partitions = rows_of(tables["profile"].groupBy(*place).agg(*sums).orderBy(F.col("bytes").desc(), *place))
    segments = rows_of(_segments(tables["batches"]).orderBy(F.col("bytes").desc(), *place, "segment"))
    as_of = newest_of(row["newestMs"] for row in segments)
    return [
        retention_part(segments, _configs(tables), as_of),
        partition_part(partitions),
        broker_part(partitions, _placements(tables)),
    ]


def _segments(batches: DataFrame) -> DataFrame:
    name = F.element_at(F.split("file", "/"), -1).alias("segment")
    first, last = (F.when(F.col(each) >= 0, F.col(each)) for each in ("firstTimestampMs", "lastTimestampMs"))
    return batches.where("problem IS NULL").groupBy("topic", "partition", name).agg(
        F.sum("batchSize").alias("bytes"),
        F.min(F.least(first, last)).alias("oldestMs"),
        F.max(F.greatest(first, last)).alias("newestMs"),
    )  # fmt: skip


def _configs(tables: Tables) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in rows_of(tables["configs"]) if "configs" in tables else ():
        found.setdefault(row["topic"], {})[row["name"]] = row["value"]
    return found


def _placements(tables: Tables) -> dict[tuple[str, int], tuple[int, list[int]]]:
    rows = rows_of(tables["placements"]) if "placements" in tables else ()
    return {(row["topic"], row["partition"]): (row["leader"], row["replicas"]) for row in rows}
