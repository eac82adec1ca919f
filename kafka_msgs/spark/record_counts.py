"""How many records logs have, counted where they are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType

from kafka_msgs.spark.dependencies import is_classic
from kafka_msgs.spark.functions import column_function
from kafka_msgs.spark.session import registered_settings
from kafka_msgs.spark.sources.counts import counted, counting_plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["count_records"]

_TASKS_A_CORE: Final = 4
"""Each task gets the list of all splits, so that there are not as many tasks as splits."""


def count_records(spark: SparkSession, *paths: str, **options: Any) -> int:
    """Return the number of records that ``kafka-log`` has for the same paths and options, without those it cannot read.

    ``options`` are those of ``kafka-log`` that choose records, such as ``internal_topics``, ``isolation`` or
    ``startingTimestamp``. Records are counted by the headers of batches where these say enough. Raises the error of a
    wrong option, and in the mode ``FAILFAST`` that of damage.

    In a classic session this process lists the files, and the executors count; only in a Connect session the data
    source ``kafka-log-counts`` does it, since paths are those of the server. Spark needs longer to plan a source than
    to count a gigabyte.
    """
    counts = _counts(spark, paths, options) if is_classic(spark) else _counts_of_source(spark, paths, options)
    (row,) = counts.agg(sf.sum("records").alias("records")).collect()
    return int(row.records or 0)


def _counts_of_source(spark: SparkSession, paths: tuple[str, ...], options: dict[str, Any]) -> DataFrame:
    return spark.read.format("kafka-log-counts").options(**options).load(list(paths))


def _counts(spark: SparkSession, paths: tuple[str, ...], options: dict[str, Any]) -> DataFrame:
    """Return the counts of splits, which are planned here, and read by tasks that have only their numbers."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    plan, reading = counting_plan({**texts, "paths": json.dumps(paths)}, registered_settings(spark))
    splits = plan.splits()
    tasks = min(len(splits), _TASKS_A_CORE * spark.sparkContext.defaultParallelism)

    def count(numbers: pa.Array) -> pa.Array:
        found = (sum(counted(part, reading)[0] for part in splits[number]) for number in numbers.to_pylist())
        return pa.array(found, pa.int64())

    numbers = spark.range(0, len(splits), 1, max(tasks, 1))
    return numbers.select(column_function(count, LongType())("id").alias("records"))
