"""Changes of hard state that can be undone.

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

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol, TypeVar

from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap

__all__ = ["WITHOUT_UNDO", "Changes", "TableEntry", "UndoEntry", "UndoLog"]

K = TypeVar("K")
V = TypeVar("V")

_ABSENT: Final = object()

UndoEntry = tuple[Any, Any, Any]
"""A table or an object, the key or the name of the attribute, and the value before the change."""


TableEntry = tuple[Any, TimelineHashMap[Any, Any]]
"""A key and its table."""

_Places = dict[tuple[int, Any], TableEntry]
"""Entries by their identity: the identity of the table, and the key."""


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

    __slots__ = ("_capacities", "_changes", "_orders")

    def __init__(self) -> None:
        self._changes: list[UndoEntry] = []
        self._orders: dict[int, tuple[TimelineHashMap[Any, Any], list[Any]]] = {}
        self._capacities: list[tuple[TimelineHashMap[Any, Any], int]] = []

    def __len__(self) -> int:
        """The number of changes that can be undone. ``undo`` takes it as a mark."""
        return len(self._changes)

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        """Set ``table[key]``."""
        self._changes.append((table, key, table.get(key, _ABSENT)))
        if isinstance(table, TimelineHashMap):
            capacity = table.capacity
            table[key] = value
            if table.capacity != capacity:
                self._capacities.append((table, capacity))
        else:
            table[key] = value

    def delete(self, table: dict[K, V], key: K) -> None:
        """Remove ``key`` from ``table`` if it is present."""
        if key in table:
            if isinstance(table, TimelineHashMap) and id(table) not in self._orders:
                self._orders[id(table)] = (table, list(table))
            self._changes.append((table, key, table.pop(key)))

    def assign(self, target: object, attribute: str, value: object) -> None:
        """Set an attribute of an object that is not a dict."""
        self._changes.append((target, attribute, getattr(target, attribute)))
        setattr(target, attribute, value)

    def begin_operation(self) -> int:
        """Begin an operation. Return the mark for ``roll_back``."""
        self._forget_step()
        return len(self._changes)

    def roll_back(self, mark: int) -> None:
        """Undo the changes of the current operation. Each entry keeps its original position."""
        self.undo(mark)
        for table, order in self._orders.values():
            _arrange(table, [key for key in order if key in table])
        for table, capacity in reversed(self._capacities):
            table.capacity = capacity
        self._forget_step()

    def _forget_step(self) -> None:
        self._orders.clear()
        self._capacities.clear()

    def undo(self, mark: int) -> list[UndoEntry]:
        """Undo all changes after the first ``mark`` changes, the latest first.

        Return the changes that redo them, the last one first.
        """
        undone: list[UndoEntry] = []
        changes = self._changes
        while len(changes) > mark:
            undone.append(_swap(*changes.pop()))
        return undone

    def revert_as_kafka(self, mark: int, returned: Sequence[TableEntry] = ()) -> list[TableEntry]:
        """Undo all changes after the first ``mark`` changes, as Kafka does after a failed append.

        Kafka removes the changed entries of its tables and puts the former ones back. So they become the newest
        entries, in the order of the snapshot, in which the entries of ``returned`` came first. Return the changed
        entries.
        """
        touched = self._touched(mark, len(self._changes))
        self.undo(mark)
        self._forget_step()
        order = {**_places(returned), **touched}
        entries = [entry for place, entry in order.items() if place in touched and entry[0] in entry[1]]
        for key, table in entries:
            table[key] = table.pop(key)
        return entries

    @contextmanager
    def rewound(self, snapshots: Iterable[tuple[int, Sequence[TableEntry]]] = ()) -> Iterator[None]:
        """Restore the state before all changes that can be undone, for the duration of the context.

        The state must not change in the meantime. Iterating over a table lists the unchanged entries, then the entries
        that Kafka keeps in its snapshots. ``snapshots`` has for each snapshot, the oldest first, the number of changes
        that follow it, and the entries that a failed append restored to it. Remaining changes belong to one more
        snapshot.
        """
        changed, kept = self._kept(snapshots)
        orders = [(table, list(table)) for table in {id(table): table for _, table in changed.values()}.values()]
        undone = self.undo(0)
        listed = {id(table): [each for each in table if (id(table), each) not in changed] for _, table in kept}
        for key, table in kept:
            if key in table:
                listed[id(table)].append(key)
            table.listed = listed[id(table)]
        try:
            yield
        finally:
            for _, table in kept:
                table.listed = None
            for change in reversed(undone):
                self._changes.append(_swap(*change))
            for table, order in orders:
                _arrange(table, order)

    def _kept(self, snapshots: Iterable[tuple[int, Sequence[TableEntry]]]) -> tuple[_Places, list[TableEntry]]:
        """Return the changes, and the snapshot entries. Entries that changed before a snapshot are excluded."""
        changed: _Places = {}
        kept: list[TableEntry] = []
        mark = 0
        for count, returned in (*snapshots, (len(self._changes), ())):
            touched = self._touched(mark, mark + count)
            kept.extend(entry for place, entry in {**_places(returned), **touched}.items() if place not in changed)
            changed.update(touched)
            mark += count
        return changed, kept

    def _touched(self, start: int, end: int) -> _Places:
        """Return the entries that changed between two marks, in the order of the first change."""
        changes = self._changes[start:end]
        return _places((key, table) for table, key, _ in changes if isinstance(table, TimelineHashMap))

    def forget(self, count: int) -> None:
        """Drop the oldest ``count`` changes. They cannot be undone any more."""
        del self._changes[:count]


def _places(entries: Iterable[TableEntry]) -> _Places:
    return {(id(table), key): (key, table) for key, table in entries}


def _arrange(table: TimelineHashMap[Any, Any], order: list[Any]) -> None:
    """Rearrange a table to the order of its keys."""
    if list(table) != order:
        entries = [(key, table[key]) for key in order]
        table.clear()
        table.update(entries)


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
