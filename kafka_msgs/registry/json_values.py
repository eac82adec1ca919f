"""Single values in JSON, as schema registry serializers write them. The schema is not checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NoReturn

from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver

__all__ = ["decoder", "encoder", "parse_json"]


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
