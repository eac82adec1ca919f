"""Partitions in the files of a log directory, as Kafka keeps them.

``LogDirectoryStore`` is the directory: who it belongs to, the checkpoint files, and one ``DirectoryPartition`` for each
partition. A stopped broker can open what this wrote, and the other way round. In Kafka this is ``LogManager`` in
``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, cast
from uuid import UUID

from attrs import define, field

from kafka_msgs.broker.partitions.directory_lock import DirectoryLock
from kafka_msgs.broker.partitions.file_segment import FileSegment, segment_path
from kafka_msgs.broker.partitions.leftovers import finish_interrupted_work
from kafka_msgs.broker.partitions.metadata_batches import METADATA_TOPIC
from kafka_msgs.broker.partitions.opened_files import OpenedFiles
from kafka_msgs.broker.partitions.producers import ProducerState
from kafka_msgs.broker.partitions.snapshots import from_snapshot, to_snapshot
from kafka_msgs.broker.partitions.stores import SegmentStore, Stored
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.files import (
    CleanShutdown,
    LeaderEpoch,
    MetaProperties,
    read_leader_epochs,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
    read_producer_snapshot,
)
from kafka_msgs.log.writing.files import (
    format_clean_shutdown,
    format_leader_epochs,
    format_meta_properties,
    format_offset_checkpoint,
    format_partition_metadata,
    format_producer_snapshot,
)

__all__ = ["DirectoryPartition", "FoundPartition", "LogDirectoryStore"]

_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
_LOG_STARTS: Final = "log-start-offset-checkpoint"
_CLEAN_OFFSETS: Final = "cleaner-offset-checkpoint"
_CHECKPOINTS: Final = (_RECOVERY_POINTS, _HIGH_WATERMARKS, _LOG_STARTS, _CLEAN_OFFSETS)
_CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
_META: Final = "meta.properties"
_METADATA: Final = "partition.metadata"
_EPOCHS: Final = "leader-epoch-checkpoint"
_PARTITION: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<number>[0-9]{1,10})")
_DELETED: Final = "-delete"
_SNAPSHOT: Final = ".snapshot"

Place = tuple[str, int]


class FoundPartition(NamedTuple):
    """A partition that a directory has."""

    topic: str
    topic_id: UUID
    partition: int


class LogDirectoryStore:
    """A log directory. ``was_clean`` says whether its last owner closed it.

    A directory without ``meta.properties`` gets those of ``meta``. ``durable`` lets everything that is flushed survive
    a crash of the machine. ``now`` is in milliseconds since the epoch. Raises ``OSError`` and ``LogFileError``; also if
    another broker has the directory open, or if a new directory has no ``meta``.
    """

    def __init__(
        self, path: Path, meta: MetaProperties | None = None, *, now: int, open_files: int = 128, durable: bool = False
    ) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = DirectoryLock(path)
        self._files = OpenedFiles(open_files, durable=durable)
        self._partitions: dict[Place, DirectoryPartition] = {}
        try:
            self.meta = self._identity(meta, now)
            self.was_clean = (path / _CLEAN_SHUTDOWN).exists()
            (path / _CLEAN_SHUTDOWN).unlink(missing_ok=True)
            self._offsets = {name: self._read_checkpoint(name) for name in _CHECKPOINTS}
            for leftover in path.glob(f"*{_DELETED}"):
                shutil.rmtree(leftover)
        except BaseException:
            self._lock.release()
            raise

    def _identity(self, meta: MetaProperties | None, now: int) -> MetaProperties:
        path = self.path / _META
        if not path.exists():
            if meta is None:
                raise LogFileError(file=str(path), position=0, skipped=0, reason="there is no such file")
            self._files.replace(path, format_meta_properties(meta.properties, now))
        return read_meta_properties(path)

    def _read_checkpoint(self, name: str) -> dict[Place, int]:
        path = self.path / name
        return read_offset_checkpoint(path) if path.exists() else {}

    def found(self) -> Iterator[FoundPartition]:
        """Yield the partitions that the directory has, except for the metadata log; raises ``LogFileError``."""
        for path in sorted(self.path.iterdir()):
            match = _PARTITION.fullmatch(path.name)
            if match and match["topic"] != METADATA_TOPIC and (path / _METADATA).exists():
                topic_id = read_partition_metadata(path / _METADATA).topic_id
                yield FoundPartition(match["topic"], topic_id, int(match["number"]))

    def open(self, topic: str, topic_id: UUID, partition: int) -> DirectoryPartition:
        """Return the place of a partition, which is made if it is new.

        Raises ``OSError``, and ``LogFileError`` if the directory has the partition with another topic id.
        """
        path = self.path / f"{topic}-{partition}"
        path.mkdir(exist_ok=True)
        metadata = path / _METADATA
        if not metadata.exists():
            self._files.replace(metadata, format_partition_metadata(topic_id))
        elif (known := read_partition_metadata(metadata).topic_id) != topic_id:
            raise LogFileError(file=str(metadata), position=0, skipped=0, reason=f"the topic id is {known}")
        place = topic, partition
        offsets = {name: self._offsets[name].get(place, 0) for name in _CHECKPOINTS}
        opened = self._partitions[place] = DirectoryPartition(
            path,
            self._files,
            clean=self.was_clean,
            recovery_point=offsets[_RECOVERY_POINTS],
            log_start_offset=offsets[_LOG_STARTS],
            clean_offset=offsets[_CLEAN_OFFSETS],
            on_remove=partial(self._delete, topic, partition),
        )
        return opened

    def _delete(self, topic: str, partition: int) -> None:
        place = topic, partition
        self._partitions.pop(place, None)
        for name in _CHECKPOINTS:
            self._offsets[name].pop(place, None)
        path = self.path / f"{topic}-{partition}"
        gone = path.rename(self.path / f"{path.name}.{0:032x}{_DELETED}")
        shutil.rmtree(gone)

    def write_checkpoints(self) -> None:
        """Write the checkpoint files with what the partitions last gave. Raises ``OSError``."""
        for (topic, number), partition in self._partitions.items():
            if topic != METADATA_TOPIC:
                partition.give_offsets({name: (self._offsets[name], (topic, number)) for name in _CHECKPOINTS})
        for name in _CHECKPOINTS:
            self._files.replace(self.path / name, format_offset_checkpoint(self._offsets[name]))

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close the directory, after the logs of its partitions. ``clean`` says that all of them were closed cleanly.

        Raises ``OSError``.
        """
        try:
            if clean:
                self.write_checkpoints()
                self._files.replace(self.path / _CLEAN_SHUTDOWN, format_clean_shutdown(CleanShutdown(0, broker_epoch)))
        finally:
            self._files.close_all()
            self._lock.release()


