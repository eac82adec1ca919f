"""The loops over the records of a magic 2 batch in C: the extension, with the words that it leaves to Python.

Importing it raises ``ImportError`` where the extension is not there or was not chosen.
"""

from __future__ import annotations

from typing import Any

from kafka_msgs.records import _speedups
from kafka_msgs.records.arguments import checked
from kafka_msgs.records.record import Part, Record, explain

__all__ = ["Collector", "read"]

if not issubclass(Record, _speedups.Storage):
    raise ImportError("another form was chosen, and the records of this process are of that")

_speedups.bind(Record, checked)
Collector = _speedups.Collector


def read(part: Part, body: bytes, at: int, end: int, count: int, *rest: Any) -> list[Any]:
    """Do what ``python.read`` does."""
    found = _speedups.read(part, body, at, end, count, *rest)
    if found is None:
        raise explain(body, at, end, count)
    return found
