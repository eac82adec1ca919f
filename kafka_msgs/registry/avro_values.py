"""Single values in Avro. ``fastavro`` encodes them, and resolves the writer's schema to the reader's."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.registry.avro import check_arrays, parse_avro, read_value
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver

try:
    from fastavro import schemaless_writer
except ImportError as error:
    raise MissingExtraError(feature="Avro", extra="registry", package="fastavro") from error

__all__ = ["decoder", "encoder"]


def encoder(schema: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> Callable[[Any], bytes]:
    """Return the function that encodes values with a schema."""
    found = parse_avro(schema, schemas, "write")
    check_arrays(schema.id, found.schema, found.named)

    def encode(value: Any) -> bytes:
        stream = BytesIO()
        schemaless_writer(stream, found.schema, value)
        return stream.getvalue()

    return encode


def decoder(
    writer: RegisteredSchema, reader: RegisteredSchema | None, schemas: SchemaResolver, message: str | None
) -> Callable[[bytes], Any]:
    """Return the function that decodes values of ``writer``, resolved to ``reader``."""
    read_as = None if reader is None or reader.id == writer.id else parse_avro(reader, schemas, "values")
    written = parse_avro(writer, schemas, "values", read_as)
    check_arrays(writer.id, written.schema, written.named)
    return lambda data: read_value(data, written, read_as, with_names=False)
