"""Edge values of the wire types, and the fields of a class at a version.

``strategies`` and ``random_values`` share this module, so both try the same edges. It does not use random numbers.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from kafka_msgs.errors import UnsupportedVersionError
from kafka_msgs.primitive_types import Op
from kafka_msgs.schema import FieldInfo, MessageStruct, Struct, fields

MAX_TAG: Final = 2**31 - 2
"""The highest tag number that Kafka's writer accepts."""

STRINGS: Final = (
    "",
    "a",
    "orders.eu-1",
    "\0",
    "grüße",
    "日本語",
    "\U0001f99c",
    "a" * 126,
    "a" * 127,
    "é" * 63 + "a",
    "日" * 42,
    "é" * 64,
    "b" * 255,
    "b" * 256,
)
"""Strings that are empty, not ASCII, or near the limit of a one-byte length (126 bytes if null is encoded)."""

LONG_STRINGS: Final = ("c" * 16382, "c" * 16383, "語" * 5461, "d" * 16384, "e" * 32767, "é" * 16383 + "e")
"""Strings with the shortest lengths of two bytes and more, and the longest possible string: 32,767 bytes of UTF-8."""

BYTES: Final = (b"", b"\0", b"\xff", b"\x80\x81", bytes(126), bytes(127), bytes(range(256)))
"""Bytes that are empty, not UTF-8, or near the limit of a one-byte length."""

LONG_BYTES: Final = (bytes(16382), bytes(16383), b"\xfe" * 16384, b"\xfd" * 40000)
"""Bytes with the shortest lengths of two bytes and more, and some that are longer than any string."""

UUIDS: Final = (UUID(int=0), UUID(int=1), UUID(int=2**127), UUID(int=2**128 - 1))
"""The zero id, and ids at the ends of both halves."""

FLOATS: Final = (0.0, -0.0, 1.0, -1.5, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf"))
"""Both zeros, the smallest and the largest finite number, and the infinities."""


def integers(op: Op) -> tuple[int, ...]:
    """Return the integers of a type at which encodings change: the ends, around zero, and byte boundaries."""
    low, high = op.bounds
    around = (0, 1, -1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31, 2**32 - 1)
    return (low, high, *(value for value in around if low < value < high))


def check_version(cls: type[MessageStruct], version: int) -> None:
    """Raise ``UnsupportedVersionError`` for a version that the message does not have."""
    if version not in cls.INFO.versions:
        raise UnsupportedVersionError(message=cls.INFO.name, version=version, supported=cls.INFO.versions)


def present_fields(cls: type[Struct], version: int) -> list[FieldInfo]:
    """Return the positional and tagged fields of a class at a version."""
    return [info for info in fields(cls) if version in info.versions]


def declared_tags(cls: type[Struct]) -> frozenset[int]:
    """Return the tags that a class declares in any version. Unknown tags must differ from them."""
    return frozenset(info.tag for info in fields(cls) if info.tag is not None)


def default_is_allowed(info: FieldInfo, version: int) -> bool:
    """Return whether a field may have its default at a version. The default None requires a nullable field."""
    return info.default is not None or version in info.nullable
