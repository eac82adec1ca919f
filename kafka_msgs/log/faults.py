"""File damage as a value: functions named ``walk_...`` yield each fault in its place between the valid items.

This module handles the faults of such a walk. Functions named ``read_...`` raise the first fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from kafka_msgs.errors import LogFileError

__all__ = ["raise_on_fault", "skip_faults"]

T = TypeVar("T")


def raise_on_fault(items: Iterator[T | LogFileError]) -> Iterator[T]:
    """Yield the items of a walk up to the first fault, and raise that fault."""
    for item in items:
        if isinstance(item, LogFileError):
            raise item
        yield item


def skip_faults(items: Iterator[T | LogFileError]) -> Iterator[T]:
    """Yield the valid items of a walk, without the faults."""
    return (item for item in items if not isinstance(item, LogFileError))
