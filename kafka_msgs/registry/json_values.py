"""Single values in JSON, as schema registry serializers write them. The schema is not checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from kafka_msgs.registry.schemas import RegisteredSchema, SchemaResolver

__all__ = ["decoder", "encoder"]


def encoder(schema: RegisteredSchema, schemas: SchemaResolver, message: str | None) -> Callable[[Any], bytes]:
    """Return the function that encodes values."""
    return lambda value: json.dumps(value, allow_nan=False).encode()


def decoder(
    writer: RegisteredSchema, reader: RegisteredSchema | None, schemas: SchemaResolver, message: str | None
) -> Callable[[bytes], Any]:
    """Return the function that decodes values."""
    return json.loads
