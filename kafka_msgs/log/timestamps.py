"""Timestamp lookups in logs: record times, and end offsets at a time.

This module reads the indexes and a few batches. It completes the rows of ``kafka_msgs.report.sections``, which computes
the results for groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from time import time
from typing import Any, Final, TypeAlias

from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.segment import Segment

__all__ = [
    "LogTimestamps",
    "Places",
    "latest_of",
    "local_timestamps",
    "newest_of",
    "with_log_times",
]

_SECOND_MS: Final = 1000
_LOOKED_UP: Final = 1000
"""The maximum number of rows with lookups in logs."""


class LogTimestamps:
    """The timestamps in the log of a partition, from a local partition or from the lookups in its segments.

    None means unknown, or no matching record. Timestamps are unknown if much of a segment would have to be fetched.
    Methods raise ``OSError``, and the error of an unreadable batch.
    """

    def __init__(self, log: Partition | Sequence[Segment]) -> None:
        self._log = log

    @cached_property
    def _segments(self) -> Sequence[Segment]:
        return self._log.segments if isinstance(self._log, Partition) else self._log

    def timestamp_at_or_after(self, offset: int) -> int | None:
        """Return the time of the first record at or after an offset, in milliseconds since the epoch.

        Transaction markers do not count. Returns None if no such record exists or if it has no timestamp.
        """
        for segment in (each for each in self._segments if each.end > offset):
            if not segment.is_quick:
                return None
            record = segment.record_from(offset)
            if record is not None:
                return record.timestamp if record.timestamp >= 0 else None
        return None

    def end_offset_at(self, moment: int, end: int) -> int | None:
        """Return the log end offset at a time: the offset of the first record since then, or ``end``."""
        for segment in self._segments:
            if segment.is_earlier(moment):
                continue
            if not segment.is_quick:
                return None
            found = segment.first_at(moment)
            if found is not None:
                return found.offset
        return end

    def latest_timestamp(self) -> int | None:
        """Return the newest time of the last segment with timestamps, or None."""
        for segment in reversed(self._segments):
            with suppress(FileNotFoundError):
                if (found := segment.newest_time()) is not None:
                    return found
        return None


Places: TypeAlias = Mapping[tuple[str, int], LogTimestamps]
"""The logs of partitions by topic and number."""


def local_timestamps(partitions: Iterable[Partition]) -> Places:
    """Return the timestamps of local partitions by topic and number. Their directories are listed when needed."""
    return {(each.topic, each.partition): LogTimestamps(each) for each in partitions}


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
