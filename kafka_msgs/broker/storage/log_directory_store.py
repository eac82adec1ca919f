"""A log directory: its owner, its checkpoint files, and its partition directories.

A stopped Kafka broker can open a directory written by this module, and vice versa. ``replica_set`` opens a partition
that is stored in one or several directories. In Kafka this is ``LogManager`` in
``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from kafka_msgs.broker.storage.file_store import FilePartitionStore
from kafka_msgs.broker.storage.metadata_batches import METADATA_TOPIC
from kafka_msgs.broker.storage.open_files import OpenFileCache
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.small_files import (
    CHECKPOINTS,
    LOG_STARTS,
    PARTITION_METADATA,
    RECOVERY_POINTS,
    CleanShutdown,
    MetaProperties,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
)
from kafka_msgs.log.writers.directory_lock import DirectoryLock
from kafka_msgs.log.writers.small_files import (
    format_clean_shutdown,
    format_meta_properties,
    format_offset_checkpoint,
    format_partition_metadata,
)

__all__ = ["META_PROPERTIES", "LogDirectoryStore", "Place"]

META_PROPERTIES: Final = "meta.properties"
"""The file that identifies the owner of a log directory."""

_DISPENSABLE: Final = (RECOVERY_POINTS, LOG_STARTS)
"""Checkpoint files that may be damaged: their logs are then recovered from the beginning, as in Kafka."""

_CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
_DELETED: Final = "-delete"
_STRAY: Final = "-stray"
_MAX_NAME_LENGTH: Final = 255
"""The maximum length of a directory name in a file system, in characters (Kafka's ``LocalLog``)."""

Place = tuple[str, int]
"""A topic name and a partition number."""


class LogDirectoryStore:
    """A log directory. ``was_clean`` is True if its last owner closed it.

    A directory without ``meta.properties`` receives the properties ``meta``. ``files`` may be shared with other
    directories. ``now`` is in milliseconds since the epoch. Raises ``OSError`` and ``LogFileError``, including when
    another broker has opened the directory or a new directory has no ``meta``.
    """

    def __init__(
        self, path: Path, meta: MetaProperties | None = None, *, now: int, files: OpenFileCache | None = None
    ) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = DirectoryLock(path)
        self.files = files or OpenFileCache()
        self._partitions: dict[Place, FilePartitionStore] = {}
        try:
            self.meta = self._identity(meta, now)
            self.was_clean = (path / _CLEAN_SHUTDOWN).exists()
            (path / _CLEAN_SHUTDOWN).unlink(missing_ok=True)
            self._offsets = {name: self._read_checkpoint(name) for name in CHECKPOINTS}
            for leftover in path.glob(f"*{_DELETED}"):
                shutil.rmtree(leftover)
        except BaseException:
            self._lock.release()
            raise

    def _identity(self, meta: MetaProperties | None, now: int) -> MetaProperties:
        path = self.path / META_PROPERTIES
        if not path.exists():
            if meta is None:
                raise LogFileError(file=str(path), position=0, skipped=0, reason="there is no such file")
            self.files.replace(path, format_meta_properties(meta.properties, now))
        return read_meta_properties(path)

    def _read_checkpoint(self, name: str) -> dict[Place, int]:
        path = self.path / name
        try:
            return read_offset_checkpoint(path) if path.exists() else {}
        except LogFileError:
            if name in _DISPENSABLE:
                return {}
            raise

    def has(self, topic: str, topic_id: UUID, partition: int) -> bool:
        """Return whether the directory contains a partition of this topic. Raises ``OSError`` and ``LogFileError``."""
        metadata = self.path / f"{topic}-{partition}" / PARTITION_METADATA
        return metadata.exists() and read_partition_metadata(metadata).topic_id == topic_id

    def make(self, topic: str, topic_id: UUID, partition: int) -> Path:
        """Return the directory of a partition, and create it if it is missing. Raises ``OSError`` and ``LogFileError``.

        A directory of an older topic with the same name is renamed, as in Kafka. Raises ``LogFileError`` if it is open.
        """
        path = self.path / f"{topic}-{partition}"
        if path.exists() and not self.has(topic, topic_id, partition) and (path / PARTITION_METADATA).exists():
            if (topic, partition) in self._partitions:
                reason = "the log of another topic with this name is open"
                raise LogFileError(file=str(path), position=0, skipped=0, reason=reason)
            self._put_aside((topic, partition), _STRAY)
        path.mkdir(exist_ok=True)
        if not (path / PARTITION_METADATA).exists():
            self.files.replace(path / PARTITION_METADATA, format_partition_metadata(topic_id))
        return path

    def offset(self, name: str, place: Place) -> int:
        """Return the offset of a partition in a checkpoint file, or 0."""
        return self._offsets[name].get(place, 0)

    def keep(self, place: Place, partition: FilePartitionStore) -> None:
        """Include the offsets of a partition in the checkpoint files from now on."""
        self._partitions[place] = partition

    def drop(self, place: Place) -> None:
        """Remove a partition. Raises ``OSError``."""
        self._partitions.pop(place, None)
        for name in CHECKPOINTS:
            self._offsets[name].pop(place, None)
        shutil.rmtree(self._put_aside(place, _DELETED))

    def _put_aside(self, place: Place, suffix: str) -> Path:
        """Rename the directory of a partition to a unique name that ends with ``suffix``. Raises ``OSError``.

        Long topic names are truncated, as in Kafka's ``LocalLog.logDirNameWithSuffixCappedLength``.
        """
        topic, partition = place
        ending = f"-{partition}.{uuid4().hex}{suffix}"
        name = topic[: _MAX_NAME_LENGTH - len(ending)] + ending
        return (self.path / f"{topic}-{partition}").rename(self.path / name)

    def write_checkpoints(self) -> None:
        """Write the checkpoint files with the latest offsets from the partitions. Raises ``OSError``."""
        for place, partition in self._partitions.items():
            if place[0] != METADATA_TOPIC:
                self._note(place, partition.offsets())
        for name in CHECKPOINTS:
            self.files.replace(self.path / name, format_offset_checkpoint(self._offsets[name]))

    def _note(self, place: Place, offsets: dict[str, int | None]) -> None:
        for name, offset in offsets.items():
            if offset is None:
                self._offsets[name].pop(place, None)
            else:
                self._offsets[name][place] = offset

    def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close the directory, after the logs of its partitions. ``clean`` means that all logs were closed cleanly.

        Raises ``OSError``.
        """
        try:
            if clean:
                self.write_checkpoints()
                self.files.replace(self.path / _CLEAN_SHUTDOWN, format_clean_shutdown(CleanShutdown(0, broker_epoch)))
        finally:
            self.files.close_all()
            self._lock.release()
