"""What a partition needs of a place that keeps it: the interfaces of ``memory_store`` and ``log_directory_store``.

A store keeps bytes and small facts, and decides nothing. ``partition_log`` decides what is written, and when.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from attrs import frozen

from kafka_msgs.broker.storage.batch_headers import Bytes
from kafka_msgs.broker.storage.producer_state import ProducerStateEntry
from kafka_msgs.codec import Buffer
from kafka_msgs.log.small_files import LeaderEpoch
from kafka_msgs.log.writers.index_writer import SegmentIndexes

__all__ = ["PartitionStore", "SavedPartition", "SegmentStore"]


class SegmentStore(Bytes, Protocol):
    """The bytes of one segment."""

    base_offset: int

    @property
    def modified(self) -> int | None:
        """When the segment was last written, in milliseconds since the epoch. None if the store does not know it."""

    def append(self, data: Buffer) -> None:
        """Add complete batches. Raises ``OSError``; then the segment is as before."""

    def truncate(self, size: int) -> None:
        """Keep only the first ``size`` bytes."""

    def load_indexes(self, interval: int) -> SegmentIndexes | None:
        """Return the indexes as they were saved, or None if one is missing or damaged."""

    def save_indexes(self, indexes: SegmentIndexes) -> None:
        """Keep the indexes."""

    def flush(self) -> None:
        """Force the bytes to the disk, so that they survive a crash of the machine. Raises ``OSError``."""


@frozen
class SavedPartition:
    """What a store knows about a partition that it already has.

    ``segments`` are in the order of their offsets. ``producer_snapshots`` are the offsets of the snapshots of
    producers. Everything below ``recovery_point`` was flushed, and below ``clean_offset`` compacted. ``clean`` says
    whether the partition was closed.
    """

    segments: Sequence[SegmentStore] = ()
    epochs: tuple[LeaderEpoch, ...] = ()
    log_start_offset: int = 0
    recovery_point: int = 0
    clean_offset: int = 0
    clean: bool = True


class PartitionStore(Protocol):
    """The place of one partition."""

    @property
    def durable(self) -> bool:
        """Whether each append is flushed before it is acknowledged."""

    def load(self) -> SavedPartition:
        """Return what is there. Work that a crash interrupted is finished or undone first."""

    def create(self, base_offset: int) -> SegmentStore:
        """Return a new empty segment."""

    def delete(self, segments: Iterable[SegmentStore], now: int, delay_ms: int) -> None:
        """Remove segments. The files may stay for ``delay_ms`` after ``now``, under another name."""

    def replace(self, old: Sequence[SegmentStore], new: SegmentStore, now: int, delay_ms: int) -> None:
        """Let a segment that ``rewrite`` returned take the place of ``old``, in one step that survives a crash."""

    def rewrite(self, base_offset: int) -> SegmentStore:
        """Return a new empty segment that is not part of the partition until ``replace``."""

    def snapshots(self) -> list[int]:
        """Return the offsets of the snapshots of producers, the lowest first."""

    def save_snapshot(self, offset: int, producers: Iterable[ProducerStateEntry]) -> None:
        """Keep the producers as they are after all records below ``offset``."""

    def load_snapshot(self, offset: int) -> list[ProducerStateEntry] | None:
        """Return the producers of a snapshot, each with at most one batch. None for a damaged snapshot."""

    def delete_snapshot(self, offset: int) -> None:
        """Remove a snapshot."""

    def save_epochs(self, epochs: tuple[LeaderEpoch, ...]) -> None:
        """Keep the leader epochs."""

    def checkpoint(
        self, *, log_start_offset: int | None, recovery_point: int, high_watermark: int, clean_offset: int
    ) -> None:
        """Take note of offsets. ``log_start_offset`` is None if the log starts with its first segment."""

    def expire(self, now: int) -> None:
        """Remove the files whose delay is over."""

    def close(self) -> None:
        """Release what is open."""

    def remove(self) -> None:
        """Remove the partition. It must be closed."""
