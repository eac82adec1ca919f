"""Serializers and deserializers for single keys and values in the schema registry format, as callables.

    producer = Producer(servers, value_serializer=PayloadSerializer(schema, registry))
    consumer = Consumer(servers, value_deserializer=PayloadDeserializer(registry))

A payload is a zero byte, the schema id in four bytes, and the value in the format of the schema, as Confluent's
serializers write it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, Protocol, TypeAlias

from kafka_msgs.errors import KafkaMsgsError, OptionError, PayloadError
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver

__all__ = ["PayloadDeserializer", "PayloadSerializer"]

_HEADER: Final = 5
_FORMATS: Final = {"AVRO": "avro_values", "PROTOBUF": "protobuf_values", "JSON": "json_values"}

Decode: TypeAlias = Callable[[bytes], Any]


class _Format(Protocol):
    """A module that encodes and decodes values of one format."""

    def encoder(self, schema: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> Callable[[Any], bytes]:
        """Return the function that encodes values."""
        ...

    def decoder(
        self, writer: RegisteredSchema, reader: RegisteredSchema | None, schemas: SchemaResolver, message: str | None
    ) -> Decode:
        """Return the function that decodes values of ``writer``, resolved to ``reader``."""
        ...


def _format(kind: str) -> _Format:
    module: Any = import_module(f"kafka_msgs.registry.{_FORMATS[kind]}")
    return module  # type: ignore[no-any-return]


class PayloadSerializer:
    """Encodes values with one registered schema. None becomes None, which is a tombstone.

    ==========  ==========================================================================================
    AVRO        dicts, and other values that ``fastavro`` accepts
    PROTOBUF    messages of a generated class, or dicts in Protobuf's JSON form. ``message`` is the full name
                of a message for dicts; without it, it is the first one of the schema
    JSON        all values that ``json_schema.dumps`` accepts. Schema constraints are not checked
    ==========  ==========================================================================================

    Raises ``RegisteredSchemaError`` for an invalid schema, and the errors of ``schemas``. A call raises
    ``PayloadError`` for a value that the schema does not allow.
    """

    def __init__(self, schema: RegisteredSchema, schemas: SchemaResolver, *, message: str | None = None) -> None:
        _check_message(schema.kind, message)
        self._id = schema.id
        self._header = b"\0" + schema.id.to_bytes(4, "big")
        self._encode = _format(schema.kind).encoder(schema, schemas, message)

    def __call__(self, value: Any) -> bytes | None:
        """Return the payload of a value."""
        if value is None:
            return None
        try:
            return self._header + self._encode(value)
        except (KafkaMsgsError, MemoryError):
            raise
        except Exception as error:  # the libraries of the formats raise exceptions of many kinds
            raise PayloadError(row=None, schema_id=self._id, reason=_reason(error)) from error


class PayloadDeserializer:
    """Decodes schema registry payloads. None stays None.

    Avro returns dicts, Protobuf returns messages, and JSON returns the values of ``json_schema.loads``. ``schema`` is
    the reader's schema: Avro values are resolved to it, and Protobuf messages have its fields. Without it, the writer's
    schema is used. Each schema is fetched and prepared once. A call raises ``PayloadError`` for invalid payloads, and
    the errors of ``schemas``.
    """

    def __init__(
        self, schemas: SchemaResolver, *, schema: RegisteredSchema | None = None, message: str | None = None
    ) -> None:
        if schema is not None:
            _check_message(schema.kind, message)
        self._schemas = schemas
        self._reader = schema
        self._message = message
        self._decoders: dict[int, Decode] = {}

    def __call__(self, payload: bytes | memoryview | None) -> Any:
        """Return the value of a payload."""
        if payload is None:
            return None
        data = bytes(payload)
        if len(data) < _HEADER or data[0] != 0:
            reason = f"it does not start with the header of a schema registry: {data[:_HEADER].hex()}"
            raise PayloadError(row=None, schema_id=None, reason=reason)
        number = int.from_bytes(data[1:_HEADER])
        try:
            return self._decoder(number)(data[_HEADER:])
        except (KafkaMsgsError, MemoryError):
            raise
        except Exception as error:  # the libraries of the formats raise exceptions of many kinds
            raise PayloadError(row=None, schema_id=number, reason=_reason(error)) from error

    def _decoder(self, number: int) -> Decode:
        if number not in self._decoders:
            writer = self._schemas.by_id(number)
            if self._reader is not None and writer.kind != self._reader.kind:
                raise ValueError(f"its schema is of the kind {writer.kind}, expected {self._reader.kind}")
            made = _format(writer.kind).decoder(writer, self._reader, self._schemas, self._message)
            self._decoders[number] = made
        return self._decoders[number]


def _check_message(kind: str, message: str | None) -> None:
    if message is not None and kind != "PROTOBUF":
        raise OptionError(source="registry", option="message", value=message, reason="it is for Protobuf only")


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
