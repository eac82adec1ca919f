"""Payloads of a schema registry: decoded to JSON values, and encoded from JSON text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import click

from kafka_msgs.errors import PayloadError, RegisteredSchemaError
from kafka_msgs.records import Payload
from kafka_msgs.registry.json_values import json_form
from kafka_msgs.registry.registry_client import SchemaRegistryClient
from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver, StaticSchemas
from kafka_msgs.registry.serializers import PayloadDeserializer, PayloadSerializer

__all__ = ["open_registry", "open_schemas", "payload_decoder", "payload_encoder"]


def open_registry(url: str, timeout: float) -> SchemaRegistryClient:
    """Return a client of the registry at a URL, which may contain a user and a password. ``timeout`` is in seconds."""
    parts = urlsplit(url)
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    user, password = (None if part is None else unquote(part) for part in (parts.username, parts.password))
    return SchemaRegistryClient(address, user=user, password=password, timeout_ms=max(1, int(timeout * 1000)))


def open_schemas(source: str, timeout: float) -> SchemaResolver:
    """Return the schemas of a registry's URL, of a file with its list, or of the directory of its topic's partition.

    Raises ``OSError``, ``RegistryError``, and ``OptionError`` for an invalid URL.
    """
    if "://" in source:
        return open_registry(source, timeout)
    return StaticSchemas.from_log(source) if Path(source).is_dir() else StaticSchemas.from_file(source)


def payload_decoder(schemas: SchemaResolver) -> Callable[[Payload | None], Any]:
    """Return a function that decodes a payload to a JSON value; an invalid payload becomes its bytes and the reason."""
    deserialize = PayloadDeserializer(schemas)

    def decode(data: Payload | None) -> Any:
        try:
            return json_form(deserialize(data))
        except (PayloadError, RegisteredSchemaError) as error:
            return {"hex": (data or b"").hex(), "problem": str(error)}

    return decode


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
