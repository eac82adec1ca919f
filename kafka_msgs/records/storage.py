"""Where a record keeps its fields: in slots, or, where the C core runs, with its offset as a number and no object.

Owns the choice of the class that ``Record`` extends. Nothing else about a record depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_msgs.codec import backend

__all__ = ["Storage"]


class _Slots:
    """Leaves the slots to the class that extends it."""

    __slots__ = ()


def _storage() -> type[_Slots]:
    if backend() != "c":
        return _Slots
    try:
        from kafka_msgs.records import _speedups
    except ImportError:
        return _Slots
    return _speedups.Storage


if TYPE_CHECKING:
    Storage = _Slots
else:
    Storage = _storage()
