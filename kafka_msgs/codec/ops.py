"""The types of values in Kafka's messages (protocol guide, section "Protocol Primitive Types").

An ``Op`` is the type of a value. The plan also has flags for the form of the length and for null. Fixed sizes and
``struct`` codes are only in this table, and every executor reads it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

__all__ = ["FIXED", "MAX_LENGTH", "MAX_STRING", "MAX_TAG", "MAX_TAGS", "PRIMITIVES", "SKIP", "LengthFlag", "Op"]

MAX_STRING: Final = 32767
"""The longest string in bytes of UTF-8. It is Kafka's limit, also for lengths that could hold more."""

MAX_LENGTH: Final = 0x7FFFFFFF
"""The longest bytes field and the longest array."""

MAX_TAG: Final = 0x7FFFFFFF
"""The highest tag number."""

MAX_TAGS: Final = 10_000
"""The most tagged fields that one section may have (Kafka's limit, since 4.4.0)."""


class Op(IntEnum):
    """The type of a value on the wire. All integers are big-endian."""

    BOOL = 0
    """One byte; zero is false, anything else true, written as 1."""
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    UINT16 = 5
    UINT32 = 6
    FLOAT64 = 7
    """IEEE 754 binary64."""
    UUID = 8
    """16 bytes, most significant first."""
    STRING = 9
    """Length (int16, or compact) and UTF-8."""
    BYTES = 10
    """Length (int32, or compact) and raw bytes."""
    RECORDS = 11
    """Like bytes. The content is record batches, which are not decoded here."""
    ARRAY = 12
    """Count (int32, or compact) and the elements."""
    STRUCT = 13
    """The fields in order, then a tag section in flexible versions; nullable ones start with a marker."""


class LengthFlag(IntEnum):
    """How a value is written: with a compact length, or with a null. Also whether it is decoded as a view, or not."""

    COMPACT = 1
    NULLABLE = 2
    ZERO_COPY = 4
    SKIPPED = 8


SKIP: Final = len(Op)
"""A number that is not an op. In the programs of columns it means bytes to skip."""

FIXED: Final = {
    Op.BOOL: ("?", 1),
    Op.INT8: ("b", 1),
    Op.INT16: ("h", 2),
    Op.INT32: ("i", 4),
    Op.INT64: ("q", 8),
    Op.UINT16: ("H", 2),
    Op.UINT32: ("I", 4),
    Op.FLOAT64: ("d", 8),
    Op.UUID: ("16s", 16),
}
"""Code for ``struct`` (after ``>``) and size in bytes of the values whose size never varies."""

PRIMITIVES: Final = {
    "bool": Op.BOOL,
    "int8": Op.INT8,
    "int16": Op.INT16,
    "int32": Op.INT32,
    "int64": Op.INT64,
    "uint16": Op.UINT16,
    "uint32": Op.UINT32,
    "float64": Op.FLOAT64,
    "uuid": Op.UUID,
    "string": Op.STRING,
    "bytes": Op.BYTES,
    "records": Op.RECORDS,
}
"""The op of each type name of the schema language."""
