"""The records of a batch as a sequence that builds them on access.

This module decides which records are built together. ``batch`` checks them first and provides the read function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias, overload

from kafka_msgs.binary_layouts import MARK_INTERVAL
from kafka_msgs.records.record import Record

__all__ = ["LazyRecords", "ReadRecords"]

ReadRecords: TypeAlias = Callable[[int, int, int], list[Record]]
"""Reads a number of records between two positions."""


class LazyRecords(Sequence[Record]):
    """The records of a batch. All records are already checked, and each access builds its records again.

    The sequence keeps the decompressed bytes of the batch alive, and needs little more memory than these. Iteration
    builds 128 records at a time, in either direction. An index builds up to 128 records, and a slice the records that
    it spans.
    """

    __slots__ = ("_count", "_marks", "_read")

    def __init__(self, marks: list[int], count: int, read: ReadRecords) -> None:
        self._marks = marks
        self._count = count
        self._read = read

    def __repr__(self) -> str:
        return f"<LazyRecords: {self._count} records>"

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Record]:
        return chain.from_iterable(map(self._marked, range(len(self._marks) - 1)))

    def __reversed__(self) -> Iterator[Record]:
        return chain.from_iterable(reversed(self._marked(mark)) for mark in reversed(range(len(self._marks) - 1)))

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        """Return one record, or a list of some; raises ``IndexError``."""
        places = range(self._count)[index]
        if isinstance(places, int):
            mark, place = divmod(places, MARK_INTERVAL)
            return self._marked(mark)[place]
        if not places:
            return []
        first, last = sorted((places[0] // MARK_INTERVAL, places[-1] // MARK_INTERVAL))
        made = list(chain.from_iterable(map(self._marked, range(first, last + 1))))
        return [made[place - first * MARK_INTERVAL] for place in places]

    def _marked(self, mark: int) -> list[Record]:
        """Build the records from one mark to the next."""
        count = min(MARK_INTERVAL, self._count - mark * MARK_INTERVAL)
        return self._read(self._marks[mark], self._marks[mark + 1], count)
