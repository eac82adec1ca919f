"""Whether the indexes beside a segment lead to what is in it.

Owns the comparison, which is that of Kafka's ``kafka-dump-log``: an entry of the offset index names the last offset of
the batch that it leads to, one of the time index the last offset of a batch and the latest time in it. Damage of the
indexes themselves is told by ``index``; whether an entry is used at all is left to ``segment``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.log.index import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    OffsetEntry,
    TimeEntry,
    walk_offset_index,
    walk_time_index,
)
from kafka_msgs.log.scan import AnyBatch, walk_log
from kafka_msgs.log.segment import Segment

__all__ = ["check_offset_index", "check_time_index"]


def check_offset_index(path: Path) -> Iterator[OffsetEntry | LogFileError]:
    """Yield the entries of an ``.index`` file and its faults, and behind an entry what the segment says against it.

    Without a segment beside the index nothing is said against any. Raises ``LogFileError`` for a file whose name is no
    offset, and ``OSError``.
    """
    segment = Segment(path.with_suffix(".log"))
    for number, item in enumerate(walk_offset_index(path)):
        yield item
        if isinstance(item, OffsetEntry) and segment.path.exists():
            batch = _batch_at(segment, item.position)
            if batch is None or batch.last_offset != item.offset:
                found = "there is no batch" if batch is None else f"the batch ends with offset {batch.last_offset}"
                yield _mismatch(path, number * OFFSET_ENTRY_SIZE, OFFSET_ENTRY_SIZE, f"{item}: {found}")


def check_time_index(path: Path) -> Iterator[TimeEntry | LogFileError]:
    """Yield the entries of a ``.timeindex`` file and what is said against them; like ``check_offset_index``."""
    segment = Segment(path.with_suffix(".log"))
    for number, item in enumerate(walk_time_index(path)):
        yield item
        if isinstance(item, TimeEntry) and segment.path.exists():
            found = _said_of_time(segment, item)
            if found:
                yield _mismatch(path, number * TIME_ENTRY_SIZE, TIME_ENTRY_SIZE, f"{item}: {found}")


def _batch_at(segment: Segment, position: int) -> AnyBatch | None:
    if not 0 <= position < segment.size:
        return None
    item = next(walk_log(segment.path, start=position), None)
    return None if isinstance(item, LogFileError) or item is None or item.position != position else item


def _said_of_time(segment: Segment, entry: TimeEntry) -> str | None:
    """Return what the segment says against an entry, if anything."""
    batch = segment.batch_at(entry.offset)
    if batch is None or batch.last_offset != entry.offset:
        return "no batch ends with that offset"
    try:
        latest = max((record.timestamp for record in batch), default=None)
    except KafkaMsgsError as error:
        return str(error)
    return None if latest == entry.timestamp else f"the latest time in that batch is {latest}"


def _mismatch(path: Path, position: int, size: int, reason: str) -> LogFileError:
    return LogFileError(file=str(path), position=position, skipped=size, reason=reason)
