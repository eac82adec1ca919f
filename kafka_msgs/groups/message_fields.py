"""Copies of a message's fields into a message of another class."""

from __future__ import annotations

from typing import Any, TypeVar

from kafka_msgs.schema import Struct, fields

__all__ = ["with_fields_of"]

S = TypeVar("S", bound=Struct)


def with_fields_of(cls: type[S], source: object, **others: Any) -> S:
    """Return a message of a class with the fields that ``source`` has under the same names, and with ``others``."""
    for each in fields(cls):
        if each.attribute not in others and hasattr(source, each.attribute):
            value: Any = getattr(source, each.attribute)
            if each.struct is not None and value is not None:
                struct: Any = each.struct
                value = (
                    tuple(with_fields_of(struct, item) for item in value)
                    if each.is_array
                    else with_fields_of(struct, value)
                )
            others[each.attribute] = value
    return cls(**others)
