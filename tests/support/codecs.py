"""Helpers for codec tests: codecs of a named executor, and small messages for single rules."""

from __future__ import annotations

from types import new_class
from typing import Any

import attrs

from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions
from kafka_msgs.codec.codec import Codec
from kafka_msgs.codec.executors import EXECUTORS
from kafka_msgs.codec.plan import compile_plan
from kafka_msgs.message import Message
from kafka_msgs.schema import MessageInfo, Struct, frozen

_codecs: dict[tuple[Any, ...], Codec[Any]] = {}


def codec(executor: str, cls: Any, version: int, options: CodecOptions = DEFAULT_OPTIONS) -> Codec[Any]:
    """Return the cached codec of a class and version over a named executor."""
    key = (executor, cls, version, options)
    if key not in _codecs:
        _codecs[key] = Codec(compile_plan(cls, version), options, EXECUTORS[executor])
    return _codecs[key]


@attrs.frozen
class Codecs:
    """Codecs over one executor, independent of the environment."""

    executor: str

    def encode(self, message: Message, version: int, options: CodecOptions = DEFAULT_OPTIONS) -> bytes:
        """Return the bytes of a message."""
        return codec(self.executor, type(message), version, options).encode(message)

    def decode(self, cls: type[Message], data: Any, version: int, options: CodecOptions = DEFAULT_OPTIONS) -> Any:
        """Return the message in ``data``; hexadecimal text is converted to bytes."""
        return codec(self.executor, cls, version, options).decode(unhex(data))

    def read(
        self, cls: type[Message], data: Any, version: int, offset: int, options: CodecOptions = DEFAULT_OPTIONS
    ) -> tuple[Any, int]:
        """Return the message at an offset, and the offset after it."""
        return codec(self.executor, cls, version, options).read(unhex(data), offset)


def unhex(data: Any) -> Any:
    """Return the bytes of hexadecimal text with any spacing. Return any other value unchanged."""
    return bytes.fromhex(data) if isinstance(data, str) else data


def struct_class(name: str, /, **fields: Any) -> type[Any]:
    """Return a nested class with the given fields (see ``kafka_msgs.schema.field``)."""
    return _make(name, fields, Struct, {})


def message_class(name: str, /, versions: str = "0", flexible: str = "none", **fields: Any) -> type[Any]:
    """Return a message class with the given fields."""
    info = MessageInfo(name=name, kind="data", versions=versions, flexible=flexible)
    return _make(name, fields, Message, {"INFO": info})


def _make(name: str, fields: dict[str, Any], base: type[Any], body: dict[str, Any]) -> type[Any]:
    written = {"__module__": __name__, "__annotations__": dict.fromkeys(fields, Any)} | body | fields
    made = new_class(name, (base,), exec_body=lambda namespace: namespace.update(written))
    return frozen(kw_only=True, repr=False, eq=False, weakref_slot=False)(made)