@define(eq=False)
class DirectoryPartition:
    """A partition in a directory. It is a ``PartitionStore``."""

    path: Path
    _files: OpenedFiles
    _clean: bool
    _recovery_point: int
    _log_start_offset: int
    _clean_offset: int = 0
    _on_remove: Callable[[], None] | None = None
    _high_watermark: int = 0
    _starts_at_segment: bool = True
    _deleted: list[tuple[int, FileSegment]] = field(factory=list)

    def load(self) -> Stored:
        """Return what is there; raises ``OSError`` and ``LogFileError``."""
        finish_interrupted_work(self.path)
        segments = [
            FileSegment(self.path, int(path.stem), self._files, path.stat().st_size)
            for path in sorted(self.path.glob("*.log"))
            if re.fullmatch("[0-9]{20}", path.stem)
        ]
        epochs = self.path / _EPOCHS
        return Stored(
            segments=segments,
            epochs=read_leader_epochs(epochs) if epochs.exists() else (),
            log_start_offset=self._log_start_offset,
            recovery_point=self._recovery_point,
            clean_offset=self._clean_offset,
            clean=self._clean,
        )

    def create(self, base_offset: int) -> SegmentStore:
        """Return a new empty segment; raises ``OSError``. Files that are there under its names are replaced."""
        return self._new(base_offset, "")

    def rewrite(self, base_offset: int) -> SegmentStore:
        """Return a new empty segment, which ``replace`` makes part of the partition; raises ``OSError``."""
        return self._new(base_offset, ".cleaned")

    def _new(self, base_offset: int, ending: str) -> FileSegment:
        segment = FileSegment(self.path, base_offset, self._files, ending=ending)
        segment.unlink()
        for suffix in (".log", ".index", ".timeindex"):
            segment.path(suffix).touch()
        return segment

    def delete(self, segments: Iterable[SegmentStore], now: int, delay_ms: int) -> None:
        """Rename the files of segments, and remove them when ``delay_ms`` are over; raises ``OSError``."""
        for each in cast("Iterable[FileSegment]", segments):
            each.rename(".deleted")
            self._deleted.append((now + delay_ms, each))
        self.expire(now)

    def replace(self, old: Sequence[SegmentStore], new: SegmentStore, now: int, delay_ms: int) -> None:
        """Let ``new`` take the place of ``old``; raises ``OSError``. ``leftovers`` finishes it after a crash."""
        written = cast("FileSegment", new)
        written.flush()
        written.rename(".swap")
        self.delete(old, now, delay_ms)
        written.rename("")

    def expire(self, now: int) -> None:
        """Remove the files whose delay is over; raises ``OSError``."""
        for at, segment in self._deleted:
            if at <= now:
                segment.unlink()
        self._deleted = [(at, segment) for at, segment in self._deleted if at > now]

    def snapshots(self) -> list[int]:
        """Return the offsets of the files of producers, the lowest first; raises ``OSError``."""
        return sorted(int(path.stem) for path in self.path.glob(f"*{_SNAPSHOT}") if path.stem.isdecimal())

    def save_snapshot(self, offset: int, producers: Iterable[ProducerState]) -> None:
        """Write the producers; raises ``OSError``."""
        self._files.replace(
            segment_path(self.path, offset, _SNAPSHOT), format_producer_snapshot(to_snapshot(producers))
        )

    def load_snapshot(self, offset: int) -> list[ProducerState] | None:
        """Return the producers of a file, or None if it is damaged; raises ``OSError``."""
        try:
            return from_snapshot(read_producer_snapshot(segment_path(self.path, offset, _SNAPSHOT)))
        except LogFileError:
            return None

    def delete_snapshot(self, offset: int) -> None:
        """Remove a file of producers; raises ``OSError``."""
        segment_path(self.path, offset, _SNAPSHOT).unlink(missing_ok=True)

    def save_epochs(self, epochs: tuple[LeaderEpoch, ...]) -> None:
        """Write the leader epochs; raises ``OSError``."""
        self._files.replace(self.path / _EPOCHS, format_leader_epochs(epochs))

    def checkpoint(
        self, *, log_start_offset: int | None, recovery_point: int, high_watermark: int, clean_offset: int
    ) -> None:
        """Take note of offsets for the checkpoint files of the directory."""
        self._clean_offset = clean_offset
        self._recovery_point, self._high_watermark = recovery_point, high_watermark
        self._starts_at_segment = log_start_offset is None
        self._log_start_offset = log_start_offset or 0

    def give_offsets(self, into: dict[str, tuple[dict[Place, int], Place]]) -> None:
        """Add the offsets of the partition to the content of the checkpoint files."""
        known: dict[str, int | None] = {
            _CLEAN_OFFSETS: self._clean_offset or None,
            _RECOVERY_POINTS: self._recovery_point,
            _HIGH_WATERMARKS: self._high_watermark,
            _LOG_STARTS: None if self._starts_at_segment else self._log_start_offset,
        }
        for name, (offsets, place) in into.items():
            offset = known[name]
            if offset is None:
                offsets.pop(place, None)
            else:
                offsets[place] = offset

    def remove(self) -> None:
        """Remove the directory of the partition; raises ``OSError``."""
        if self._on_remove is not None:
            self._on_remove()

    def close(self) -> None:
        """Remove files that wait for their delay, and close the others; raises ``OSError``."""
        for _, segment in self._deleted:
            segment.unlink()
        self._deleted = []
        for path in self.path.glob("*.log"):
            self._files.close(path)
