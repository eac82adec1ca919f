"""The storage interfaces of a partition, which ``memory_store`` and ``file_store`` implement.

A store holds bytes and small values and makes no decisions. ``partition_log`` decides when to write them.
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
        """The last modification time of the segment in milliseconds since the epoch, or None if it is not tracked."""

    def append(self, data: Buffer) -> None:
        """Append complete batches. Raises ``OSError``; the segment is then unchanged."""

    def truncate(self, size: int) -> None:
        """Keep only the first ``size`` bytes."""

    def load_indexes(self, interval: int) -> SegmentIndexes | None:
        """Return the saved indexes, or None if one is missing or damaged."""

    def save_indexes(self, indexes: SegmentIndexes) -> None:
        """Save the indexes."""

    def flush(self) -> None:
        """Flush the bytes to disk, so that they survive a machine crash. Raises ``OSError``."""


@frozen
class SavedPartition:
    """The data that a store has saved for an existing partition.

    ``segments`` are in offset order. ``producer_snapshots`` are the offsets of the producer snapshots. Data below
    ``recovery_point`` is flushed, and data below ``clean_offset`` is compacted. ``clean`` is True if the partition was
    closed.
    """

    segments: Sequence[SegmentStore] = ()
    epochs: tuple[LeaderEpoch, ...] = ()
    log_start_offset: int = 0
    recovery_point: int = 0
    clean_offset: int = 0
    clean: bool = True


class PartitionStore:
    """The store of one partition. A method without a result does nothing, unless a subclass overrides it.

    With files, all methods raise ``OSError``.
    """

    @property
    def durable(self) -> bool:
        """Whether each append is flushed before it is acknowledged."""
        return False

    def load(self) -> SavedPartition:
        """Return the saved partition. Operations that a crash interrupted are finished or undone first."""
        raise NotImplementedError

    def create(self, base_offset: int) -> SegmentStore:
        """Return a new empty segment."""
        raise NotImplementedError

    def delete(self, segments: Iterable[SegmentStore], now: int, delay_ms: int) -> None:
        """Remove segments. Their files may remain for ``delay_ms`` after ``now``, under another name."""

    def replace(self, old: Sequence[SegmentStore], new: SegmentStore, now: int, delay_ms: int) -> None:
        """Replace ``old`` by a segment from ``rewrite``, in one step that survives a crash."""

    def rewrite(self, base_offset: int) -> SegmentStore:
        """Return a new empty segment, which becomes part of the partition through ``replace``."""
        raise NotImplementedError

    def snapshots(self) -> list[int]:
        """Return the offsets of the producer snapshots, lowest first."""
        raise NotImplementedError

    def save_snapshot(self, offset: int, producers: Iterable[ProducerStateEntry]) -> None:
        """Save the producers as of all records below ``offset``."""

    def load_snapshot(self, offset: int) -> list[ProducerStateEntry] | None:
        """Return the producers of a snapshot, each with at most one batch, or None for a damaged snapshot."""
        raise NotImplementedError

    def delete_snapshot(self, offset: int) -> None:
        """Remove a snapshot."""

    def save_epochs(self, epochs: tuple[LeaderEpoch, ...]) -> None:
        """Save the leader epochs."""

    def checkpoint(
        self, *, log_start_offset: int | None, recovery_point: int, high_watermark: int, clean_offset: int
    ) -> None:
        """Record offsets. ``log_start_offset`` is None if the log starts with its first segment."""

    def expire(self, now: int) -> None:
        """Remove the files whose deletion delay has passed."""

    def close(self) -> None:
        """Release open files."""

    def remove(self) -> None:
        """Remove the partition. It must be closed."""
