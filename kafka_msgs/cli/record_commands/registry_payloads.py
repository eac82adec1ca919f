"""Payloads of a schema registry: decoded to JSON values, and encoded from JSON text."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import click

from kafka_msgs.errors import PayloadError, RegisteredSchemaError
from kafka_msgs.records import Payload
from kafka_msgs.registry.registry_client import SchemaRegistryClient
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver
from kafka_msgs.registry.serializers import PayloadDeserializer, PayloadSerializer

__all__ = ["open_registry", "payload_decoder", "payload_encoder"]


def open_registry(url: str, timeout: float) -> SchemaRegistryClient:
    """Return a client of the registry at a URL, which may contain a user and a password. ``timeout`` is in seconds."""
    parts = urlsplit(url)
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
    return SchemaRegistryClient(address, user=user, password=password, timeout_ms=max(1, int(timeout * 1000)))


def payload_decoder(schemas: SchemaResolver) -> Callable[[Payload | None], Any]:
    """Return a function that decodes a payload to a JSON value; an invalid payload becomes its bytes and the reason."""
    deserialize = PayloadDeserializer(schemas)

    def decode(data: Payload | None) -> Any:
        try:
            return _json_value(deserialize(data))
        except (PayloadError, RegisteredSchemaError) as error:
            return {"hex": (data or b"").hex(), "problem": str(error)}

    return decode


def _json_value(value: Any) -> Any:
    """Return a decoded value with JSON types: bytes in base64, times in ISO 8601, decimals and UUIDs as text."""
    if isinstance(value, Mapping):
        return {str(key): _json_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return list(map(_json_value, value))
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else _protobuf_value(value)


def _protobuf_value(message: Any) -> Any:
    from google.protobuf.json_format import MessageToDict

    return MessageToDict(message)


def payload_encoder(schemas: SchemaResolver, schema: str) -> Callable[[Any], bytes | None]:
    """Return a function that encodes JSON values with a schema: an id, ``SUBJECT``, or ``SUBJECT:VERSION``."""
    return PayloadSerializer(_schema(schemas, schema), schemas)


def _schema(schemas: SchemaResolver, text: str) -> RegisteredSchema:
    if text.isascii() and text.isdigit():
        return schemas.by_id(int(text))
    subject, colon, version = text.rpartition(":")
    if colon and version.isascii() and version.isdigit():
        return schemas.version(subject, int(version))
    if not text:
        raise click.BadParameter("expected a schema id, SUBJECT or SUBJECT:VERSION")
    return schemas.latest(text)
