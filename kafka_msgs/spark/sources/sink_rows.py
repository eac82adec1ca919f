"""Conversion of rows to records: the columns of a sink, and their values in records.

Checks columns, and converts Arrow to values. ``live_writing`` and ``log_writing`` write the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from kafka_msgs.spark.sources.options import Options

__all__ = ["DATA", "WHOLE", "records_in", "sink_topic"]

WHOLE: Final = ("integer", "long", "short", "byte")
"""The integer types."""
DATA: Final = ("binary", "string")
"""The types of keys and values."""
_BYTES: Final = frozenset({"key", "value"})


def sink_topic(options: Options, schema: StructType, known: Mapping[str, tuple[str, ...]]) -> str | None:
    """Return the topic for all rows, or None if the rows have a column with it.

    Raises ``OptionError`` for a missing topic, for an unknown column, and for a column of another type.
    """
    for column in schema:
        if column.dataType.typeName() not in known.get(column.name, ()):
            there = ", ".join(f"{name} ({' or '.join(types)})" for name, types in known.items())
            reason = f"the column {column.name} ({column.dataType.typeName()}) cannot be written: there are {there}"
            options.refuse("columns", reason)
    topic = options.text("topic")
    if topic is None and "topic" not in schema.names:
        options.refuse("topic", "it is needed if the rows have no column topic")
    return topic


def records_in(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the values of each row by column, without nulls: texts as bytes, times in ms, headers as pairs."""
    names = batch.schema.names
    columns = [_values(batch.column(name), as_bytes=name in _BYTES) for name in names]
    for values in zip(*columns, strict=True):
        record = {name: value for name, value in zip(names, values, strict=True) if value is not None}
        if "headers" in record:
            record["headers"] = [(each["key"], each["value"]) for each in record["headers"]]
        yield record


def _values(column: pa.Array, *, as_bytes: bool) -> list[Any]:
    if as_bytes and not pa.types.is_binary(column.type):
        column = column.cast(pa.binary())
    if pa.types.is_timestamp(column.type):
        column = pc.cast(column, pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    return list(column.to_pylist())
