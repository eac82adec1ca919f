"""A segment of a partition: its batches from an offset on, or the first record at a time, found through its indexes.

Owns when an index is believed: one that is damaged or does not fit the segment is left aside, and the segment is read
from its start. Reading the files is left to ``scan`` and ``index``; which segments there are, to ``partition``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from pathlib import Path
from typing import Literal, TypeVar, overload

from attrs import frozen

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.faults import OnError
from kafka_msgs.log.index import (
    AbortedTransaction,
    OffsetEntry,
    TimeEntry,
    read_aborted_transactions,
    read_offset_index,
    read_time_index,
)
from kafka_msgs.log.scan import AnyBatch, read_log
from kafka_msgs.records import Record

__all__ = ["Segment"]

T = TypeVar("T")


@frozen(order=True)
class Segment:
    """The ``.log`` file at ``path``, with the indexes beside it; they may be missing."""

    path: Path

    @property
    def base_offset(self) -> int:
        """The offset that the files are named after: no record of the segment is before it."""
        return int(self.path.stem)

    @property
    def size(self) -> int:
        """Bytes of the ``.log`` file."""
        return self.path.stat().st_size

    @property
    def closed(self) -> bool:
        """Whether a later segment stands beside it: then its broker has ended this one, and writes no more to it."""
        names = (path.stem for path in self.path.parent.glob("*.log"))
        return any(int(name) > self.base_offset for name in names if name.isdecimal())

    @overload
    def batches(
        self, from_offset: int = ..., *, on_error: Literal["raise", "skip"] = ..., views: bool = ...
    ) -> Iterator[AnyBatch]: ...
    @overload
    def batches(
        self, from_offset: int = ..., *, on_error: OnError, views: bool = ...
    ) -> Iterator[AnyBatch | LogFileError]: ...
    def batches(
        self, from_offset: int = 0, *, on_error: OnError = "raise", views: bool = False
    ) -> Iterator[AnyBatch | LogFileError]:
        """Yield the batches from the one that holds ``from_offset`` on, or the first after it.

        That batch may start before the offset. ``on_error`` and ``views`` are those of ``read_log``.
        """
        start = self.position_of(from_offset)
        # Where faults are skipped, nobody sees what zeros at the end are taken for, and a long directory is not listed.
        closed = on_error != "skip" and self.closed
        for item in read_log(self.path, start=start, on_error=on_error, views=views, closed=closed):
            if isinstance(item, LogFileError) or item.last_offset >= from_offset:
                yield item

    def position_of(self, offset: int) -> int:
        """Return a byte of the file at which a batch starts, and before which all records are before ``offset``.

        It is as near as the index tells, and 0 without an index that can be believed.
        """
        if offset <= self.base_offset:
            return 0
        entries = _believed(self.offset_index(on_error="yield"))
        index = bisect_right(entries, offset, key=attrgetter("offset")) - 1
        if index < 0 or not self._fits(entries[index]):
            return 0
        return entries[index].position

    def first_at(self, timestamp: int) -> Record | None:
        """Return the first record whose timestamp is ``timestamp`` or later, in milliseconds since the epoch.

        None where all are earlier; damaged batches are passed over. Raises what ``records`` of a batch raises.
        """
        entries = _believed(self.time_index(on_error="yield"))
        index = bisect_left(entries, timestamp, key=attrgetter("timestamp")) - 1
        start = entries[index].offset if index >= 0 else self.base_offset
        for batch in self.batches(start, on_error="skip"):
            if batch.max_timestamp >= timestamp:
                for record in batch:
                    if record.timestamp >= timestamp:
                        return record
        return None

    @overload
    def offset_index(self, *, on_error: Literal["raise", "skip"] = ...) -> Iterator[OffsetEntry]: ...
    @overload
    def offset_index(self, *, on_error: OnError) -> Iterator[OffsetEntry | LogFileError]: ...
    def offset_index(self, *, on_error: OnError = "raise") -> Iterator[OffsetEntry | LogFileError]:
        """Yield the entries of the ``.index`` file, none without one; like ``read_offset_index``."""
        path = self.path.with_suffix(".index")
        return read_offset_index(path, on_error=on_error) if path.exists() else iter(())

    @overload
    def time_index(self, *, on_error: Literal["raise", "skip"] = ...) -> Iterator[TimeEntry]: ...
    @overload
    def time_index(self, *, on_error: OnError) -> Iterator[TimeEntry | LogFileError]: ...
    def time_index(self, *, on_error: OnError = "raise") -> Iterator[TimeEntry | LogFileError]:
        """Yield the entries of the ``.timeindex`` file, none without one; like ``read_time_index``."""
        path = self.path.with_suffix(".timeindex")
        return read_time_index(path, on_error=on_error) if path.exists() else iter(())

    @overload
    def aborted_transactions(self, *, on_error: Literal["raise", "skip"] = ...) -> Iterator[AbortedTransaction]: ...
    @overload
    def aborted_transactions(self, *, on_error: OnError) -> Iterator[AbortedTransaction | LogFileError]: ...
    def aborted_transactions(self, *, on_error: OnError = "raise") -> Iterator[AbortedTransaction | LogFileError]:
        """Yield the entries of the ``.txnindex`` file, none without one; like ``read_aborted_transactions``."""
        path = self.path.with_suffix(".txnindex")
        return read_aborted_transactions(path, on_error=on_error) if path.exists() else iter(())

    def _fits(self, entry: OffsetEntry) -> bool:
        """Whether a sound batch starts where an entry says, and ends no later than it says."""
        if entry.position >= self.size:
            return False
        first = next(read_log(self.path, start=entry.position, on_error="yield"), None)
        return not isinstance(first, LogFileError) and first is not None and first.last_offset <= entry.offset


def _believed(items: Iterator[T | LogFileError]) -> list[T]:
    """Return the entries of a sound index, and none of a damaged one."""
    entries = []
    for item in items:
        if isinstance(item, LogFileError):
            return []
        entries.append(item)
    return entries
