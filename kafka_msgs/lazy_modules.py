"""Lazy access to generated packages: message classes are imported on first access.

Contains the shared code of every generated package's ``__init__``, in this library and in users' packages.
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

    ``modules`` maps class names to the names of their modules in ``package``. After the first access, a class becomes
    an attribute of the package, so that later accesses are free.
    """

    def getattr_(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{modules[name]}"), name)
        setattr(import_module(package), name, value)
        return value

    return getattr_, lambda: sorted([*vars(import_module(package)), *modules])
