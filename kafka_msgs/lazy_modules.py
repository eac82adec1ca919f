"""Lazy access to generated packages: a message class is imported when it is first asked for.

Owns what the ``__init__`` of every generated package shares, the project's own and a user's alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_module_attributes"]


def lazy_module_attributes(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package.

    ``modules`` maps the names of classes to the names of their modules in ``package``. A class found once becomes an
    attribute of the package, so that the next access costs nothing.
    """

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(import_module(package), name, value)
        return value

    return getattr_, lambda: sorted([*vars(import_module(package)), *modules])
