"""Messages as JSON texts, one row at a time, for message types that are unknown until the query runs.

Defines the texts. They have the format of Kafka's own tools, like ``Message.to_json``. Unreadable bytes become an
object with only ``_error``. Other modules build typed columns, which do not need an object per row.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from kafka_msgs.catalog import message_by_name
from kafka_msgs.codec import Buffer
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.internal_topics.records import UnknownRecord, decode_record
from kafka_msgs.message import Message
from kafka_msgs.spark.spark_types import ERROR
from kafka_msgs.versioned import decode_versioned

__all__ = ["compact_json", "message_json", "record_json", "record_type", "versioned_json"]

_KEY: Final = "Key"


def message_json(data: Buffer | None, name: str, version: int | None = None) -> str | None:
    """Return the message in ``data`` or its error as JSON. Without ``version``, the data starts with the version."""

    def content() -> Any:
        cls, given = message_by_name(name), data or b""
        return versioned_json(cls, given) if version is None else cls.decode(given, version).to_json(version)

    return None if data is None else _text(content)


def versioned_json(cls: type[Message], data: Buffer) -> Any:
    """Return the message in data that starts with its version. Raises ``KafkaMsgsError``."""
    found: Any = decode_versioned(cls, data)
    return found.message.to_json(found.version)


def record_json(topic: str, key: Buffer | None, value: Buffer | None) -> str:
    """Return a record of an internal topic as JSON: its type, the version of its value, its key, and its value.

    The value of a tombstone is null, and so is the key if the topic's records have none.
    """

    def content() -> Any:
        record = decode_record(topic, key, value)
        if isinstance(record, UnknownRecord):
            hexes = {"key": record.key and record.key.hex(), "value": record.value and record.value.hex()}
            return {"type": str(record.record_type), "version": None, **hexes}
        return {
            "type": record_type(type(record.key or record.value)),  # type: ignore[arg-type]
            "version": record.version,
            "key": record.key and record.key.to_json(0),
            "value": record.value and record.value.to_json(record.version or 0),
        }

    return _text(content)


def record_type(cls: type[Message]) -> str:
    """Return the record type name of a message: ``OffsetCommit`` for ``OffsetCommitKey``."""
    return cls.INFO.name.removesuffix(_KEY) if cls.INFO.kind == "coordinator-key" else cls.INFO.name


def compact_json(value: Any) -> str | None:
    """Return a value as JSON without spaces, or None for None."""
    return None if value is None else json.dumps(value, separators=(",", ":"))


def _text(content: Callable[[], Any]) -> str:
    try:
        return json.dumps(content(), separators=(",", ":"))
    except KafkaMsgsError as error:
        return json.dumps({ERROR: str(error)})
