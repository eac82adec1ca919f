"""How many records logs have, counted where they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["count_records"]


def count_records(spark: SparkSession, *paths: str, **options: Any) -> int:
    """Return the number of records that ``kafka-log`` has for the same paths and options, without those it cannot read.

    ``options`` are those of ``kafka-log`` that choose records, such as ``topics``, ``isolation`` or
    ``startingTimestamp``. Records are counted by the headers of batches where these say enough. Raises the error of a
    wrong option, and in the mode ``FAILFAST`` that of damage.
    """
    counts = spark.read.format("kafka-log-counts").options(**options).load(list(paths))
    (row,) = counts.agg(sf.sum("records").alias("records")).collect()
    return int(row.records or 0)
