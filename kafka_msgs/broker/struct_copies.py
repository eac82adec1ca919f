"""Copies of messages, their parts and attrs objects as objects of another class."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

from attrs import fields_dict

from kafka_msgs.schema import Struct, attribute_names

__all__ = ["copy_as"]

T = TypeVar("T")


def copy_as(cls: type[T], source: object, **changes: Any) -> T:
    """Return an object of a class with the values of the attributes that ``source`` also has, and with ``changes``."""
    return cls(**{name: getattr(source, name) for name in _common_names(cls, type(source))} | changes)


@cache
def _common_names(cls: type[Any], other: type[Any]) -> tuple[str, ...]:
    names = [set(attribute_names(each)[1:] if issubclass(each, Struct) else fields_dict(each)) for each in (cls, other)]
    return tuple(names[0] & names[1])
