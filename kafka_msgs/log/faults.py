"""What readers of files do about damage: raise it, skip it, or hand it out between what could be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, TypeVar

from kafka_msgs.errors import LogFileError

__all__ = ["OnError", "handle_faults"]

OnError: TypeAlias = Literal["raise", "skip", "yield"]
"""What to do with damage: raise the error, skip what is damaged, or yield the fault in its place."""

T = TypeVar("T")


def handle_faults(items: Iterator[T | LogFileError], on_error: OnError) -> Iterator[T | LogFileError]:
    """Yield the items, and do with the faults among them what ``on_error`` says; raises ``LogFileError`` if told to."""
    for item in items:
        if on_error == "yield" or not isinstance(item, LogFileError):
            yield item
        elif on_error == "raise":
            raise item
