"""The data source ``kafka-log-counts``: how many records the parts of logs have, without their rows.

Spark does not tell a Python source that rows are only counted. This source counts what ``kafka-log`` would yield for
the same options, from the headers of batches where these say it, and yields the counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from kafka_msgs.filesystems.settings import NO_SETTINGS, Settings
from kafka_msgs.spark.sources.log import reading_of
from kafka_msgs.spark.sources.options import Options
from kafka_msgs.spark.sources.plans import LogReader, Plan
from kafka_msgs.spark.sources.rows import rows_of
from kafka_msgs.spark.sources.splits import Part
from kafka_msgs.spark.types import ERROR, arrow_schema

__all__ = ["KafkaLogCountsSource"]

_COUNTED: Final = ("partition",)
"""A column that the headers of batches answer for all their records."""
_SCHEMA: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("file", StringType()),
        StructField("records", LongType()),
        StructField("damage", LongType()),
    ]
)


class KafkaLogCountsSource(DataSource):
    """The data source ``kafka-log-counts``; the documentation of Spark sources describes its options and columns."""

    settings: ClassVar[Settings] = NO_SETTINGS
    """What the session has for filesystems."""

    def __init__(self, options: Mapping[str, str]) -> None:
        given = Options(self.name(), options, self.settings)
        self._plan = Plan.of(self.name(), given)
        self._reading = reading_of(given, _COUNTED)
        given.done()

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return "kafka-log-counts"

    def schema(self) -> StructType:
        """Return the columns."""
        return _SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader."""
        return _Counter(self._plan, self._reading)


class _Counter(LogReader):
    """Counts the parts of a plan."""

    def rows(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the one row of a part."""
        records = damage = 0
        for batch in rows_of(part, self.reading):
            faults = batch.num_rows - batch.column(ERROR).null_count if ERROR in batch.schema.names else 0
            records += batch.num_rows - faults
            damage += faults
        counted = [part.file.topic, part.file.partition, part.file.name, records, damage]
        schema = arrow_schema(_SCHEMA)
        arrays = [pa.array([value], each.type) for value, each in zip(counted, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
