"""Hard state, its appliers, and changes of it that can be undone; soft state.

A coordinator changes its state before the records of the change are in the log. If the append fails, the change is
undone. So each change goes through an undo log, which stores the inverse of the change. Appliers get the undo log as an
argument. Changes of loaded records need no undo, so ``WITHOUT_UNDO`` changes the state without an undo log.

>>> journal, table = UndoLog(), {"a": 1}
>>> journal.set(table, "b", 2)
>>> journal.delete(table, "a")
>>> _ = journal.undo(0)
>>> table
{'a': 1}
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from kafka_msgs.internal_topics.records import NO_PRODUCER

__all__ = ["WITHOUT_UNDO", "Applier", "Changes", "HardState", "SoftState", "UndoLog", "redo"]

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Final = object()

UndoEntry = tuple[Any, Any, Any]
"""A table or an object, the key or the name of the attribute, and the value before the change."""


class Changes(Protocol):
    """The three ways to change hard state. Appliers use only these."""

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        """Set ``table[key]``."""

    def delete(self, table: dict[K, V], key: K) -> None:
        """Remove ``key`` from ``table`` if it is present."""

    def assign(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute of an object that is not a dict."""


class UndoLog:
    """Makes changes, and can undo the latest ones."""

    __slots__ = ("_changes",)

    def __init__(self) -> None:
        self._changes: list[UndoEntry] = []

    def __len__(self) -> int:
        """The number of changes that can be undone. ``undo`` takes it as a mark."""
        return len(self._changes)

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        """Set ``table[key]``."""
        self._changes.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def delete(self, table: dict[K, V], key: K) -> None:
        """Remove ``key`` from ``table`` if it is present."""
        if key in table:
            self._changes.append((table, key, table.pop(key)))

    def assign(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute of an object that is not a dict."""
        self._changes.append((target, attribute, getattr(target, attribute)))
        setattr(target, attribute, value)

    def undo(self, mark: int) -> list[UndoEntry]:
        """Undo all changes after the first ``mark`` changes, the latest first.

        Return the changes that redo them, the last one first.
        """
        undone: list[UndoEntry] = []
        changes = self._changes
        while len(changes) > mark:
            undone.append(_swap(*changes.pop()))
        return undone

    @contextmanager
    def rewound(self) -> Iterator[None]:
        """Restore the state before all changes that can be undone, for the duration of the context.

        The state must not change in the meantime.
        """
        undone = self.undo(0)
        try:
            yield
        finally:
            redo(self, undone)

    def forget(self, count: int) -> None:
        """Drop the oldest ``count`` changes. They cannot be undone any more."""
        del self._changes[:count]


def redo(log: UndoLog, undone: list[UndoEntry]) -> None:
    """Make changes again that ``undo`` returned."""
    for change in reversed(undone):
        log._changes.append(_swap(*change))


def _swap(target: Any, key: Any, value: Any) -> UndoEntry:
    """Restore a value; return the change that restores the current value."""
    if not isinstance(target, dict):
        present = getattr(target, key)
        setattr(target, key, value)
    elif value is _ABSENT:
        present = target.pop(key)
    else:
        present = target.get(key, _ABSENT)
        target[key] = value
    return target, key, present


class _Direct:
    """Changes that cannot be undone."""

    __slots__ = ()

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        table[key] = value

    def delete(self, table: dict[K, V], key: K) -> None:
        table.pop(key, None)

    def assign(self, target: object, attribute: str, value: object) -> None:
        setattr(target, attribute, value)


WITHOUT_UNDO: Final[Changes] = _Direct()
"""Changes without an undo log, for loading."""


T = TypeVar("T")


class HardState:
    """The recorded state of one partition. A coordinator adds its tables.

    ``position``, ``producer_id`` and ``now`` describe the record that is being applied: its offset in the log, the
    producer of its transaction, and the time in ms.
    """

    __slots__ = ("now", "position", "producer_id")

    def __init__(self) -> None:
        self.position = 0
        self.now = 0
        self.producer_id = NO_PRODUCER


Applier: TypeAlias = Callable[[Any, Changes, Any, Any], None]
"""Applies the records of one key class. Its arguments are the state, the changes, the key, and the value or None."""


class SoftState:
    """The unrecorded state of a shard. It is lost with the leadership of the partition."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[type[Any], Any] = {}

    def get(self, cls: type[T]) -> T:
        """Return the instance of a class. It is created, without arguments, on first use."""
        part: T | None = self._parts.get(cls)
        if part is None:
            part = self._parts[cls] = cls()
        return part
