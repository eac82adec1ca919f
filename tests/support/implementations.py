"""Implementations of a package that tests compare: its ``python`` module and, if it runs here, ``native``."""

from __future__ import annotations

from types import ModuleType

from kafka_msgs._backend import backend, backend_module

__all__ = ["implementations", "name_of"]


def implementations(package: str) -> list[ModuleType]:
    """Return the implementations that run in this process. C records require the class created by the backend ``c``."""
    return [backend_module(package, name) for name in ("python", *(["c"] if backend() == "c" else []))]


def name_of(module: ModuleType) -> str:
    """Return ``native`` or ``python``."""
    return module.__name__.rpartition(".")[2]
