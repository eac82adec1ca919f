"""The indexes of a segment: offsets to positions, times to offsets, and the aborted transactions.

This module reads their entries and reports damaged ones, or finds one entry by binary search without reading the
others. An index that its broker has open ends with zeros after its entries; the zeros are ignored. ``segment`` uses an
index to find a batch. In Kafka these are the classes ``OffsetIndex``, ``TimeIndex`` (KIP-33) and ``TransactionIndex``
(KIP-98) in ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import Struct
from typing import Any, Final, TypeVar

from attrs import frozen

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.faults import raise_on_fault
from kafka_msgs.log.mapped_file import Mapped, last_not_zero, map_file

__all__ = [
    "ABORTED_LAYOUT",
    "OFFSET_LAYOUT",
    "TIME_LAYOUT",
    "AbortedTransaction",
    "OffsetEntry",
    "TimeEntry",
    "find_offset",
    "find_time",
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


def find_offset(path: Path, offset: int) -> OffsetEntry | None:
    """Return the last entry of an ``.index`` file whose offset is ``offset`` or less, or None.

    The entry is found by binary search, which reads few pages of the file and does not detect damage: in a damaged
    index the result may be any entry. Return None for a file that ends within an entry. Raises the errors of
    ``map_file``.
    """
    base = _base_offset(path)
    found = _find(path, OFFSET_LAYOUT, bisect_right, offset - base)
    return OffsetEntry(base + found[0], found[1]) if found else None


def find_time(path: Path, timestamp: int | None = None) -> TimeEntry | None:
    """Return the last entry of a ``.timeindex`` file that is earlier than ``timestamp``, or the very last entry.

    It works like ``find_offset``.
    """
    found = _find(path, TIME_LAYOUT, bisect_left, timestamp)
    return TimeEntry(found[0], _base_offset(path) + found[1]) if found else None


def _find(path: Path, layout: Struct, bisect: Callable[..., int], value: int | None) -> tuple[int, int] | None:
    """Return the last entry before the place of ``value`` among the first values of entries, or the very last entry."""
    data = map_file(path)
    starts = _used(data, layout)
    at = len(starts) if value is None else bisect(starts, value, key=lambda start: _first(layout, data, start))
    if not at:
        return None
    first, second = layout.unpack_from(data, starts[at - 1])
    return first, second


def _first(layout: Struct, data: Mapped, start: int) -> Any:
    return layout.unpack_from(data, start)[0]


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
