"""In-memory partition storage.

Batches are copied into blocks of memory, and reads return views of them. When retention or deletion removes a block,
its memory returns to the system regardless of fragmentation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from mmap import mmap
from operator import attrgetter
from typing import Final

from attrs import define, field

from kafka_msgs.broker.storage.producer_state import ProducerStateEntry
from kafka_msgs.broker.storage.store import PartitionStore, SavedPartition, SegmentStore
from kafka_msgs.codec import Buffer
from kafka_msgs.log.writers.index_writer import SegmentIndexes

__all__ = ["MemoryPartitionStore"]


_FIRST_BLOCK: Final = 2**12
_LAST_BLOCK: Final = 2**20
_MAPPED: Final = 2**17
"""The size in bytes from which a block is memory-mapped, so that all its memory returns to the system."""


def _new_block(size: int) -> memoryview:
    return memoryview(mmap(-1, size) if size >= _MAPPED else bytearray(size))


@define
class _Block:
    """A memory block for batches. ``start`` is its position in the segment, ``size`` the number of used bytes."""

    start: int
    memory: memoryview
    size: int = 0

    @property
    def stop(self) -> int:
        return self.start + self.size


@define(eq=False)
class _MemorySegment:
    """The blocks of a segment. The first ones are small, because most test partitions are."""

    base_offset: int
    size: int = 0
    modified: int | None = None
    _blocks: list[_Block] = field(factory=list)

    def append(self, data: Buffer) -> None:
        size = len(data)
        block = self._blocks[-1] if self._blocks else None
        if block is None or block.size + size > len(block.memory):
            wanted = _FIRST_BLOCK if block is None else min(2 * len(block.memory), _LAST_BLOCK)
            block = _Block(self.size, _new_block(max(wanted, size)))
            self._blocks.append(block)
        block.memory[block.size : block.size + size] = data
        block.size += size
        self.size += size

    def read(self, start: int, stop: int) -> list[Buffer]:
        stop = min(stop, self.size)
        if start >= stop:
            return []
        first = bisect_right(self._blocks, start, key=attrgetter("start")) - 1
        after = bisect_right(self._blocks, stop - 1, key=attrgetter("start"))
        return [
            each.memory[max(start - each.start, 0) : min(stop, each.stop) - each.start]
            for each in self._blocks[first:after]
        ]

    def truncate(self, size: int) -> None:
        """Keep only the first ``size`` bytes. Existing views of the removed bytes stay valid."""
        self._blocks = [each for each in self._blocks if each.start < size]
        self.size = size
        if self._blocks:
            last = self._blocks[-1]
            last.size = size - last.start
            last.memory = last.memory[: last.size]

    def load_indexes(self, interval: int) -> SegmentIndexes | None:
        """Return None: in-memory partitions are never reopened."""
        return None

    def save_indexes(self, indexes: SegmentIndexes) -> None:
        """Do nothing: the partition holds the indexes."""

    def flush(self) -> None:
        """Do nothing."""


@define(eq=False)
class MemoryPartitionStore(PartitionStore):
    """A partition that exists only in this process. Segments are freed when the partition drops them."""

    _snapshots: dict[int, list[ProducerStateEntry]] = field(factory=dict)

    def load(self) -> SavedPartition:
        return SavedPartition()

    def create(self, base_offset: int) -> SegmentStore:
        return _MemorySegment(base_offset)

    def rewrite(self, base_offset: int) -> SegmentStore:
        return _MemorySegment(base_offset)

    def snapshots(self) -> list[int]:
        return sorted(self._snapshots)

    def save_snapshot(self, offset: int, producers: Iterable[ProducerStateEntry]) -> None:
        self._snapshots[offset] = [each.condensed() for each in producers]

    def load_snapshot(self, offset: int) -> list[ProducerStateEntry] | None:
        return [each.condensed() for each in self._snapshots[offset]]

    def delete_snapshot(self, offset: int) -> None:
        self._snapshots.pop(offset, None)
