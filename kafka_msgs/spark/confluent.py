"""``from_confluent``: decodes schema registry payloads in a binary column to typed columns.

Defines the representation of payloads in Spark. ``kafka_msgs.registry`` reads the payloads.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import StructType

from kafka_msgs.columns.decode import OnBadRow, error_texts
from kafka_msgs.registry import PayloadReader, RegisteredSchema, SchemaResolver
from kafka_msgs.spark.functions import Mode, column_function, with_errors
from kafka_msgs.spark.spark_types import arrow_schema, spark_type, with_error

__all__ = ["from_confluent"]


def from_confluent(
    column: Column | str,
    target: RegisteredSchema,
    schemas: SchemaResolver,
    *,
    message: str | None = None,
    mode: Mode = "PERMISSIVE",
) -> Column:
    """Return the payloads in a binary column as a struct column with the fields of ``target``.

    Each payload starts with the id of its writer schema, as Confluent's serializers produce it. ``schemas`` resolves
    the id on the executors, and the payload is read as ``target`` by the resolution rules of the format. For Protobuf,
    ``message`` is the full name of a message in ``target``, by default the first one. A schema without fields, such as
    an Avro string, gives a struct with the single field ``value``. Null in, null out.

    ``mode`` decides how to handle bytes that are not such a payload, as in ``from_kafka``: ``PERMISSIVE`` puts the
    reason in a last field ``_error``, ``DROPMALFORMED`` returns null, and ``FAILFAST`` ends the job with
    ``PayloadError``. If the registry does not respond, the job ends with ``RegistryError``. Raises
    ``RegisteredSchemaError`` if ``target`` cannot become a column, and ``MissingExtraError`` without the extra
    ``registry``.
    """
    made = spark_type(_fields(_reader(target, schemas, message).type))
    assert isinstance(made, StructType)
    returned = with_error(made) if mode == "PERMISSIVE" else made
    type_ = arrow_schema(StructType().add("it", returned)).field("it").type

    def decoded(data: pa.Array) -> pa.Array:
        return _decoded(data, _reader(target, schemas, message), mode).cast(type_)

    result: Column = column_function(decoded, returned)(column)
    return result


@lru_cache(maxsize=16)
def _reader(target: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> PayloadReader:
    """Return the reader for batches of rows, with its prepared schemas."""
    return PayloadReader(target, schemas, message=message)


def _fields(given: pa.DataType) -> pa.StructType:
    return given if pa.types.is_struct(given) else pa.struct([("value", given)])


def _decoded(data: pa.Array, reader: PayloadReader, mode: Mode) -> pa.StructArray:
    on_error: OnBadRow = "raise" if mode == "FAILFAST" else "null"
    decoded = reader.decode(data, on_error=on_error)
    values, fields = decoded.values, _fields(reader.type)
    if values.type != fields:
        values = pa.StructArray.from_arrays([values], fields=list(fields), mask=values.is_null())
    return with_errors(values, error_texts(decoded.errors, "payload"), data, mode)
