"""Functions for responses with a result for each of several topics, partitions or other resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.schema import Struct, fields

__all__ = ["element_class", "group_by_key", "outcome_of"]

K = TypeVar("K")
P = ParamSpec("P")
T = TypeVar("T")


def element_class(cls: type[Struct], attribute: str) -> type[Struct] | None:
    """Return the class of the elements of an array."""
    return next(each.struct for each in fields(cls) if each.attribute == attribute)


def outcome_of(step: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T | RequestRefusedError:
    """Return the result of a function, or the ``RequestRefusedError`` that it raises."""
    try:
        return step(*arguments, **options)
    except RequestRefusedError as error:
        return error


def group_by_key(pairs: Iterable[tuple[K, T]]) -> dict[K, tuple[T, ...]]:
    """Return the values of each key, for example the partitions of each topic."""
    found: dict[K, list[T]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return {key: tuple(values) for key, values in found.items()}
