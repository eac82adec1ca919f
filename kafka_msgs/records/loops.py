"""The forms of the loops over records by name, and the one that runs: chosen as the codec's executor is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from attrs import frozen

from kafka_msgs._backend import backend
from kafka_msgs.records import python

__all__ = ["PYTHON", "Loops", "loops", "native"]


@frozen
class Loops:
    """One form: what reads the records of a batch, and what collects records for one.

    Both have the signatures and the behaviour of what bears their name in ``python``.
    """

    name: str
    read: Callable[..., list[Any]]
    collector: Callable[..., Any]


PYTHON: Final = Loops("python", python.read, python.Collector)


@cache
def native() -> Loops | None:
    """Return the form in C, or None where another one was chosen: the records of this process are of that."""
    if backend() != "c":
        return None
    module = import_module("kafka_msgs.records.native")
    return Loops("c", module.read, module.Collector)


@cache
def loops() -> Loops:
    """Return the form that ``KAFKA_MSGS_BACKEND`` chooses; Python's also stands in for the reference interpreter."""
    return (native() if backend() == "c" else None) or PYTHON
