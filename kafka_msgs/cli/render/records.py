"""The contents of records as JSON values: keys, values and headers; internal topics decoded by message.

UTF-8 bytes are text, and other bytes are ``{"hex": ...}``, unless the caller selects a decoder.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from struct import Struct
from typing import Any, Final

from kafka_msgs.cli.render.nested_messages import readable_json
from kafka_msgs.internal_topics.records import TopicRecord, decode_record
from kafka_msgs.message import Message
from kafka_msgs.records import ConsumerRecord, Payload, Record

__all__ = ["DECODERS", "content_of", "headers_of", "message_json", "text_of", "typed"]

AnyRecord = Record | ConsumerRecord


def content_of(record: AnyRecord, topic: str | None, keys: str | None, values: str | None) -> dict[str, Any]:
    """Return the key and the value of a record: of an internal ``topic``, or with the named ``DECODERS``."""
    if topic is not None:
        return typed(record, topic)
    return {"key": DECODERS[keys or "text"](record.key), "value": DECODERS[values or "text"](record.value)}


def typed(record: AnyRecord, topic: str) -> dict[str, Any]:
    """Return the key and the value of a record of an internal topic, decoded by their messages."""
    typed = decode_record(topic, record.key, record.value)
    if not isinstance(typed, TopicRecord):
        return {"type": typed.record_type, "key": text_of(typed.key), "value": text_of(typed.value)}
    named = typed.value if typed.key is None else typed.key
    facts = {"type": named.INFO.name if named else None, "version": typed.version}
    return facts | {"key": message_json(typed.key, 0), "value": message_json(typed.value, typed.version)}


def message_json(message: Message | None, version: int | None) -> Any:
    """Return a message as JSON; without a version, its lowest version is used."""
    if message is None:
        return None
    return readable_json(message, message.INFO.versions.lowest if version is None else version)


def headers_of(record: AnyRecord) -> list[list[Any]]:
    """Return the headers as pairs."""
    return [[text_of(name.encode("utf-8", "surrogateescape")), text_of(value)] for name, value in record.headers]


def text_of(data: Payload | None) -> Any:
    """Return bytes as text, or as ``{"hex": ...}`` if they are not UTF-8."""
    if data is None:
        return None
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return _hex(data)


def _hex(data: Payload | None) -> Any:
    return None if data is None else {"hex": data.hex()}


def _number(layout: str) -> Callable[[Payload | None], Any]:
    """Return a decoder for numbers written by Kafka's serializers; bytes of another length stay bytes."""
    number = Struct(layout)

    def read(data: Payload | None) -> Any:
        return number.unpack(data)[0] if data is not None and len(data) == number.size else _hex(data)

    return read


DECODERS: Final[Mapping[str, Callable[[Payload | None], Any]]] = {
    "text": text_of,
    "hex": _hex,
    "base64": lambda data: None if data is None else b64encode(data).decode("ascii"),
    "integer": _number(">i"),
    "long": _number(">q"),
}
"""Decoders for the bytes of a key or a value, with the names of Kafka's number serializers."""
