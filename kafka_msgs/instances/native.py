"""Message classes whose instances the C core creates, compares, hashes and frees.

This module is imported only if the C core is in use.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Final

from kafka_msgs._core import extension

__all__ = ["evolve", "method", "seal"]

evolve = extension.evolve

_METHODS: Final[dict[str, tuple[int, tuple[str | None, ...]]]] = {
    "encode": (0, ("self", None, "version", None, "options")),
    "decode": (1, ("cls", "data", "version", None, "options")),
    "read": (2, ("cls", "buffer", "version", "offset", "options")),
}
"""The number of each method in the core, and its names for the owner, data, version, offset and options."""


def seal(cls: type[Any], fields: tuple[tuple[str, Any], ...]) -> None:
    """Prepare a class whose instances consist of slots; ``fields`` has their names and defaults."""
    cls._layout = extension.Layout(cls, fields, cls.__module__ not in sys.modules)


def method(function: Callable[..., Any]) -> Any:
    """Decorate ``encode``, ``decode`` or ``read`` of message classes.

    The result finds the codec of a class and version in C. For anything unusual it calls ``function``.
    """
    return update_wrapper(extension.Method(function, *_METHODS[function.__name__]), function)
