"""Serializers and deserializers for single keys and values in the schema registry format, as callables.

    producer = Producer(servers, value_serializer=PayloadSerializer(schema, registry))
    consumer = Consumer(servers, value_deserializer=PayloadDeserializer(registry))

A payload is a zero byte, the schema id in four bytes, and the value in the format of the schema, as Confluent's
serializers write it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from kafka_msgs.errors import KafkaMsgsError, OptionError, PayloadError
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver

__all__ = [
    "PayloadDeserializer",
    "PayloadSerializer",
    "check_kind",
    "check_message",
    "error_text",
    "schema_id",
    "split_payload",
]

_HEADER: Final = 5
_FORMATS: Final = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_values"}


def _format(kind: str) -> Any:
    """Return the module of a format, which has the functions ``encoder`` and ``decoder``."""
    return import_module(f"kafka_msgs.registry.{_FORMATS[kind]}")


class PayloadSerializer:
    """Encodes values with one registered schema. None becomes None, which is a tombstone.

    ==========  ==========================================================================================
    AVRO        dicts, and other values that ``fastavro`` accepts
    PROTOBUF    messages of a generated class, or dicts in Protobuf's JSON form. ``message`` is the full name
                of a message for dicts; without it, it is the first one of the schema
    JSON        all values that ``json.dumps`` accepts. Schema constraints are not checked
    ==========  ==========================================================================================

    Raises ``RegisteredSchemaError`` for an invalid schema, and the errors of ``schemas``. A call raises
    ``PayloadError`` for a value that the schema does not allow.
    """

    def __init__(self, schema: RegisteredSchema, schemas: SchemaResolver, *, message: str | None = None) -> None:
        check_message(schema, message)
        self._id = schema.id
        self._header = b"\0" + schema.id.to_bytes(4, "big")
        self._encode: Callable[[Any], bytes] = _format(schema.kind).encoder(schema, schemas, message)

    def __call__(self, value: Any) -> bytes | None:
        """Return the payload of a value."""
        if value is None:
            return None
        try:
            return self._header + self._encode(value)
        except (KafkaMsgsError, MemoryError):
            raise
        except Exception as error:  # the libraries of the formats raise exceptions of many kinds
            raise PayloadError(row=None, schema_id=self._id, reason=error_text(error)) from error


class PayloadDeserializer:
    """Decodes schema registry payloads. None stays None.

    Avro returns dicts, Protobuf returns messages, and JSON returns the values of ``json.loads``. ``schema`` is
    the reader's schema: Avro values are resolved to it, and Protobuf messages have its fields. Without it, the writer's
    schema is used. Each schema is fetched and prepared once. A call raises ``PayloadError`` for invalid payloads, and
    the errors of ``schemas``.
    """

    def __init__(
        self, schemas: SchemaResolver, *, schema: RegisteredSchema | None = None, message: str | None = None
    ) -> None:
        if schema is not None:
            check_message(schema, message)
        self._schemas = schemas
        self._reader = schema
        self._message = message
        self._decoders: dict[int, Callable[[bytes], Any]] = {}

    def __call__(self, payload: bytes | memoryview | None) -> Any:
        """Return the value of a payload."""
        if payload is None:
            return None
        number = None
        try:
            number, data = split_payload(bytes(payload))
            return self._decoder(number)(data)
        except (KafkaMsgsError, MemoryError):
            raise
        except Exception as error:  # the libraries of the formats raise exceptions of many kinds
            raise PayloadError(row=None, schema_id=number, reason=error_text(error)) from error

    def _decoder(self, number: int) -> Callable[[bytes], Any]:
        if number not in self._decoders:
            writer = self._schemas.by_id(number)
            if self._reader is not None:
                check_kind(writer, self._reader)
            self._decoders[number] = _format(writer.kind).decoder(writer, self._reader, self._schemas, self._message)
        return self._decoders[number]


def schema_id(payload: bytes) -> int | None:
    """Return the id in the header of a payload, or None if it has no header."""
    return int.from_bytes(payload[1:_HEADER]) if len(payload) >= _HEADER and payload[0] == 0 else None


def split_payload(payload: bytes) -> tuple[int, bytes]:
    """Return the schema id in the header of a payload, and the bytes after it. Raises ``ValueError`` without one."""
    number = schema_id(payload)
    if number is None:
        raise ValueError(f"it does not start with the header of a schema registry: {payload[:_HEADER].hex()}")
    return number, payload[_HEADER:]


def check_kind(writer: RegisteredSchema, reader: RegisteredSchema) -> None:
    """Raise ``ValueError`` if two schemas are not of one format."""
    if writer.kind != reader.kind:
        raise ValueError(f"its schema is of the kind {writer.kind}, expected {reader.kind}")


def check_message(schema: RegisteredSchema, message: str | None) -> None:
    """Raise ``OptionError`` for the name of a message with a schema of another format than Protobuf."""
    if message is not None and schema.kind != "PROTOBUF":
        raise OptionError(source="registry", option="message", value=message, reason="it is for Protobuf only")


def error_text(error: Exception) -> str:
    """Return the reason in an error, or else the name of its type."""
    return str(error) or type(error).__name__
