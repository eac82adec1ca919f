"""Single messages in Protobuf, prefixed with the message indexes in their schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_msgs.errors import MissingExtraError, RegisteredSchemaError
from kafka_msgs.primitives import write_uvarint
from kafka_msgs.registry.protobuf import compile_schema, parse_message, read_message_indexes
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver

try:
    from google.protobuf.json_format import ParseDict
    from google.protobuf.message import Message
    from google.protobuf.message_factory import GetMessageClass
except ImportError as error:
    raise MissingExtraError(feature="Protobuf", extra="registry", package="grpcio-tools") from error

__all__ = ["decoder", "encoder"]


def encoder(schema: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> Callable[[Any], bytes]:
    """Return the function that encodes messages, or dicts in Protobuf's JSON form."""
    pool, names = compile_schema(schema, schemas)
    cls = _message_class(pool, schema, message or names.first)
    places = {name: _encode_place(place) for name, place in names.places()}

    def encode(value: Any) -> bytes:
        made = value if isinstance(value, Message) else ParseDict(value, cls())
        name = made.DESCRIPTOR.full_name
        if name not in places:
            raise ValueError(f"its schema has no message {name}")
        data: bytes = made.SerializeToString()
        return places[name] + data

    return encode


def decoder(
    writer: RegisteredSchema, reader: RegisteredSchema | None, schemas: SchemaResolver, message: str | None
) -> Callable[[bytes], Any]:
    """Return the function that decodes messages of ``writer``, with the fields of ``reader``."""
    _, names = compile_schema(writer, schemas)
    target = reader or writer
    pool, _ = compile_schema(target, schemas)

    def decode(data: bytes) -> Any:
        place, start = read_message_indexes(data)
        name = names.at(place)
        if message is not None and name != message:
            raise ValueError(f"it is a {name}, not a {message}")
        return parse_message(_message_class(pool, target, name), data[start:])

    return decode


def _message_class(pool: Any, schema: RegisteredSchema, name: str) -> Any:
    try:
        return GetMessageClass(pool.FindMessageTypeByName(name))
    except KeyError as error:
        raise RegisteredSchemaError(schema_id=schema.id, reason=f"it has no message {name}") from error


def _encode_place(place: tuple[int, ...]) -> bytes:
    """Return indexes as zigzag varints after their count. The first message of a file is encoded as a single zero."""
    if place == (0,):
        return b"\0"
    return b"".join(write_uvarint(number << 1) for number in (len(place), *place))
