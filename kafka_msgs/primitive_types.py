"""The table of Kafka's wire types (protocol guide, section "Protocol Primitive Types").

A row of ``Op`` is one type, and ``Kind`` groups similar types. The generator, the codec executors, the columns and
``kafka_msgs.testing`` derive their tables from these two, and ``_core/ops.h`` is generated from them. They distinguish
kinds, so adding an integer type means adding a row. Arrow types are given as text, so this module has no dependencies.
"""

from __future__ import annotations

from enum import Enum, IntEnum
from struct import calcsize
from typing import Final, TypeAlias
from uuid import UUID

from kafka_msgs.primitives import ZERO_UUID

__all__ = ["PRIMITIVES", "Kind", "Op"]

_Default: TypeAlias = bool | int | float | UUID | str | bytes | tuple[()] | None


class Kind(Enum):
    """The types with values of one Python type.

    ``python`` is that type, ``json`` are the types of the JSON form, ``default`` is the value of a field whose
    definition has no default, and only ``nullable`` kinds have a null on the wire.
    """

    BOOLEAN = (bool, (bool,), False)
    INTEGER = (int, (int,), 0)
    FLOAT = (float, (int, float), 0.0)
    UUID = (UUID, (str,), ZERO_UUID)
    """The JSON form is URL-safe base64 without padding."""
    TEXT = (str, (str,), "", True)
    """UTF-8 after a length."""
    BINARY = (bytes, (str,), b"", True)
    """Bytes after a length. The JSON form is base64."""
    ARRAY = (tuple, (list,), (), True)
    STRUCT = (object, (dict,), None, True)

    def __init__(
        self, python: type[object], json: tuple[type[object], ...], default: _Default, nullable: bool = False
    ) -> None:
        self.python: Final = python
        self.json: Final = json
        self.default: Final = default
        self.nullable: Final = nullable


class Op(IntEnum):
    """The type of a value on the wire. All numbers are big-endian. The types of fixed size come first.

    ``code`` is the code for ``struct``, ``size`` the bytes of every value (0 if that varies), ``arrow`` the name of the
    Arrow type, and ``length_size`` the bytes of a length, or of the marker of a struct, that is not compact.
    """

    BOOL = (Kind.BOOLEAN, "?", "bool")
    """One byte; zero is false, anything else true, written as 1."""
    INT8 = (Kind.INTEGER, "b", "int8")
    INT16 = (Kind.INTEGER, "h", "int16")
    INT32 = (Kind.INTEGER, "i", "int32")
    INT64 = (Kind.INTEGER, "q", "int64")
    UINT16 = (Kind.INTEGER, "H", "int32")
    """Unsigned types have the next larger type in Arrow, because Spark has no unsigned types."""
    UINT32 = (Kind.INTEGER, "I", "int64")
    FLOAT64 = (Kind.FLOAT, "d", "float64")
    """IEEE 754 binary64."""
    UUID = (Kind.UUID, "16s", "string")
    """16 bytes, most significant first. The text in Arrow has 36 characters."""
    STRING = (Kind.TEXT, "", "string", 2)
    """Length (int16, or compact) and UTF-8."""
    BYTES = (Kind.BINARY, "", "binary", 4)
    """Length (int32, or compact) and raw bytes."""
    RECORDS = (Kind.BINARY, "", "binary", 4)
    """Like bytes. The content is record batches, which are not decoded here."""
    ARRAY = (Kind.ARRAY, "", "list", 4)
    """Count (int32, or compact) and the elements."""
    STRUCT = (Kind.STRUCT, "", "struct", 1)
    """The fields in order, then a tag section in flexible versions; nullable ones start with a marker."""

    _value_: int
    kind: Kind
    code: str
    size: int
    arrow: str
    length_size: int

    def __new__(cls, kind: Kind, code: str, arrow: str, length_size: int = 0) -> Op:
        op = int.__new__(cls, len(cls.__members__))
        op._value_ = len(cls.__members__)
        op.kind, op.code, op.size, op.arrow, op.length_size = kind, code, calcsize(f">{code}"), arrow, length_size
        return op

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest value of an integer type."""
        bits = 8 * self.size
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if self.code.islower() else (0, (1 << bits) - 1)


PRIMITIVES: Final = {op.name.lower(): op for op in Op if op.kind not in (Kind.ARRAY, Kind.STRUCT)}
"""The types that are neither arrays nor structs, by their names in definitions."""
