"""Uncommitted changes with the order of Kafka's tables: after failed appends, and in snapshots.

Kafka's tables are ``TimelineHashMap``. After a failed append it removes their changed entries and puts the former ones
back, so these become the newest entries. A read of the last committed state lists unchanged entries first, then the
entries of its snapshots, and lists an entry once for each failed append that restored it. Only the order and these
repetitions differ from ``UncommittedChanges``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap
from kafka_msgs.groups.runtime.uncommitted_changes import DeferredWrite, UncommittedChanges
from kafka_msgs.groups.runtime.undo_log import UndoLog, redo

__all__ = ["KafkaUncommittedChanges", "KafkaUndoLog", "TableEntry"]

K = TypeVar("K")
V = TypeVar("V")

TableEntry = tuple[Any, TimelineHashMap[Any, Any]]
"""A key and its table."""

_Places = dict[tuple[int, Any], TableEntry]
"""Entries by their identity: the identity of the table, and the key."""


class KafkaUndoLog(UndoLog):
    """An undo log that also restores the order and the capacity of tables."""

    __slots__ = ("_capacities", "_orders")

    def __init__(self) -> None:
        super().__init__()
        self._orders: dict[int, tuple[TimelineHashMap[Any, Any], list[Any]]] = {}
        self._capacities: list[tuple[TimelineHashMap[Any, Any], int]] = []

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        """Set ``table[key]``."""
        capacity = table.capacity if isinstance(table, TimelineHashMap) else 0
        super().set(table, key, value)
        if isinstance(table, TimelineHashMap) and table.capacity != capacity:
            self._capacities.append((table, capacity))

    def delete(self, table: dict[K, V], key: K) -> None:
        """Remove ``key`` from ``table`` if it is present."""
        if key in table and isinstance(table, TimelineHashMap) and id(table) not in self._orders:
            self._orders[id(table)] = (table, list(table))
        super().delete(table, key)

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
    def rewound_to(self, snapshots: Iterable[tuple[int, Sequence[TableEntry]]] = ()) -> Iterator[None]:
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
            redo(self, undone)
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


def _places(entries: Iterable[TableEntry]) -> _Places:
    return {(id(table), key): (key, table) for key, table in entries}


def _arrange(table: TimelineHashMap[Any, Any], order: list[Any]) -> None:
    """Rearrange a table to the order of its keys."""
    if list(table) != order:
        entries = [(key, table[key]) for key in order]
        table.clear()
        table.update(entries)


class KafkaUncommittedChanges(UncommittedChanges):
    """Uncommitted changes in Kafka's order."""

    journal: KafkaUndoLog

    def __init__(self) -> None:
        super().__init__(KafkaUndoLog())
        self._returned: list[TableEntry] = []
        self._returned_before: deque[list[TableEntry]] = deque()

    def begin(self) -> None:
        """Begin an operation."""
        super().begin()
        self.journal.begin_operation()

    def fail_operation(self) -> None:
        """Undo the current operation."""
        self.journal.roll_back(self._mark)

    def fail_batch(self) -> None:
        """Undo all changes after the last batch in flight."""
        self._returned.extend(self.journal.revert_as_kafka(self._in_flight, self._returned))

    def record_append(self, end: int, step: DeferredWrite) -> None:
        """Record the append of all changes so far, before the offset ``end``. The operation waits for its commit."""
        super().record_append(end, step)
        self._returned_before.append(self._returned)
        self._returned = []

    def committed(self, offset: int) -> list[DeferredWrite]:
        """Drop the undo entries before an offset. Return the operations that waited for it."""
        steps = super().committed(offset)
        while len(self._returned_before) > len(self._flights):
            self._returned_before.popleft()
        return steps

    @contextmanager
    def at_last_commit(self) -> Iterator[None]:
        """Restore the state as of the last commit, for the duration of the context."""
        counts = [*(flight.changes for flight in self._flights), len(self.journal) - self._in_flight]
        snapshots = list(zip(counts, [*self._returned_before, self._returned], strict=True))
        if not any(map(any, snapshots)):
            yield
            return
        with self.journal.rewound_to(snapshots):
            yield
