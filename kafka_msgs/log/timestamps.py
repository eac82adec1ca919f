"""Timestamp lookups in logs: record times, and end offsets at a time.

This module reads the indexes and a few batches. It completes the rows of ``kafka_msgs.report.sections``, which computes
the results for groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from time import time
from typing import Any, Final, Protocol, TypeAlias

from attrs import frozen

from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.segment import Segment
from kafka_msgs.records import ReadOptions, RecordBatch

__all__ = [
    "LocalTimes",
    "LogTimestamps",
    "Places",
    "latest_of",
    "newest_of",
    "with_log_times",
]

_SECOND_MS: Final = 1000
_LOOKED_UP: Final = 1000
"""The maximum number of rows with lookups in logs."""
_HEADERS: Final = ReadOptions(check_crc=False)


class LogTimestamps(Protocol):
    """The timestamps in the log of a partition, on any filesystem. None means unknown, or no matching record."""

    def timestamp_at_or_after(self, offset: int) -> int | None:
        """Return the time of the first record at or after an offset."""

    def end_offset_at(self, moment: int, end: int) -> int | None:
        """Return the log end offset at a time, or ``end`` if no record was written since then."""

    def latest_timestamp(self) -> int | None:
        """Return the newest time."""


@frozen
class LocalTimes:
    """The timestamps of a local partition."""

    partition: Partition

    def timestamp_at_or_after(self, offset: int) -> int | None:
        """Return the time of the first record at or after an offset, in milliseconds since the epoch.

        Transaction markers do not count. Returns None if no such record exists or if it has no timestamp. The batch is
        found through the indexes of the segment. Raises ``OSError``, and the error of an unreadable batch.
        """
        for batch in skip_faults(self.partition.walk_batches(offset)):
            if isinstance(batch, RecordBatch) and batch.is_control:
                continue
            for record in batch.records():
                if record.offset >= offset:
                    return record.timestamp if record.timestamp >= 0 else None
        return None

    def end_offset_at(self, moment: int, end: int) -> int:
        """Return the log end offset at a time: the offset of the first record since then, or ``end``."""
        first = self.partition.first_record_at(moment)
        return end if first is None else first.offset

    def latest_timestamp(self) -> int | None:
        """Return the newest time of the last segment with timestamps, or None."""
        times = (_newest(segment) for segment in reversed(self.partition.segments))
        return next((each for each in times if each is not None), None)


Places: TypeAlias = Mapping[tuple[str, int], LogTimestamps]
"""The logs of partitions by topic and number."""


def _newest(segment: Segment) -> int | None:
    """Return the newest time of a segment, from the last entry of the time index and the batches after it."""
    entry = segment.time_before()
    start = segment.base_offset if entry is None else entry.offset
    times = [each.max_timestamp for each in skip_faults(segment.walk_batches(start, _HEADERS))]
    return max((each for each in [*([entry.timestamp] if entry else []), *times] if each >= 0), default=None)


def with_log_times(rows: Iterable[Mapping[str, Any]], places: Places) -> tuple[list[dict[str, Any]], int | None]:
    """Return rows of ``kafka_msgs.report.sections.lag`` with times from the logs of partitions, and the newest time.

    It adds ``unreadMs`` and ``firstEndOffset`` if ``places`` contains the log of the partition and the log is readable.
    This is limited to the thousand rows with the largest lags, because each lookup reads files. The newest time is the
    maximum of all records in these logs and of all commits, but no later than now.
    """
    given = list(rows)
    looked_up = set(sorted(range(len(given)), key=lambda number: -(given[number].get("lag") or 0))[:_LOOKED_UP])
    found = [
        {**row, **_of_log(row, places.get((row["topic"], row["topicPartition"])))} if number in looked_up else {**row}
        for number, row in enumerate(given)
    ]
    read = {(row["topic"], row["topicPartition"]) for row in found} & places.keys()
    times = [latest_of(places[place]) for place in read]
    commits = [row.get("commitTimestampMs") for row in found]
    return found, newest_of((*times, *commits))


def newest_of(times: Iterable[int | None]) -> int | None:
    """Return the newest of times in milliseconds since the epoch, but no later than now; None if all are unknown.

    The limit is needed because producers may write any timestamp.
    """
    newest = max((each for each in times if each is not None), default=None)
    return None if newest is None else min(newest, int(time() * _SECOND_MS))


def latest_of(log: LogTimestamps) -> int | None:
    """Return the newest time of a log, or None if it is unreadable, such as after the deletion of a segment."""
    with suppress(KafkaMsgsError, OSError):
        return log.latest_timestamp()
    return None


def _of_log(row: Mapping[str, Any], log: LogTimestamps | None) -> dict[str, Any]:
    end, since = row.get("endOffset"), row.get("firstCommitMs")
    if log is None or end is None:
        return {}
    try:
        behind = row["committedOffset"] < end and row.get("lag") != 0
        return {
            "unreadMs": log.timestamp_at_or_after(row["committedOffset"]) if behind else None,
            "firstEndOffset": None if since is None or since < 0 else log.end_offset_at(since, end),
        }
    except (KafkaMsgsError, OSError):
        return {}
