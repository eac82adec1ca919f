"""Unmodified attrs message classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import attrs

__all__ = ["evolve", "method", "seal"]

V = TypeVar("V")
Function = TypeVar("Function", bound=Callable[..., Any])


def seal(cls: type[Any], fields: tuple[tuple[str, Any], ...]) -> None:
    """Prepare a class whose instances consist of slots; ``fields`` has their names and defaults."""


def evolve(value: V, /, **changes: Any) -> V:
    """Return a copy of a message or of a nested struct with some of its fields changed.

    Does the same as ``attrs.evolve``, and is faster with the C core. Raises ``TypeError`` for a name that is not a
    field.
    """
    return attrs.evolve(value, **changes)  # type: ignore[misc]


def method(function: Function) -> Function:
    """Decorate ``encode``, ``decode`` or ``read`` of message classes."""
    return function
