"""The data source ``kafka-log-counts``, and ``count_records``: record counts of logs, without their rows.

A Python source cannot detect that a query only counts rows. This source counts the rows that ``kafka-log`` would yield
for the same options, using batch headers if they are sufficient, and yields the counts of each part of a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType, StructType

from kafka_msgs.spark.dependencies import is_classic
from kafka_msgs.spark.functions import column_function
from kafka_msgs.spark.session import registered_settings
from kafka_msgs.spark.sources.log import log_reading
from kafka_msgs.spark.sources.log_rows import rows_of
from kafka_msgs.spark.sources.options import Options, OptionSource, option_texts
from kafka_msgs.spark.sources.read_plan import LogReader, ReadPlan
from kafka_msgs.spark.sources.splits import FilePart
from kafka_msgs.spark.spark_types import ERROR, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["KafkaLogCountsSource", "count_records"]

_LABEL: Final = "kafka-log-counts"
_SCHEMA: Final = (
    StructType().add("topic", "string").add("partition", "integer").add("file", "string")
    .add("records", "long").add("damage", "long")
)  # fmt: skip
_COUNTED: Final = ("partition",)
"""A column that batch headers provide for all their records."""
_TASKS_A_CORE: Final = 4
"""Tasks per core. Each task receives the list of all splits, so there are fewer tasks than splits."""


class _Counter(LogReader):
    """Counts the parts of a plan. Raises ``OptionError``."""

    def __init__(self, options: Options) -> None:
        super().__init__(ReadPlan.of(options), log_reading(options, _COUNTED), _SCHEMA)

    def counts(self, part: FilePart) -> tuple[int, int]:
        """Return the number of records in a part, and the number of rows that report unreadable data."""
        records = damage = 0
        for batch in rows_of(part, self.reading):
            faults = batch.num_rows - batch.column(ERROR).null_count if ERROR in batch.schema.names else 0
            records += batch.num_rows - faults
            damage += faults
        return records, damage

    def rows(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the single row of a part."""
        counts = (part.file.topic, part.file.partition, part.file.name, *self.counts(part))
        yield pa.RecordBatch.from_pylist([dict(zip(_SCHEMA.names, counts, strict=True))], arrow_schema(_SCHEMA))


class KafkaLogCountsSource(OptionSource):
    """The data source ``kafka-log-counts``; the documentation of Spark sources describes its options and columns."""

    label = _LABEL
    reader_type = _Counter


def count_records(spark: SparkSession, *paths: str, **options: Any) -> int:
    """Return the number of readable records that ``kafka-log`` yields for the same paths and options.

    ``options`` are the ``kafka-log`` options that choose records, such as ``topics``, ``isolation`` or
    ``startingTimestamp``. Records are counted from batch headers if these are sufficient. Raises the errors of wrong
    options, and in the mode ``FAILFAST`` the errors of damaged files.

    In a classic session, this process lists the files and the executors count. In a Connect session, paths belong to
    the server, so the data source ``kafka-log-counts`` counts instead. That is slower: Spark needs longer to plan a
    data source than to count a gigabyte.
    """
    if is_classic(spark):
        counts = _counts(spark, {**option_texts(options), "paths": json.dumps(paths)})
    else:
        counts = spark.read.format(_LABEL).options(**options).load(list(paths))
    (row,) = counts.agg(sf.sum("records").alias("records")).collect()
    return int(row.records or 0)


def _counts(spark: SparkSession, given: Mapping[str, str]) -> DataFrame:
    """Return the counts of splits. This process plans them, and tasks select them by number."""
    options = Options(_LABEL, given, registered_settings(spark))
    reader = _Counter(options)
    options.done()
    splits = reader.plan.splits()
    tasks = min(len(splits), _TASKS_A_CORE * spark.sparkContext.defaultParallelism)

    def count(numbers: pa.Array) -> pa.Array:
        found = (sum(reader.counts(part)[0] for part in splits[number]) for number in numbers.to_pylist())
        return pa.array(found, pa.int64())

    numbers = spark.range(0, len(splits), 1, max(tasks, 1))
    return numbers.select(column_function(count, LongType())("id").alias("records"))
