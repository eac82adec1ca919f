"""The data source ``kafka-log-counts``: record counts of log parts, without their rows.

A Python source cannot detect that a query only counts rows. This source counts the rows that ``kafka-log`` would yield
for the same options, using batch headers if they are sufficient, and yields the counts. ``counting_plan`` and
``counted`` do the same without a data source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.spark.sources.log import reading_of
from kafka_msgs.spark.sources.log_rows import RowOptions, rows_of
from kafka_msgs.spark.sources.options import Options, check_schema
from kafka_msgs.spark.sources.read_plan import LogReader, ReadPlan
from kafka_msgs.spark.sources.splits import FilePart
from kafka_msgs.spark.spark_types import ERROR, arrow_schema

__all__ = ["KafkaLogCountsSource", "counted", "counting_plan"]

_NAME: Final = "kafka-log-counts"
_COUNTED: Final = ("partition",)
"""A column that batch headers provide for all their records."""
_SCHEMA: Final = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("file", StringType()),
        StructField("records", LongType()),
        StructField("damage", LongType()),
    ]
)


def counting_plan(
    options: Mapping[str, str], fs_options: FilesystemOptions = NO_OPTIONS
) -> tuple[ReadPlan, RowOptions]:
    """Return the read plan and row options for the options of the source. Raises ``OptionError``.

    ``fs_options`` are the filesystem options of the session.
    """
    given = Options(_NAME, options, fs_options)
    plan, reading = ReadPlan.of(_NAME, given), reading_of(given, _COUNTED)
    given.done()
    return plan, reading


def counted(part: FilePart, reading: RowOptions) -> tuple[int, int]:
    """Return the number of records in a part, and the number of rows that report unreadable data."""
    records = damage = 0
    for batch in rows_of(part, reading):
        faults = batch.num_rows - batch.column(ERROR).null_count if ERROR in batch.schema.names else 0
        records += batch.num_rows - faults
        damage += faults
    return records, damage


class KafkaLogCountsSource(DataSource):
    """The data source ``kafka-log-counts``; the documentation of Spark sources describes its options and columns."""

    fs_options: ClassVar[FilesystemOptions] = NO_OPTIONS
    """The filesystem options of the session."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._plan, self._reading = counting_plan(options, self.fs_options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the source."""
        return _NAME

    def schema(self) -> StructType:
        """Return the columns."""
        return _SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader."""
        check_schema(self.name(), schema, self.schema())
        return _Counter(self._plan, self._reading)


class _Counter(LogReader):
    """Counts the parts of a plan."""

    def rows(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """Yield the single row of a part."""
        counts = [part.file.topic, part.file.partition, part.file.name, *counted(part, self.reading)]
        schema = arrow_schema(_SCHEMA)
        arrays = [pa.array([value], each.type) for value, each in zip(counts, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)
