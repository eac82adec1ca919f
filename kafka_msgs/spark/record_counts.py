"""Record counts of logs, computed by the tasks that read them."""

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
"""Tasks per core. Each task receives the list of all splits, so there are fewer tasks than splits."""


def count_records(spark: SparkSession, *paths: str, **options: Any) -> int:
    """Return the number of readable records that ``kafka-log`` yields for the same paths and options.

    ``options`` are the ``kafka-log`` options that choose records, such as ``internal_topics``, ``isolation`` or
    ``startingTimestamp``. Records are counted from batch headers if these are sufficient. Raises the errors of wrong
    options, and in the mode ``FAILFAST`` the errors of damaged files.

    In a classic session, this process lists the files and the executors count. In a Connect session, paths belong to
    the server, so the data source ``kafka-log-counts`` counts instead. That is slower: Spark needs longer to plan a
    data source than to count a gigabyte.
    """
    counts = _counts(spark, paths, options) if is_classic(spark) else _counts_of_source(spark, paths, options)
    (row,) = counts.agg(sf.sum("records").alias("records")).collect()
    return int(row.records or 0)


def _counts_of_source(spark: SparkSession, paths: tuple[str, ...], options: dict[str, Any]) -> DataFrame:
    return spark.read.format("kafka-log-counts").options(**options).load(list(paths))


def _counts(spark: SparkSession, paths: tuple[str, ...], options: dict[str, Any]) -> DataFrame:
    """Return the counts of splits. This process plans them, and tasks select them by number."""
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    plan, reading = counting_plan({**texts, "paths": json.dumps(paths)}, registered_settings(spark))
    splits = plan.splits()
    tasks = min(len(splits), _TASKS_A_CORE * spark.sparkContext.defaultParallelism)

    def count(numbers: pa.Array) -> pa.Array:
        found = (sum(counted(part, reading)[0] for part in splits[number]) for number in numbers.to_pylist())
        return pa.array(found, pa.int64())

    numbers = spark.range(0, len(splits), 1, max(tasks, 1))
    return numbers.select(column_function(count, LongType())("id").alias("records"))
