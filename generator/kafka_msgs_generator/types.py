"""The types that a field can have: their names, and what each allows.

Owns the reading of type text (``int32``, ``[]string``, ``[]TopicPartition``) and facts about the scalar types. Whether
a named struct exists is left to `kafka_msgs_generator.lower`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

__all__ = ["ENTITY_TYPES", "INTEGER_BOUNDS", "SCALARS", "FieldType", "TypeTextError", "parse_type"]

INTEGER_BOUNDS: Final[Mapping[str, tuple[int, int]]] = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
}
"""The integer types with their lowest and highest value."""

SCALARS: Final = ("bool", *INTEGER_BOUNDS, "float64", "uuid", "string", "bytes", "records")
"""Every type that is neither a struct nor an array."""

ENTITY_TYPES: Final[Mapping[str, str | None]] = {
    "unknown": None,
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}
"""The entity types, each with the scalar type of its ids (None: any)."""

_NULLABLE_SCALARS = frozenset({"string", "bytes", "records"})


class TypeTextError(ValueError):
    """Type text that names no type; ``rule`` is the rule that it breaks."""

    def __init__(self, rule: str, reason: str) -> None:
        self.rule = rule
        super().__init__(reason)


@frozen
class FieldType:
    """The type of a field: an array of ``element``, or ``element`` itself: a scalar's or a struct's name."""

    element: str
    array: bool

    @property
    def is_struct(self) -> bool:
        """Whether the elements, or the value, are structs."""
        return self.element not in SCALARS

    @property
    def nullable(self) -> bool:
        """Whether some version may allow null."""
        return self.array or self.is_struct or self.element in _NULLABLE_SCALARS

    @property
    def scalar(self) -> str | None:
        """The scalar type's name, or None for structs and arrays."""
        return None if self.array or self.is_struct else self.element

    def __str__(self) -> str:
        return f"[]{self.element}" if self.array else self.element


def parse_type(text: str) -> FieldType:
    """Read type text; raise `TypeTextError` (rules V19-V23) for text that cannot be a type.

    >>> parse_type("[] int32")
    FieldType(element='int32', array=True)
    """
    text = text.strip()
    array = text.startswith("[]")
    element = text.removeprefix("[]").strip()
    if array:
        _check_element(element)
    if element not in SCALARS and not element[:1].isupper():
        raise TypeTextError("V19", f"unknown type {element!r}; the types are {', '.join(SCALARS)}, and structs")
    return FieldType(element, array)


def _check_element(element: str) -> None:
    if not element:
        raise TypeTextError("V20", "the array type '[]' names no element type")
    if element.startswith("[]"):
        raise TypeTextError("V21", f"an array of arrays, '[]{element}', is not possible")
    if element == "records":
        raise TypeTextError("V22", "an array of records is not possible")
    if element == "bytes":
        raise TypeTextError("V23", "an array of bytes is not possible; wrap the bytes in a struct")
