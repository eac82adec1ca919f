"""Single values in Avro. ``fastavro`` encodes them, and resolves the writer's schema to the reader's."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

from kafka_msgs.errors import MissingExtraError, RegisteredSchemaError
from kafka_msgs.registry.avro import check_arrays
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver, resolve_references

try:
    from fastavro import parse_schema, schemaless_reader, schemaless_writer
except ImportError as error:
    raise MissingExtraError(feature="Avro", extra="registry", package="fastavro") from error

__all__ = ["decoder", "encoder"]


def encoder(schema: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> Callable[[Any], bytes]:
    """Return the function that encodes values with a schema."""
    parsed = _parse(schema, schemas)

    def encode(value: Any) -> bytes:
        stream = BytesIO()
        schemaless_writer(stream, parsed, value)
        return stream.getvalue()

    return encode


def decoder(
    writer: RegisteredSchema, reader: RegisteredSchema | None, schemas: SchemaResolver, message: str | None
) -> Callable[[bytes], Any]:
    """Return the function that decodes values of ``writer``, resolved to ``reader``."""
    written = _parse(writer, schemas)
    read_as = None if reader is None or reader.id == writer.id else _parse(reader, schemas)

    def decode(data: bytes) -> Any:
        stream = BytesIO(data)
        try:
            value = schemaless_reader(stream, written, read_as)
        except (EOFError, IndexError):
            raise ValueError(f"its {len(data)} bytes end within the value") from None
        if left := len(data) - stream.tell():
            raise ValueError(f"{left} bytes follow the value")
        return value

    return decode


def _parse(schema: RegisteredSchema, schemas: SchemaResolver) -> Any:
    named: dict[str, Any] = {}
    try:
        for _, other in resolve_references(schema, schemas):
            parse_schema(json.loads(other.text), named_schemas=named)
        parsed = parse_schema(json.loads(schema.text), named_schemas=named)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = f"it is not a schema of Avro: {error!r}"
        raise RegisteredSchemaError(schema_id=schema.id, reason=reason) from error
    check_arrays(schema.id, parsed, named)
    return parsed
