"""Decoded payloads as JSON values."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

from kafka_msgs.errors import PayloadError

__all__ = ["json_form"]


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
