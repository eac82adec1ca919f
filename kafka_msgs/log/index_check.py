"""Checks that the indexes of a segment match the segment.

The comparison is the same as in Kafka's tool ``kafka-dump-log`` (``org.apache.kafka.tools.DumpLogSegments``). An entry
of the offset index must have the last offset of the batch at its position. An entry of the time index must have the
last offset of a batch and the latest timestamp in that batch. ``indexes`` reports damage of the indexes themselves.
``segment`` decides whether it uses an entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafka_msgs.errors import KafkaMsgsError, LogFileError
from kafka_msgs.log.file_scan import AnyBatch, walk_log
from kafka_msgs.log.indexes import (
    OFFSET_ENTRY_SIZE,
    TIME_ENTRY_SIZE,
    OffsetEntry,
    TimeEntry,
    walk_offset_index,
    walk_time_index,
)
from kafka_msgs.log.segment import Segment

__all__ = ["check_offset_index", "check_time_index"]


def check_offset_index(path: Path) -> Iterator[OffsetEntry | LogFileError]:
    """Yield the entries of an ``.index`` file and its faults. A mismatch with the segment follows its entry.

    Without a segment there are no mismatches. Raises ``LogFileError`` for a file whose name is not an offset, and
    ``OSError``.
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
    """Yield the entries of a ``.timeindex`` file, its faults and mismatches; works like ``check_offset_index``."""
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
    """Return the mismatch of an entry with the segment, or None."""
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
