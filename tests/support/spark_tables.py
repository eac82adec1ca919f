"""Rows from a data source: planned and read without Spark, or streamed in Spark to the current end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource
from pyspark.sql.streaming.readwriter import DataStreamWriter

from kafka_msgs.spark.spark_types import arrow_schema

__all__ = ["followed", "read", "table"]


_SECONDS: Final = 900


def followed(sink: DataStreamWriter) -> list[int]:
    """Run a stream to the current end of its source; return the row counts of the non-empty micro-batches."""
    query = sink.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(_SECONDS)
        return [rows for each in query.recentProgress if (rows := each["numInputRows"])]
    finally:
        query.stop()


def table(source: type[DataSource], options: Mapping[str, str]) -> pa.Table:
    """Return all rows; check every batch against the schema that Spark uses."""
    made = source(dict(options))
    schema: Any = made.schema()
    reader = made.reader(schema)
    batches: list[Any] = [batch for split in reader.partitions() for batch in reader.read(split)]
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(arrow_schema(schema))
    return pa.Table.from_batches(batches, arrow_schema(schema))


def read(source: type[DataSource], path: object, **options: object) -> list[dict[str, Any]]:
    """Return all rows of a path."""
    rows: list[dict[str, Any]] = table(source, {"path": str(path), **_texts(options)}).to_pylist()
    return rows


def _texts(options: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
