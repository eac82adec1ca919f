"""Copies of messages, their parts and attrs objects as objects of another class."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from attrs import fields_dict

from kafka_msgs.schema import Struct, attribute_names

__all__ = ["copy_as"]

T = TypeVar("T")


def copy_as(cls: Callable[..., T], source: Any, **changes: Any) -> T:
    """Return an object of a class with the values of the attributes that ``source`` also has, and with ``changes``."""
    names = _attribute_names(cls) & _attribute_names(source.__class__)
    return cls(**{name: getattr(source, name) for name in names} | changes)


@cache
def _attribute_names(cls: Any) -> frozenset[str]:
    return frozenset(attribute_names(cls)[1:] if issubclass(cls, Struct) else fields_dict(cls))
