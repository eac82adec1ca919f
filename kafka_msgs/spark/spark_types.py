"""The Spark types of messages and sources, derived from the Arrow types of ``kafka_msgs.columns``.

Converts between Arrow and Spark types, and defines the error column. The Arrow type returned to Spark is always derived
from the declared Spark type: Spark silently reads a struct with different field names as a struct of nulls.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from kafka_msgs.catalog import message_by_name
from kafka_msgs.columns.log_table import ERROR
from kafka_msgs.columns.types import KAFKA_TYPE, arrow_type
from kafka_msgs.message import Message

__all__ = [
    "ERROR",
    "arrow_schema",
    "resolve_message",
    "schema_of",
    "spark_type",
    "with_error",
    "without_notes",
]


def resolve_message(message: str | type[Message]) -> type[Message]:
    """Return the class of a message, given by name or class. Raises ``UnknownNameError``."""
    return message_by_name(message) if isinstance(message, str) else message


def schema_of(
    message: str | type[Message], version: int | None = None, *, columns: Iterable[str] | None = None
) -> StructType:
    """Return the struct type that ``from_kafka`` returns for a message, without the error column.

    All fields are nullable and named after the attributes of the class. Without a version it has the fields of all
    versions; ``columns`` selects fields by dotted path. A field whose Kafka type is more specific than its Spark type
    (unsigned, uuid, records) has the metadata ``kafka.type``. Raises ``UnknownNameError``,
    ``UnsupportedVersionError`` and ``UnknownColumnError``.
    """
    return _struct(arrow_type(resolve_message(message), version, columns=columns))


def with_error(schema: StructType) -> StructType:
    """Return ``schema`` with the error column as its last field."""
    return StructType([*schema.fields, StructField(ERROR, StringType())])


def without_notes(schema: StructType) -> StructType:
    """Return ``schema`` without the metadata of its fields."""
    return StructType([StructField(field.name, _plain(field.dataType)) for field in schema])


def _plain(given: DataType) -> DataType:
    if isinstance(given, StructType):
        return without_notes(given)
    return ArrayType(_plain(given.elementType)) if isinstance(given, ArrayType) else given


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema in which Spark expects rows of ``schema``."""
    return to_arrow_schema(schema, timezone="UTC")


def spark_type(given: pa.DataType) -> DataType:
    """Return the Spark type of an Arrow type, with the metadata of its fields."""
    if pa.types.is_struct(given):
        return _struct(given)
    if pa.types.is_list(given):
        return ArrayType(spark_type(given.value_type))
    if pa.types.is_map(given):
        return MapType(spark_type(given.key_type), spark_type(given.item_type))
    return from_arrow_type(given)


def _struct(given: pa.StructType) -> StructType:
    return StructType([_field(field) for field in given])


def _field(given: pa.Field) -> StructField:
    note = (given.metadata or {}).get(KAFKA_TYPE)
    return StructField(
        given.name, spark_type(given.type), metadata={KAFKA_TYPE.decode(): note.decode()} if note else None
    )
