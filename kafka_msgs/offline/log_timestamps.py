"""Times in logs: since when a record waits, where a partition ended at a time, how old segments are, the first commits.

This module reads the indexes, a few batches, and of ``__consumer_offsets`` the oldest commits. What follows for a group
is left to ``kafka_msgs.report.sections``, whose rows this module completes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from time import time
from typing import Any, Final, Protocol, TypeAlias

from attrs import frozen

from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.internal_topics.records import TopicRecord, decode_record
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.segment import Segment
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.records import ReadOptions, RecordBatch

__all__ = [
    "LocalTimes",
    "LogTimestamps",
    "end_offset_at",
    "first_commits",
    "latest_timestamp",
    "newest_of",
    "segment_rows",
    "timestamp_at_or_after",
    "with_log_times",
]

_SECOND_MS: Final = 1000
_OFFSETS_TOPIC: Final = "__consumer_offsets"
_COMMIT_TYPES: Final = (b"\0\0", b"\0\1")
_LOOKED_UP: Final = 1000
"""How many rows are looked up in logs."""
_HEADERS: Final = ReadOptions(check_crc=False)


class LogTimestamps(Protocol):
    """The times in the log of a partition, wherever it is. None means: not known, or no record has such a time."""

    def timestamp_at_or_after(self, offset: int) -> int | None:
        """Return the time of the first record at an offset or after it."""

    def end_offset_at(self, moment: int, end: int) -> int | None:
        """Return where the log ended at a time; ``end`` where nothing was written since then."""

    def latest_timestamp(self) -> int | None:
        """Return the newest time."""


@frozen
class LocalTimes:
    """The times of a partition on this machine."""

    partition: Partition

    def timestamp_at_or_after(self, offset: int) -> int | None:
        """Return what the function of that name returns."""
        return timestamp_at_or_after(self.partition, offset)

    def end_offset_at(self, moment: int, end: int) -> int | None:
        """Return what the function of that name returns."""
        return end_offset_at(self.partition, moment, end)

    def latest_timestamp(self) -> int | None:
        """Return what the function of that name returns."""
        return latest_timestamp(self.partition.segments)


Places: TypeAlias = Mapping[tuple[str, int], LogTimestamps]
"""The logs of partitions by topic and number."""


def timestamp_at_or_after(partition: Partition, offset: int) -> int | None:
    """Return the time of the first record at an offset or after it, in milliseconds since the epoch.

    Markers of transactions do not count. None where there is no such record, or where it has no time. The indexes of
    the segment find the batch. Raises ``OSError``, and what a batch raises that cannot be read.
    """
    for batch in skip_faults(partition.walk_batches(offset)):
        if isinstance(batch, RecordBatch) and batch.is_control:
            continue
        for record in batch.records():
            if record.offset >= offset:
                return record.timestamp if record.timestamp >= 0 else None
    return None


def end_offset_at(partition: Partition, moment: int, end: int) -> int:
    """Return where a partition ended at a time: the offset of the first record since then, or ``end`` for none."""
    first = partition.first_record_at(moment)
    return end if first is None else first.offset


def latest_timestamp(segments: Sequence[Segment]) -> int | None:
    """Return the newest time of the last segment with records that have one; None for none."""
    times = (_newest(segment) for segment in reversed(segments))
    return next((each for each in times if each is not None), None)


def _newest(segment: Segment) -> int | None:
    """Return the newest time of a segment: that of the last entry of the time index, or of the batches after it."""
    entry = segment.time_before()
    start = segment.base_offset if entry is None else entry.offset
    times = [each.max_timestamp for each in skip_faults(segment.walk_batches(start, _HEADERS))]
    return max((each for each in [*([entry.timestamp] if entry else []), *times] if each >= 0), default=None)


def segment_rows(partitions: Iterable[Partition]) -> Iterator[dict[str, Any]]:
    """Yield a row for each segment, as ``kafka_msgs.report.sections.retention`` takes them; raises ``OSError``."""
    for partition in partitions:
        for segment in partition.segments:
            first = next(skip_faults(segment.walk_batches(options=_HEADERS)), None)
            oldest = None if first is None else getattr(first, "base_timestamp", first.max_timestamp)
            yield {
                "topic": partition.topic,
                "partition": partition.partition,
                "segment": segment.path.name,
                "bytes": segment.size,
                "oldestMs": None if oldest is None or oldest < 0 else oldest,
                "newestMs": _newest(segment),
            }


def first_commits(partitions: Iterable[Partition]) -> dict[tuple[str, str, int], OffsetCommitValue]:
    """Return the oldest commit of each group, topic and partition that the log still has, since the last deletion.

    Commits in transactions do not count. What cannot be read is left out. Raises ``OSError``.
    """
    found: dict[bytes, bytes] = {}
    for partition in partitions:
        for batch in skip_faults(partition.walk_batches()):
            if isinstance(batch, RecordBatch) and not batch.is_control and not batch.is_transactional:
                _keep_first(batch, found)
    return dict(_commits(found))


def _keep_first(batch: RecordBatch, found: dict[bytes, bytes]) -> None:
    try:
        rows = zip(batch.keys(), batch.values(), strict=True)
        for key, value in rows:
            if key is not None and bytes(key[:2]) in _COMMIT_TYPES:
                if value is None:
                    found.pop(bytes(key), None)
                else:
                    found.setdefault(bytes(key), bytes(value))
    except KafkaMsgsError:
        return


def _commits(found: Mapping[bytes, bytes]) -> Iterator[tuple[tuple[str, str, int], OffsetCommitValue]]:
    for key, value in found.items():
        try:
            record = decode_record(_OFFSETS_TOPIC, key, value)
        except KafkaMsgsError:
            continue
        if isinstance(record, TopicRecord) and isinstance(record.value, OffsetCommitValue):
            place: Any = record.key
            assert isinstance(place, OffsetCommitKey)
            yield (place.group, place.topic, place.partition), record.value


def with_log_times(rows: Iterable[Mapping[str, Any]], places: Places) -> tuple[list[dict[str, Any]], int | None]:
    """Return rows of ``kafka_msgs.report.sections.lag`` with what the logs of partitions say, and the newest time.

    That is ``unreadMs`` and ``firstEndOffset``, where the log of the partition is among ``places`` and can be read: for
    the thousand rows with the largest lags, because each is looked up in files. The newest time is that of all records
    in these and of all commits, and no later than now.
    """
    given = list(rows)
    looked_up = set(sorted(range(len(given)), key=lambda number: -(given[number].get("lag") or 0))[:_LOOKED_UP])
    found = [
        {**row, **_of_log(row, places.get((row["topic"], row["topicPartition"])))} if number in looked_up else {**row}
        for number, row in enumerate(given)
    ]
    read = {(row["topic"], row["topicPartition"]) for row in found} & places.keys()
    times = [places[place].latest_timestamp() for place in read]
    commits = [row.get("commitTimestampMs") for row in found]
    return found, newest_of((*times, *commits))


def newest_of(times: Iterable[int | None]) -> int | None:
    """Return the newest of times in milliseconds since the epoch, but no later than now; None where none is known.

    A producer may write any time into its records.
    """
    newest = max((each for each in times if each is not None), default=None)
    return None if newest is None else min(newest, int(time() * _SECOND_MS))


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
