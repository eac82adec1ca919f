"""A partition in the files of one or more log directories, with producer snapshots: a ``PartitionStore``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, cast

from attrs import define, field

from kafka_msgs.broker.storage.file_segment import FileSegment, finish_interrupted_swaps, segment_name
from kafka_msgs.broker.storage.partition_files import PartitionFiles
from kafka_msgs.broker.storage.producer_state import BatchMetadata, ProducerStateEntry
from kafka_msgs.broker.storage.store import PartitionStore, SavedPartition, SegmentStore
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.small_files import (
    CLEAN_OFFSETS,
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    LOG_STARTS,
    RECOVERY_POINTS,
    LeaderEpoch,
    read_leader_epochs,
    read_producer_snapshot,
)
from kafka_msgs.log.writers.small_files import format_leader_epochs, format_producer_snapshot
from kafka_msgs.messages.producer_snapshot import ProducerEntry, ProducerSnapshot

__all__ = ["FilePartitionStore", "file_segments"]


def _entry(state: ProducerStateEntry) -> ProducerEntry:
    last = state.batches[-1] if state.batches else BatchMetadata(-1, -1, 0, -1)
    return ProducerEntry(
        producer_id=state.producer_id,
        epoch=state.epoch,
        last_sequence=last.last_sequence,
        last_offset=last.last_offset,
        offset_delta=last.offset_delta,
        timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_first_offset=-1 if state.first_offset is None else state.first_offset,
    )


def _state(entry: ProducerEntry) -> ProducerStateEntry:
    state = ProducerStateEntry(
        entry.producer_id,
        entry.epoch,
        entry.coordinator_epoch,
        entry.timestamp,
        entry.current_txn_first_offset if entry.current_txn_first_offset >= 0 else None,
    )
    if entry.last_offset >= 0:
        state.batches.append(BatchMetadata(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.timestamp))
    return state


_SNAPSHOT: Final = ".snapshot"


def file_segments(files: PartitionFiles) -> list[FileSegment]:
    """Return the existing segments by offset. Raises ``OSError``."""
    return [
        FileSegment(files, int(path.stem), path.stat().st_size)
        for path in sorted(files.first.glob("*.log"))
        if re.fullmatch("[0-9]{20}", path.stem)
    ]


@define(eq=False)
class FilePartitionStore(PartitionStore):
    """A partition stored in files. ``on_remove`` removes the directories."""

    files: PartitionFiles
    _clean: bool
    _recovery_point: int
    _log_start_offset: int
    _clean_offset: int = 0
    _on_remove: Callable[[], None] | None = None
    _high_watermark: int = 0
    _starts_at_segment: bool = True
    _deleted: list[tuple[int, FileSegment]] = field(factory=list)

    @property
    def durable(self) -> bool:
        return self.files.durable

    def load(self) -> SavedPartition:
        """Return the saved partition. Raises ``OSError`` and ``LogFileError``."""
        for directory in self.files.directories:
            finish_interrupted_swaps(directory)
        epochs = self.files.path(LEADER_EPOCHS)
        return SavedPartition(
            segments=file_segments(self.files),
            epochs=read_leader_epochs(epochs) if epochs.exists() else (),
            log_start_offset=self._log_start_offset,
            recovery_point=self._recovery_point,
            clean_offset=self._clean_offset,
            clean=self._clean,
        )

    def rewrite(self, base_offset: int) -> SegmentStore:
        return self.create(base_offset, ".cleaned")

    def create(self, base_offset: int, ending: str = "") -> SegmentStore:
        """Return a new empty segment. Existing files with its names are replaced. Raises ``OSError``."""
        segment = FileSegment(self.files, base_offset, ending=ending)
        segment.unlink()
        for suffix in (".log", ".index", ".timeindex"):
            self.files.touch(segment.name(suffix))
        return segment

    def delete(self, segments: Iterable[SegmentStore], now: int, delay_ms: int) -> None:
        """Rename the files of segments, and remove them after ``delay_ms``. Raises ``OSError``."""
        for each in cast("Iterable[FileSegment]", segments):
            each.rename(".deleted")
            self._deleted.append((now + delay_ms, each))
        self.expire(now)

    def replace(self, old: Sequence[SegmentStore], new: SegmentStore, now: int, delay_ms: int) -> None:
        """Replace old segments by ``new``, as ``finish_interrupted_swaps`` does after a crash. Raises ``OSError``."""
        written = cast("FileSegment", new)
        written.flush()
        written.rename(".swap")
        self.delete(old, now, delay_ms)
        written.rename("")

    def expire(self, now: int) -> None:
        for at, segment in self._deleted:
            if at <= now:
                segment.unlink()
        self._deleted = [(at, segment) for at, segment in self._deleted if at > now]

    def snapshots(self) -> list[int]:
        return sorted(int(path.stem) for path in self.files.first.glob(f"*{_SNAPSHOT}") if path.stem.isdecimal())

    def save_snapshot(self, offset: int, producers: Iterable[ProducerStateEntry]) -> None:
        snapshot = ProducerSnapshot(producer_entries=tuple(map(_entry, producers)))
        self.files.replace(segment_name(offset, _SNAPSHOT), format_producer_snapshot(snapshot))

    def load_snapshot(self, offset: int) -> list[ProducerStateEntry] | None:
        try:
            snapshot = read_producer_snapshot(self.files.path(segment_name(offset, _SNAPSHOT)))
        except LogFileError:
            return None
        return list(map(_state, snapshot.producer_entries))

    def delete_snapshot(self, offset: int) -> None:
        self.files.unlink(segment_name(offset, _SNAPSHOT))

    def save_epochs(self, epochs: tuple[LeaderEpoch, ...]) -> None:
        self.files.replace(LEADER_EPOCHS, format_leader_epochs(epochs))

    def checkpoint(
        self, *, log_start_offset: int | None, recovery_point: int, high_watermark: int, clean_offset: int
    ) -> None:
        self._clean_offset = clean_offset
        self._recovery_point, self._high_watermark = recovery_point, high_watermark
        self._starts_at_segment = log_start_offset is None
        self._log_start_offset = log_start_offset or 0

    def offsets(self) -> dict[str, int | None]:
        """Return the offset for each checkpoint file, by file name. None omits the partition from the file."""
        return {
            CLEAN_OFFSETS: self._clean_offset or None,
            RECOVERY_POINTS: self._recovery_point,
            HIGH_WATERMARKS: self._high_watermark,
            LOG_STARTS: None if self._starts_at_segment else self._log_start_offset,
        }

    def remove(self) -> None:
        if self._on_remove is not None:
            self._on_remove()

    def close(self) -> None:
        """Remove files that await deletion, and close all others. Raises ``OSError``."""
        for _, segment in self._deleted:
            segment.unlink()
        self._deleted = []
        self.files.close()
