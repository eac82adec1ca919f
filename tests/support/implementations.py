"""The implementations of a package that tests compare: its modules ``python`` and, where that runs, ``native``."""

from __future__ import annotations

from types import ModuleType

from kafka_msgs._backend import backend, backend_module

__all__ = ["implementations", "name_of"]


def implementations(package: str) -> list[ModuleType]:
    """Those that can run in this process: records in C need the class that the backend ``c`` makes of them."""
    return [backend_module(package, name) for name in ("python", *(["c"] if backend() == "c" else []))]


def name_of(module: ModuleType) -> str:
    """``native`` or ``python``."""
    return module.__name__.rpartition(".")[2]
