"""Single values in JSON, as schema registry serializers write them, and decoded values of any format as JSON values.

The schema of a JSON payload is not checked.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NoReturn
from uuid import UUID

from kafka_msgs.errors import PayloadError
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver

__all__ = ["decoder", "encoder", "json_form", "parse_json"]


def parse_json(data: bytes) -> Any:
    """Return the value of a JSON text, in UTF-8 or another encoding that starts with its own mark.

    Raises ``ValueError``, also for ``NaN`` and ``Infinity`` and for surrogates in UTF-8, which ``json`` accepts.
    """
    return json.loads(data.decode(json.detect_encoding(data)), parse_constant=_refuse)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def encoder(schema: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> Callable[[Any], bytes]:
    """Return the function that encodes values."""
    return lambda value: json.dumps(value, allow_nan=False).encode()


def decoder(
    writer: RegisteredSchema, reader: RegisteredSchema | None, schemas: SchemaResolver, message: str | None
) -> Callable[[bytes], Any]:
    """Return the function that decodes values."""
    return parse_json


def json_form(value: Any) -> Any:
    """Return a decoded value with JSON types: bytes in base64, times in ISO 8601, decimals and UUIDs as text.

    Raises ``PayloadError`` for a Protobuf message without a JSON form.
    """
    if isinstance(value, Mapping):
        return {str(key): json_form(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(json_form, value))
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else _protobuf_form(value)


def _protobuf_form(message: Any) -> Any:
    from google.protobuf.json_format import MessageToDict

    try:
        return MessageToDict(message)
    except Exception as error:  # a decoded message may have no JSON form, such as a Timestamp out of range
        raise PayloadError(row=None, schema_id=None, reason=str(error) or type(error).__name__) from error
