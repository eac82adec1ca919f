"""The indexes of a segment: offsets to positions, times to offsets, and the aborted transactions.

This module reads their entries and reports damaged ones, or decodes single entries for a binary search. An index that
its broker has open ends with zeros after its entries; the zeros are ignored. ``segment`` uses indexes to find
batches. In Kafka these are the classes ``OffsetIndex``, ``TimeIndex`` (KIP-33) and ``TransactionIndex``
(KIP-98) in ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, Final, TypeVar, cast

from attrs import frozen

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.faults import raise_on_fault
from kafka_msgs.log.mapped_file import Mapped, last_not_zero, map_file

__all__ = [
    "ABORTED_LAYOUT",
    "OFFSET_LAYOUT",
    "TIME_LAYOUT",
    "AbortedTransaction",
    "IndexEntries",
    "OffsetEntry",
    "TimeEntry",
    "read_aborted_transactions",
    "read_offset_index",
    "read_time_index",
    "walk_aborted_transactions",
    "walk_offset_index",
    "walk_time_index",
]

T = TypeVar("T")

OFFSET_LAYOUT: Final = Struct(">ii")
"""An offset index entry: the offset minus the base offset of the segment, and the position in bytes."""
TIME_LAYOUT: Final = Struct(">qi")
"""A time index entry: the timestamp, and the offset minus the base offset of the segment."""
ABORTED_LAYOUT: Final = Struct(">hqqqq")
"""An entry of an index of aborted transactions: the fields of ``AbortedTransaction``."""


@frozen
class OffsetEntry:
    """An offset index entry: the batch that ends with ``offset``, or an earlier batch, starts at byte ``position``."""

    offset: int
    position: int


@frozen
class TimeEntry:
    """A time index entry: no record up to ``offset`` is later than ``timestamp``, in milliseconds since the epoch."""

    timestamp: int
    offset: int


@frozen
class AbortedTransaction:
    """An aborted transaction: its producer, the offset of its first record, and the offset of its marker.

    ``last_stable_offset`` is the last stable offset when this transaction ended: all transactions below it had ended.
    ``version`` is the version of the entry.
    """

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def read_offset_index(path: Path) -> Iterator[OffsetEntry]:
    """Yield the entries of an ``.index`` file with absolute offsets: the offset in the file name is added.

    Raises ``LogFileError`` for a file that ends within an entry, and for entries that are not ascending. A file whose
    name is not an offset raises ``LogFileError`` immediately. Raises ``OSError``.
    """
    return raise_on_fault(walk_offset_index(path))


def walk_offset_index(path: Path) -> Iterator[OffsetEntry | LogFileError]:
    """Yield the entries like ``read_offset_index``, and each ``LogFileError`` about an entry in its place."""
    base = _base_offset(path)
    return _entries(path, OFFSET_LAYOUT, lambda offset, position: OffsetEntry(base + offset, position), _ascends)


def _base_offset(path: Path) -> int:
    if not path.stem.isdecimal():
        raise _fault(path, 0, path.stat().st_size, "the file is not named after an offset")
    return int(path.stem)


def _ascends(last: OffsetEntry, entry: OffsetEntry) -> bool:
    return entry.offset > last.offset and entry.position > last.position


def read_time_index(path: Path) -> Iterator[TimeEntry]:
    """Yield the entries of a ``.timeindex`` file; like ``read_offset_index``."""
    return raise_on_fault(walk_time_index(path))


def walk_time_index(path: Path) -> Iterator[TimeEntry | LogFileError]:
    """Yield the entries like ``read_time_index``, and each ``LogFileError`` about an entry in its place."""
    base = _base_offset(path)
    return _entries(path, TIME_LAYOUT, lambda timestamp, offset: TimeEntry(timestamp, base + offset), _not_earlier)


def _not_earlier(last: TimeEntry, entry: TimeEntry) -> bool:
    return entry.timestamp >= last.timestamp and entry.offset >= last.offset


class IndexEntries:
    """The entries of an offset or time index as pairs of numbers, decoded on access, so that searches read few pages.

    Their offsets are relative to the base offset of the segment. Damage is not detected: an entry may be wrong. A file
    that ends within an entry has no entries.
    """

    def __init__(self, data: Mapped, layout: Struct) -> None:
        self._data = data
        self._layout = layout
        self._starts = _used(data, layout)

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> tuple[int, int]:
        first, second = self._layout.unpack_from(self._data, self._starts[number])
        return first, second

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return cast(Iterator[tuple[int, int]], self._layout.iter_unpack(self._data[: self._starts.stop]))


def _used(data: Mapped, layout: Struct) -> range:
    """Return the start positions of the entries, without trailing zeros.

    The range is empty if the last entry is partial.
    """
    if len(data) % layout.size:
        return range(0)
    starts = range(0, len(data), layout.size)
    return starts[: bisect_left(starts, True, key=lambda start: not any(data[start : start + layout.size]))]


def read_aborted_transactions(path: Path) -> Iterator[AbortedTransaction]:
    """Yield the entries of a ``.txnindex`` file, in the order in which the transactions ended.

    It works like ``read_offset_index``. An entry of an unknown version also raises a ``LogFileError``.
    """
    return raise_on_fault(walk_aborted_transactions(path))


def walk_aborted_transactions(path: Path) -> Iterator[AbortedTransaction | LogFileError]:
    """Yield the entries like ``read_aborted_transactions``, and each ``LogFileError`` about an entry in its place."""
    return _entries(path, ABORTED_LAYOUT, AbortedTransaction, _ends_later, _is_known)


def _ends_later(last: AbortedTransaction, entry: AbortedTransaction) -> bool:
    return entry.last_offset > last.last_offset


def _is_known(entry: AbortedTransaction) -> bool:
    return entry.version == 0 and 0 <= entry.first_offset <= entry.last_offset


def _any(_: Any) -> bool:
    return True


def _entries(
    path: Path,
    layout: Struct,
    make: Callable[..., T],
    follows: Callable[[T, T], bool],
    sound: Callable[[T], bool] = _any,
) -> Iterator[T | LogFileError]:
    data = map_file(path)
    used = layout.size * -(-last_not_zero(data) // layout.size)
    whole = min(used, len(data) // layout.size * layout.size)
    last: T | None = None
    for at in range(0, whole, layout.size):
        entry = make(*layout.unpack_from(data, at))
        if sound(entry) and (last is None or follows(last, entry)):
            last = entry
            yield entry
        else:
            reason = f"{entry} is not sound" if not sound(entry) else f"{entry} does not follow {last}"
            yield _fault(path, at, layout.size, reason)
    rest = len(data) % layout.size
    if rest:
        reason = f"{rest} bytes left, an entry has {layout.size}"
        yield _fault(path, len(data) - rest, rest, reason)


def _fault(path: Path, position: int, skipped: int, reason: str) -> LogFileError:
    return LogFileError(file=str(path), position=position, skipped=skipped, reason=reason)
