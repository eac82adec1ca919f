"""Request handlers. Each module that handles a family of APIs has a table ``HANDLERS``.

A module may also have a function ``attach(cluster)``, which runs when a cluster is created and registers, for example,
listeners.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Final

from kafka_msgs.broker.server_call import ApiHandler

__all__ = ["HANDLER_MODULES", "iter_handlers"]

HANDLER_MODULES: Final = tuple(import_module(f"{__name__}.{each.name}") for each in iter_modules(__path__))
"""The modules, imported with this package, so that the first cluster starts as fast as later ones."""


def iter_handlers() -> Iterator[ApiHandler[Any]]:
    """Yield all handlers."""
    for module in HANDLER_MODULES:
        yield from getattr(module, "HANDLERS", ())
