"""The types that a field can have: ``kafka_msgs.primitive_types`` and structs, and arrays of them.

Parses type text (``int32``, ``[]string``, ``[]TopicPartition``). `kafka_msgs_generator.lower` checks that named structs
exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import frozen

from kafka_msgs.primitive_types import PRIMITIVES, Op

__all__ = ["ENTITY_TYPES", "FieldType", "TypeTextError", "parse_type"]

ENTITY_TYPES: Final[Mapping[str, str | None]] = {
    "unknown": None,
    "transactionalId": "string",
    "producerId": "int64",
    "groupId": "string",
    "topicName": "string",
    "brokerId": "int32",
}
"""The entity types, each with the scalar type of its ids (None: any)."""


class TypeTextError(ValueError):
    """Text that is not a type; ``rule`` is the rule that it breaks."""

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
        return self.element not in PRIMITIVES

    @property
    def nullable(self) -> bool:
        """Whether some version may allow null."""
        return self.array or self.is_struct or PRIMITIVES[self.element].kind.nullable

    @property
    def scalar(self) -> str | None:
        """The scalar type's name, or None for structs and arrays."""
        return None if self.array or self.is_struct else self.element

    @property
    def op(self) -> Op:
        """The type on the wire."""
        return Op.ARRAY if self.array else PRIMITIVES.get(self.element, Op.STRUCT)

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
    if element not in PRIMITIVES and not element[:1].isupper():
        raise TypeTextError("V19", f"unknown type {element!r}; the types are {', '.join(PRIMITIVES)}, and structs")
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
