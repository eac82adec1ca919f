"""Partitions that are kept in memory.

Batches are kept as the pieces in which they were appended, so that a read of complete batches copies nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from attrs import define, field

from kafka_msgs.broker.partitions.producers import ProducerState
from kafka_msgs.broker.partitions.stores import SegmentStore, Stored
from kafka_msgs.codec import Buffer
from kafka_msgs.log.files import LeaderEpoch
from kafka_msgs.log.writing.indexes import Indexes

__all__ = ["MemoryPartition"]


@define(eq=False)
class _MemorySegment:
    """The pieces of a segment. ``starts`` has the position of each."""

    base_offset: int
    size: int = 0
    modified: int | None = None
    _pieces: list[Buffer] = field(factory=list)
    _starts: list[int] = field(factory=list)

    def append(self, data: Buffer) -> None:
        self._pieces.append(data)
        self._starts.append(self.size)
        self.size += len(data)

    def read(self, start: int, stop: int) -> list[Buffer]:
        stop = min(stop, self.size)
        if start >= stop:
            return []
        first = bisect_right(self._starts, start) - 1
        after = bisect_right(self._starts, stop - 1)
        found = self._pieces[first:after]
        rest = self._starts[after - 1] + len(found[-1]) - stop
        if rest:
            found[-1] = memoryview(found[-1])[: len(found[-1]) - rest]
        if skip := start - self._starts[first]:
            found[0] = memoryview(found[0])[skip:]
        return found

    def truncate(self, size: int) -> None:
        kept = self.read(0, size)
        self._pieces, self._starts, self.size = [], [], 0
        for piece in kept:
            self.append(piece)

    def load_indexes(self, interval: int) -> Indexes | None:
        """Return None. A partition in memory is never opened again."""
        return None

    def save_indexes(self, indexes: Indexes) -> None:
        """Do nothing. The partition itself has the indexes."""

    def flush(self) -> None:
        """Do nothing."""


@define(eq=False)
class MemoryPartition:
    """A partition that ends with the process. It is a ``PartitionStore``."""

    durable = False

    _snapshots: dict[int, list[ProducerState]] = field(factory=dict)

    def load(self) -> Stored:
        return Stored()

    def create(self, base_offset: int) -> SegmentStore:
        return _MemorySegment(base_offset)

    def rewrite(self, base_offset: int) -> SegmentStore:
        return _MemorySegment(base_offset)

    def delete(self, segments: Iterable[SegmentStore], now: int, delay_ms: int) -> None:
        """Do nothing. Nothing is left of a segment that the partition does not have."""

    def replace(self, old: Sequence[SegmentStore], new: SegmentStore, now: int, delay_ms: int) -> None:
        """Do nothing."""

    def snapshots(self) -> list[int]:
        return sorted(self._snapshots)

    def save_snapshot(self, offset: int, producers: Iterable[ProducerState]) -> None:
        self._snapshots[offset] = [each.condensed() for each in producers]

    def load_snapshot(self, offset: int) -> list[ProducerState] | None:
        return [each.condensed() for each in self._snapshots[offset]]

    def delete_snapshot(self, offset: int) -> None:
        self._snapshots.pop(offset, None)

    def save_epochs(self, epochs: tuple[LeaderEpoch, ...]) -> None:
        """Do nothing."""

    def checkpoint(
        self, *, log_start_offset: int | None, recovery_point: int, high_watermark: int, clean_offset: int
    ) -> None:
        """Do nothing."""

    def expire(self, now: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def remove(self) -> None:
        """Do nothing."""
