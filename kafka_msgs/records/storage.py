"""Where a record keeps its fields: in slots, or, where the C core runs, with its offset as a number and no object.

Owns the choice of the class that ``Record`` extends. Nothing else about a record depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_msgs._backend import backend

__all__ = ["Storage"]


class _Slots:
    """Leaves the slots to the class that extends it."""

    __slots__ = ()


def _storage() -> type[_Slots]:
    if backend() != "c":
        return _Slots
    from kafka_msgs._core import extension

    return extension.RecordStorage


if TYPE_CHECKING:
    Storage = _Slots
else:
    Storage = _storage()
