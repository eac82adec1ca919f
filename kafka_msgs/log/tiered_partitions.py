"""Partitions whose log is partly in remote storage, from a local directory with the remote segments (KIP-405).

This module finds the files and reads their batches. ``remote_ranges`` assigns offsets to segments.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

from attrs import evolve, frozen

from kafka_msgs.errors import JobPathError, LogFileError
from kafka_msgs.log.file_scan import AnyBatch, walk_log
from kafka_msgs.log.log_directory import LogDirectory, Partition, TransactionalLog
from kafka_msgs.log.mapped_file import read_whole
from kafka_msgs.log.remote_naming import RemoteManifest, RemoteNaming, parse_remote_naming, read_manifest
from kafka_msgs.log.remote_ranges import (
    METADATA_TOPIC,
    LocalLogBounds,
    RemoteOffsetRange,
    TopicPlace,
    ranges_by_metadata,
    ranges_by_names,
    read_remote_log,
)
from kafka_msgs.log.segment import LARGEST, Segment
from kafka_msgs.log.small_files import LOG_STARTS, read_offset_checkpoint
from kafka_msgs.log.transaction_index import TransactionIndex, TransactionMark, replay_marks, walk_marks
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions, RecordBatch

__all__ = ["TieredPartition", "TieredSegment", "tiered_partitions"]

T = TypeVar("T")


@frozen
class TieredSegment:
    """The ``.log`` file of a remote or local segment, and the offsets to read from it.

    These are the offsets from ``start`` to before ``end``. ``remote`` is None for a segment of the log directory.
    """

    path: Path
    start: int
    end: int
    remote: RemoteOffsetRange | None = None

    def walk_batches(self, options: ReadOptions = DEFAULT_READ_OPTIONS) -> Iterator[AnyBatch | LogFileError]:
        """Yield the batches with these offsets, and each ``LogFileError``. The first batch may start before them.

        Raises ``OSError``.
        """
        for item in walk_log(self.path, options, closed=self.end < LARGEST):
            if isinstance(item, RecordBatch) and item.base_offset >= self.end:
                return
            if isinstance(item, LogFileError) or item.last_offset >= self.start:
                yield item

    def marks(self, *, first: bool) -> Iterator[TransactionMark]:
        """Yield the transaction marks at these offsets, and in the first segment also earlier marks."""
        marks = walk_marks(self.path)
        return (mark for mark in marks if (first or mark.base_offset >= self.start) and mark.base_offset < self.end)


@frozen
class TieredPartition(TransactionalLog):
    """The complete log of a partition: its segments in the order of offsets, with each offset in one segment."""

    topic: str
    number: int
    segments: tuple[TieredSegment, ...]

    def transactions(self) -> TransactionIndex:
        """Return the aborted transactions in the segments, and the last stable offset. Raises ``OSError``."""
        # The end is read first: a broker may add batches while the transactions are read.
        end = next((Segment(last.path).end_offset() for last in self.segments[-1:] if last.remote is None), None)
        numbered = enumerate(self.segments)
        found = replay_marks(mark for number, each in numbered for mark in each.marks(first=not number))
        return evolve(found, end=end)

    def _walk(self, from_offset: int, options: ReadOptions) -> Iterator[AnyBatch | LogFileError]:
        for segment in self.segments:
            for item in segment.walk_batches(options) if segment.end > from_offset else ():
                if isinstance(item, LogFileError) or item.last_offset >= from_offset:
                    yield item


def tiered_partitions(
    tier: Path, *, layout: str | RemoteNaming = "kafka", metadata: Path | None = None, log: Path | None = None
) -> tuple[TieredPartition, ...]:
    """Return the partitions in remote storage by topic and number.

    ``layout`` is the argument of ``parse_remote_naming``. ``metadata`` is a log directory with
    ``__remote_log_metadata``; without it, only the segment names are used. ``log`` is the log directory of a broker.
    Its partitions are also returned, and segments that are also remote are read from it.

    Raises ``JobPathError`` for storage without segments and for a directory without the topic, ``OptionError`` for a
    wrong layout, ``RemoteFormatError`` for segments stored in another form, ``LogFileError`` and ``OSError``.
    """
    known = parse_remote_naming(layout) if isinstance(layout, str) else layout
    local = (
        {(each.topic, each.partition): each for each in LogDirectory(log).partitions if each.segments} if log else {}
    )
    logs = _local_logs(log, local) if log else {}
    remote = _by_names(tier, known, logs) if metadata is None else _by_metadata(metadata, logs)
    check = partial(_segment, tier, known, metadata is None)
    found = {place: list(map(check, ranges)) for place, ranges in remote.items()}
    for place, partition in local.items():
        first = logs[place].log_start
        found.setdefault(place, []).extend(
            TieredSegment(each.path, max(each.base_offset, first), each.end)
            for each in partition.segments
            if first < each.end
        )
    if not any(found.values()):
        raise JobPathError(path=str(tier), reason="there is no segment in the tier")
    return tuple(TieredPartition(*place, tuple(found[place])) for place in sorted(found) if found[place])


def _by_metadata(
    metadata: Path, logs: Mapping[TopicPlace, LocalLogBounds]
) -> Mapping[TopicPlace, Sequence[RemoteOffsetRange]]:
    partitions = [each for each in LogDirectory(metadata).partitions if each.topic == METADATA_TOPIC]
    paths = [segment.path for each in partitions for segment in each.segments]
    if not paths:
        raise JobPathError(path=str(metadata), reason=f"there is no segment of {METADATA_TOPIC}")
    return ranges_by_metadata(read_remote_log(paths), logs)


def _by_names(
    tier: Path, layout: RemoteNaming, logs: Mapping[TopicPlace, LocalLogBounds]
) -> Mapping[TopicPlace, Sequence[RemoteOffsetRange]]:
    named = ((layout.name_of(path.relative_to(tier).as_posix()), path) for path in _files_below(tier))
    return ranges_by_names({name: path.stat().st_size for name, path in named if name is not None}, logs)


def _files_below(directory: Path) -> Iterator[Path]:
    """Yield the files of a directory tree. Raises ``OSError`` for directories that ``Path.rglob`` would omit."""

    def refuse(error: OSError) -> NoReturn:
        raise error

    for home, _, names in os.walk(directory, onerror=refuse):
        yield from (Path(home, name) for name in names)


def _segment(tier: Path, layout: RemoteNaming, named: bool, found: RemoteOffsetRange) -> TieredSegment:
    path = tier / layout.path(found.name)
    manifest = partial(_read_manifest, tier / layout.path(found.name, layout.manifest)) if layout.manifest else None
    found.check_object(str(path), path.stat().st_size if path.exists() else None, manifest, named)
    return TieredSegment(path, found.start, found.end, found)


def _read_manifest(path: Path) -> RemoteManifest:
    return read_manifest(read_whole(path), str(path))


def _local_logs(log: Path, local: Mapping[TopicPlace, Partition]) -> dict[TopicPlace, LocalLogBounds]:
    starts = _if_there(log, LOG_STARTS, read_offset_checkpoint) or {}
    return {
        place: LocalLogBounds.of(each.segments[0].base_offset, starts.get(place, 0), partial(_if_there, each.path))
        for place, each in local.items()
    }


def _if_there(directory: Path, name: str, read: Callable[[Path], T]) -> T | None:
    try:
        return read(directory / name)
    except FileNotFoundError:
        return None
