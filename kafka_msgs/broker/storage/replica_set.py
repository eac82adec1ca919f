"""A partition in the log directories of several brokers: its replicas.

While the partition is open, all replicas are equal. They may differ before it is opened: a broker may have stopped
earlier than the others, or may have records that were never replicated. The replica that Kafka would elect as the
leader then wins, and the others become copies of it.
"""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from uuid import UUID

from kafka_msgs.broker.storage.file_segment import finish_interrupted_swaps
from kafka_msgs.broker.storage.file_store import FilePartitionStore, file_segments
from kafka_msgs.broker.storage.leader_epochs import NO_EPOCH
from kafka_msgs.broker.storage.log_directory_store import LogDirectoryStore, Place
from kafka_msgs.broker.storage.log_loader import sound_batches
from kafka_msgs.broker.storage.open_files import OpenFileCache
from kafka_msgs.broker.storage.partition_files import PartitionFiles
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.small_files import CLEAN_OFFSETS, LEADER_EPOCHS, LOG_STARTS, RECOVERY_POINTS, read_leader_epochs

__all__ = ["ReplicaSet"]

_PASSING: Final = (".deleted", ".tmp", ".cleaned", ".swap")
"""The suffixes of temporary files, which do not belong to a replica."""


class ReplicaSet:
    """The replicas of a partition in ``stores``, at least one. ``partition`` is the store that a ``PartitionLog`` uses.

    The replicas in ``in_sync`` contain all acknowledged records, so one of them wins if it exists. All methods raise
    ``OSError`` and ``LogFileError``.
    """

    def __init__(
        self,
        topic: str,
        topic_id: UUID,
        number: int,
        stores: Sequence[LogDirectoryStore],
        in_sync: Collection[LogDirectoryStore] = (),
    ) -> None:
        self._topic_id, self._place = topic_id, (topic, number)
        found = [each for each in stores if each.has(topic, topic_id, number)]
        right = _right(self._place, found, in_sync) if len(stores) > 1 else None
        self._stores = list(stores) if right is None else [right, *(each for each in stores if each is not right)]
        paths = [self._make(each) for each in self._stores]
        if right is not None:
            for path in paths[1:]:
                if not _alike(paths[0], path):
                    _copy(paths[0], path)
        first = self._stores[0]
        self.partition = FilePartitionStore(
            PartitionFiles(first.files, *paths),
            clean=all(each.was_clean for each in self._stores),
            recovery_point=min(each.offset(RECOVERY_POINTS, self._place) for each in found or self._stores),
            log_start_offset=first.offset(LOG_STARTS, self._place),
            clean_offset=first.offset(CLEAN_OFFSETS, self._place),
            on_remove=partial(self.move, ()),
        )
        for each in self._stores:
            each.keep(self._place, self.partition)

    def _make(self, store: LogDirectoryStore) -> Path:
        return store.make(self._place[0], self._topic_id, self._place[1])

    def move(self, stores: Sequence[LogDirectoryStore]) -> None:
        """Move the partition to these directories and remove it from all others."""
        files = self.partition.files
        for store in stores:
            if store not in self._stores:
                path = self._make(store)
                _copy(files.first, path)
                files.directories.append(path)
                self._stores.append(store)
                store.keep(self._place, self.partition)
        for store in [each for each in self._stores if each not in stores]:
            at = self._stores.index(store)
            files.close(files.directories[at])
            del self._stores[at], files.directories[at]
            store.drop(self._place)


def _right(
    place: Place, found: Sequence[LogDirectoryStore], in_sync: Collection[LogDirectoryStore]
) -> LogDirectoryStore | None:
    """Return the directory of the replica that becomes the leader, or None for a new partition.

    It is the most advanced in-sync replica, or the most advanced of all.
    """
    wanted = [each for each in found if each in in_sync] or found
    return max(wanted, key=lambda each: _progress(each, place), default=None)


def _progress(store: LogDirectoryStore, place: Place) -> tuple[int, int]:
    """Return the leader epoch and the end offset of a replica. With more progress it contains more records."""
    path = store.path / f"{place[0]}-{place[1]}"
    finish_interrupted_swaps(path)
    files, epoch = PartitionFiles(OpenFileCache(1), path), NO_EPOCH
    if (path / LEADER_EPOCHS).exists():
        epoch = max((each.epoch for each in read_leader_epochs(path / LEADER_EPOCHS)), default=NO_EPOCH)
    end = max((each.end_offset for each in Partition(path).snapshots), default=0)
    for segment in file_segments(files)[-1:]:
        end = max(end, segment.base_offset, *(each.last_offset + 1 for each in sound_batches(segment)))
    files.close()
    return epoch, end


def _alike(one: Path, other: Path) -> bool:
    """Return whether two replicas are equal. Logs whose last batches are equal are also equal before them."""
    known = _files(one)
    if known != _files(other):
        return False
    last = max((name for name in known if name.endswith(".log")), default=None)
    compared = [name for name in (LEADER_EPOCHS, last) if name in known]
    return all(filecmp.cmp(one / name, other / name, shallow=False) for name in compared if name)


def _files(path: Path) -> dict[str, int]:
    return {each.name: each.stat().st_size for each in path.iterdir() if not each.name.endswith(_PASSING)}


def _copy(source: Path, target: Path) -> None:
    for each in target.iterdir():
        each.unlink()
    for name in _files(source):
        with (source / name).open("rb") as whole, (target / name).open("wb") as copy:
            shutil.copyfileobj(whole, copy)
            copy.flush()
            os.fsync(copy.fileno())
