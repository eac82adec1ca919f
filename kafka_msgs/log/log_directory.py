"""The content of a log directory: its partitions, and the segments and KRaft snapshots of each partition, in order.

This module defines the names of files and directories. ``segment``, ``file_scan`` and ``small_files`` read the files. A
listing is a snapshot: a running broker adds and deletes files. In Kafka the names are defined in
``org.apache.kafka.storage.internals.log.UnifiedLog`` and ``LogFileUtils``, and the names of snapshots in
``org.apache.kafka.snapshot.Snapshots`` (KIP-630).
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, get_args

from attrs import evolve, frozen

from kafka_msgs.errors import LogFileError
from kafka_msgs.log.faults import raise_on_fault
from kafka_msgs.log.file_names import OFFSET_IN_NAME, REPLACEMENT, named_partition
from kafka_msgs.log.file_scan import AnyBatch, read_log, walk_log
from kafka_msgs.log.segment import Segment, next_offsets
from kafka_msgs.log.small_files import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    LeaderEpoch,
    MetaProperties,
    PartitionMetadata,
    read_leader_epochs,
    read_meta_properties,
    read_partition_metadata,
    read_quorum_state,
)
from kafka_msgs.log.transaction_index import IsolationLevel, TransactionIndex, find_transactions
from kafka_msgs.messages.quorum_state_data import QuorumStateData
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions, Record
from kafka_msgs.validators import check_choice
from kafka_msgs.versioned import Versioned

__all__ = ["KRaftSnapshot", "LogDirectory", "Partition", "TransactionalLog"]

_OFFSET: Final = re.compile(OFFSET_IN_NAME)
_SNAPSHOT: Final = re.compile(rf"(?P<offset>{OFFSET_IN_NAME})-(?P<epoch>[0-9]{{10}})")


@frozen
class KRaftSnapshot:
    """A ``.checkpoint`` file: the state of the metadata log before ``end_offset``.

    ``epoch`` is the leader epoch in which it was written.
    """

    path: Path
    end_offset: int
    epoch: int

    def batches(self, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Iterator[AnyBatch]:
        """Yield the batches in order, including the header and footer batches.

        Raises the same errors as ``read_log``.
        """
        return read_log(self.path, options)

    def walk_batches(self, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Iterator[AnyBatch | LogFileError]:
        """Yield the batches and, in its place, each ``LogFileError``."""
        return walk_log(self.path, options)


class TransactionalLog(ABC):
    """A log that is read with the isolation level of a consumer."""

    __slots__ = ()

    def batches(
        self,
        from_offset: int = 0,
        options: ReadOptions = DEFAULT_READ_OPTIONS,
        *,
        isolation: IsolationLevel = "read_uncommitted",
    ) -> Iterator[AnyBatch]:
        """Yield the batches of all segments from the one that contains ``from_offset`` on; like ``Segment.batches``.

        ``isolation="read_committed"`` excludes the batches of aborted transactions, and all batches from the last
        stable offset on, like a consumer with that ``isolation.level`` (KIP-98). Control batches are yielded with both
        isolation levels. Raises ``OptionError`` for another isolation level.
        """
        return raise_on_fault(self.walk_batches(from_offset, options, isolation=isolation))

    def walk_batches(
        self,
        from_offset: int = 0,
        options: ReadOptions = DEFAULT_READ_OPTIONS,
        *,
        isolation: IsolationLevel = "read_uncommitted",
    ) -> Iterator[AnyBatch | LogFileError]:
        """Yield the batches and, in its place, each ``LogFileError``."""
        check_choice("batches", "isolation", isolation, get_args(IsolationLevel))
        transactions = self.transactions() if isolation == "read_committed" else TransactionIndex()
        found = self._walk(from_offset, options)
        return (item for item in found if isinstance(item, LogFileError) or not transactions.is_hidden(item))

    @abstractmethod
    def transactions(self) -> TransactionIndex:
        """Return the transactions in the segments: the aborted ones, and the last stable offset. Raises ``OSError``."""

    @abstractmethod
    def _walk(self, from_offset: int, options: ReadOptions) -> Iterator[AnyBatch | LogFileError]:
        """Yield the batches of all transactions from the one that contains ``from_offset`` on, and the faults."""


@frozen
class Partition(TransactionalLog):
    """The directory of a partition, named after its topic and number. Listings of its files raise ``OSError``."""

    path: Path

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return self.path.name.rpartition("-")[0]

    @property
    def partition(self) -> int:
        """The number of the partition in its topic."""
        return int(self.path.name.rpartition("-")[2])

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, ordered by offset."""
        found = self._files((".log", ".log.swap"))
        listed = {path.with_suffix("") if REPLACEMENT.fullmatch(path.name) else path for path in found}
        paths = sorted(path for path in listed if path.suffix == ".log" and _OFFSET.fullmatch(path.stem))
        return tuple(map(Segment, paths, next_offsets(int(path.stem) for path in paths)))

    @property
    def snapshots(self) -> tuple[KRaftSnapshot, ...]:
        """The KRaft snapshots, ordered by offset. Only the metadata log has snapshots."""
        named = ((path, _SNAPSHOT.fullmatch(path.stem)) for path in self._files(".checkpoint"))
        return tuple(KRaftSnapshot(path, int(name["offset"]), int(name["epoch"])) for path, name in named if name)

    @property
    def producer_snapshots(self) -> tuple[Path, ...]:
        """The producer snapshot files for ``read_producer_snapshot``, ordered by offset."""
        return tuple(path for path in self._files(".snapshot") if _OFFSET.fullmatch(path.stem))

    def _files(self, ending: str | tuple[str, ...]) -> list[Path]:
        """Return the files whose names have an ending, by name; none if a running broker has deleted the directory.

        ``ending`` may be several. ``Path.glob`` would also omit the files of a directory without the permission to list
        it.
        """
        with suppress(FileNotFoundError, NotADirectoryError):
            return [self.path / name for name in sorted(os.listdir(self.path)) if name.endswith(ending)]
        return []

    def transactions(self) -> TransactionIndex:
        """Return the aborted transactions in the segments, and the last stable offset. Raises ``OSError``."""
        segments = self.segments
        end = segments[-1].end_offset() if segments else None
        return evolve(find_transactions(segment.path for segment in segments), end=end)

    def _walk(self, from_offset: int, options: ReadOptions) -> Iterator[AnyBatch | LogFileError]:
        for segment in self.segments:
            if segment.end > from_offset:
                yield from segment.walk_batches(from_offset, options)

    def first_record_at(self, timestamp: int) -> Record | None:
        """Return the first record whose timestamp is ``timestamp`` or later; like ``Segment.first_at``."""
        found = (segment.first_at(timestamp) for segment in self.segments)
        return next((record for record in found if record is not None), None)

    def leader_epochs(self) -> tuple[LeaderEpoch, ...]:
        """Return the content of ``leader-epoch-checkpoint``. Raises the errors of ``read_leader_epochs``."""
        return read_leader_epochs(self.path / LEADER_EPOCHS)

    def metadata(self) -> PartitionMetadata:
        """Return the content of ``partition.metadata``. Raises the errors of ``read_partition_metadata``."""
        return read_partition_metadata(self.path / PARTITION_METADATA)

    def quorum_state(self) -> Versioned[QuorumStateData]:
        """Return the content of the metadata log's ``quorum-state``. Raises the errors of ``read_quorum_state``."""
        return read_quorum_state(self.path / "quorum-state")


@frozen
class LogDirectory:
    """A log directory: one of the directories in ``log.dirs`` of a broker."""

    path: Path

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The partitions by topic and number, excluding partitions that are being deleted or moved."""
        directories = (path for path in self.path.iterdir() if path.is_dir() and named_partition(path.name))
        return tuple(sorted(map(Partition, directories), key=lambda each: (each.topic, each.partition)))

    def meta(self) -> MetaProperties:
        """Return the content of ``meta.properties``. Raises the errors of ``read_meta_properties``."""
        return read_meta_properties(self.path / "meta.properties")
