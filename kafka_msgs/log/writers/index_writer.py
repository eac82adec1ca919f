"""The indexes of a growing segment: their entries, and their bytes.

A segment has an offset index, a time index (KIP-33) and an index of aborted transactions (KIP-98). The first two are
sparse: they get an entry when more than ``index.interval.bytes`` bytes were added since the last one.
``kafka_msgs.log.indexes`` reads the files. In Kafka these are ``LogSegment``, ``OffsetIndex``, ``TimeIndex`` and
``TransactionIndex`` in ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import Final

from attrs import define, field

from kafka_msgs.binary_layouts import NO_TIMESTAMP
from kafka_msgs.log.indexes import ABORTED_LAYOUT, OFFSET_LAYOUT, TIME_LAYOUT, AbortedTransaction

__all__ = ["DEFAULT_INDEX_BYTES", "DEFAULT_INTERVAL", "SegmentIndexes"]

DEFAULT_INTERVAL: Final = 4096
"""Kafka's default for ``index.interval.bytes``."""
DEFAULT_INDEX_BYTES: Final = 10 * 2**20
"""Kafka's default for ``segment.index.bytes``."""
_HIGHEST_RELATIVE: Final = 2**31 - 1


def _longs() -> array[int]:
    return array("q")


@define(eq=False)
class SegmentIndexes:
    """The indexes of the segment that starts at ``base_offset``.

    ``offsets`` and ``positions`` are the offset index: the last offset of a batch, and its byte position. ``times`` and
    ``time_offsets`` are the time index: no record up to that offset is later. Timestamps are in milliseconds since the
    epoch. Offsets are absolute here and relative to ``base_offset`` in the files. ``max_timestamp`` is the latest
    timestamp so far, or -1, and ``max_timestamp_offset`` the last offset of its batch.
    """

    base_offset: int
    interval: int = DEFAULT_INTERVAL
    offsets: array[int] = field(factory=_longs)
    positions: array[int] = field(factory=_longs)
    times: array[int] = field(factory=_longs)
    time_offsets: array[int] = field(factory=_longs)
    aborted: list[AbortedTransaction] = field(factory=list)
    max_timestamp: int = NO_TIMESTAMP
    max_timestamp_offset: int = -1
    _unindexed: int = 0

    def add(self, position: int, size: int, last_offset: int, max_timestamp: int) -> None:
        """Index a batch of ``size`` bytes at byte ``position`` of the segment."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp, self.max_timestamp_offset = max_timestamp, last_offset
        if self._unindexed > self.interval:
            self.offsets.append(last_offset)
            self.positions.append(position)
            self.add_latest_time()
            self._unindexed = 0
        self._unindexed += size

    def add_latest_time(self) -> None:
        """Add a time index entry for the latest timestamp, if it is missing.

        This also happens when the segment is closed or rolled.
        """
        if self.max_timestamp > (self.times[-1] if self.times else NO_TIMESTAMP):
            self.times.append(self.max_timestamp)
            self.time_offsets.append(self.max_timestamp_offset)

    def is_full(self, max_bytes: int) -> bool:
        """Return whether an index has no capacity for another entry within ``segment.index.bytes``.

        The time index reserves one entry for the end of the segment.
        """
        return (
            len(self.offsets) >= max_bytes // OFFSET_LAYOUT.size or len(self.times) >= max_bytes // TIME_LAYOUT.size - 1
        )

    def can_hold(self, offset: int) -> bool:
        """Return whether the difference between ``offset`` and the base offset fits into an entry."""
        return 0 <= offset - self.base_offset <= _HIGHEST_RELATIVE

    def position_before(self, offset: int) -> int:
        """Return the position of a batch; all earlier batches end below ``offset``. Return 0 without an entry."""
        at = bisect_right(self.offsets, offset) - 1
        return self.positions[at] if at >= 0 else 0

    def position_at_most(self, position: int) -> int:
        """Return the highest indexed position up to ``position``, or 0."""
        at = bisect_right(self.positions, position) - 1
        return self.positions[at] if at >= 0 else 0

    def offset_from(self, position: int) -> int | None:
        """Return the offset of the first entry whose position is ``position`` or higher, or None."""
        at = bisect_left(self.positions, position)
        return self.offsets[at] if at < len(self.offsets) else None

    def offset_before_time(self, timestamp: int) -> int:
        """Return an offset such that all records up to it are at ``timestamp`` or earlier."""
        at = bisect_right(self.times, timestamp) - 1
        return self.time_offsets[at] if at >= 0 else self.base_offset

    def take_latest_time(self) -> None:
        """Set the latest timestamp to the timestamp of the last entry."""
        self.max_timestamp = self.times[-1] if self.times else NO_TIMESTAMP
        self.max_timestamp_offset = self.time_offsets[-1] if self.times else self.base_offset

    def offset_index(self) -> bytes:
        """Return the content of the ``.index`` file."""
        return _packed(OFFSET_LAYOUT, [offset - self.base_offset for offset in self.offsets], self.positions)

    def time_index(self) -> bytes:
        """Return the content of the ``.timeindex`` file."""
        return _packed(TIME_LAYOUT, self.times, [offset - self.base_offset for offset in self.time_offsets])

    def transaction_index(self) -> bytes:
        """Return the content of the ``.txnindex`` file."""
        return b"".join(
            ABORTED_LAYOUT.pack(
                each.version, each.producer_id, each.first_offset, each.last_offset, each.last_stable_offset
            )
            for each in self.aborted
        )


def _packed(layout: Struct, first: array[int] | list[int], second: array[int] | list[int]) -> bytes:
    return b"".join(map(layout.pack, first, second))
