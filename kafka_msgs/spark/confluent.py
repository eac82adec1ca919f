"""``from_confluent``: payloads of a schema registry in a binary column as columns of their own.

Owns the form that a payload has in Spark. ``kafka_msgs.registry`` reads the payloads.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql.types import StructType

from kafka_msgs.columns.decode import OnBadRow
from kafka_msgs.registry import PayloadReader, RegisteredSchema, SchemaResolver
from kafka_msgs.spark.functions import Mode, column_function, error_texts
from kafka_msgs.spark.spark_types import ERROR, arrow_schema, spark_type, with_error

__all__ = ["from_confluent"]


def from_confluent(
    column: Column | str,
    target: RegisteredSchema,
    schemas: SchemaResolver,
    *,
    message: str | None = None,
    mode: Mode = "PERMISSIVE",
) -> Column:
    """Return the payloads in a binary column as a struct column of the fields that ``target`` describes.

    Each payload begins with the id of the schema that it was written with, as those of Confluent's serializers do.
    ``schemas`` gives it, on the executors, and by the rules of the format it is read as ``target``. For Protobuf
    ``message`` is the full name of a message of ``target``; without it the first one. A schema that is not one of
    fields, such as a string in Avro, gives a struct with the one field ``value``. Null in, null out.

    ``mode`` decides what happens to bytes that are not such a payload, as in ``from_kafka``: ``PERMISSIVE`` gives the
    reason in a last field ``_error``, ``DROPMALFORMED`` gives null, and ``FAILFAST`` ends the job with
    ``PayloadError``. A registry that does not answer ends it with ``RegistryError``. Raises ``RegisteredSchemaError``
    if ``target`` cannot become a column, and ``MissingExtraError`` without the extra ``registry``.
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
    """Return what reads one batch of rows after the other, with the schemas that it has prepared."""
    return PayloadReader(target, schemas, message=message)


def _fields(given: pa.DataType) -> pa.StructType:
    return given if pa.types.is_struct(given) else pa.struct([("value", given)])


def _decoded(data: pa.Array, reader: PayloadReader, mode: Mode) -> pa.StructArray:
    on_error: OnBadRow = "raise" if mode == "FAILFAST" else "null"
    decoded = reader.decode(data, on_error=on_error)
    fields = _fields(reader.type)
    columns = decoded.values.flatten() if decoded.values.type == fields else [decoded.values]
    if mode == "PERMISSIVE":
        fields = pa.struct([*fields, pa.field(ERROR, pa.string())])
        columns = [*columns, error_texts(decoded.errors, "payload")]
        return pa.StructArray.from_arrays(columns, fields=list(fields), mask=data.is_null())
    return pa.StructArray.from_arrays(columns, fields=list(fields), mask=decoded.values.is_null())
