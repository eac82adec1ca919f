"""The topic profile by a plain walk over decoded batches, record by record: the expected result of the reducer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import define, field

from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.log.file_scan import AnyBatch
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.summary import CODEC_NAMES
from kafka_msgs.records import ControlType, Record, RecordBatch

__all__ = ["STATISTICS", "Place", "profile_by_walk", "statistics"]

HOUR_MS: Final = 3_600_000
STATISTICS: Final = (
    "records", "batches", "bytes", "contentBytes", "ratio", "codecs", "meanKeySize", "maxKeySize", "meanValueSize",
    "maxValueSize", "withoutKey", "tombstones", "producers", "transactions", "abortedTransactions", "abortedRecords",
    "outOfOrder", "firstOffset", "lastOffset",
)  # fmt: skip
Place = tuple[str, int, int | None]


@define
class _Hour:
    """The batches of an hour: those with client records, their records, and the markers."""

    batches: list[AnyBatch] = field(factory=list)
    markers: list[tuple[AnyBatch, int]] = field(factory=list)
    records: list[Record] = field(factory=list)
    aborted: int = 0
    late: int = 0


def profile_by_walk(partitions: Iterable[Partition]) -> dict[Place, dict[str, Any]]:
    """Return the statistics by topic, partition and hour. Unreadable batches do not count."""
    return {
        (partition.topic, partition.partition, hour): statistics([found])
        for partition in partitions
        for hour, found in _hours(partition).items()
    }


def _hours(partition: Partition) -> dict[int | None, _Hour]:
    hours: defaultdict[int | None, _Hour] = defaultdict(_Hour)
    waiting: dict[int, list[tuple[_Hour, int]]] = {}
    last: int | None = None
    for batch, records in _batches(partition):
        if isinstance(batch, RecordBatch) and batch.is_control:
            for marker in batch.control_records()[:1]:
                hours[_hour_of(marker.timestamp)].markers.append((batch, marker.type))
                if marker.type in (ControlType.COMMIT, ControlType.ABORT):
                    for hour, count in waiting.pop(batch.producer_id, ()):
                        hour.aborted += count if marker.type is ControlType.ABORT else 0
            continue
        if not records:
            continue
        hour = hours[_hour_of(records[0].timestamp)]
        hour.batches.append(batch)
        hour.records += records
        for record in records:
            hour.late += last is not None and record.timestamp < last
            last = record.timestamp
        if isinstance(batch, RecordBatch) and batch.is_transactional:
            waiting.setdefault(batch.producer_id, []).append((hour, len(records)))
    return hours


def _batches(partition: Partition) -> Iterator[tuple[AnyBatch, list[Record]]]:
    for segment in partition.segments:
        for item in segment.walk_batches():
            if isinstance(item, KafkaMsgsError):
                continue
            try:
                is_control = isinstance(item, RecordBatch) and item.is_control
                found = [] if is_control else list(item.records())
            except KafkaMsgsError:
                continue
            yield item, found


def _hour_of(timestamp: int) -> int | None:
    return timestamp // HOUR_MS * HOUR_MS if timestamp >= 0 else None


def statistics(hours: Iterable[_Hour]) -> dict[str, Any]:
    """Return the statistics of hours with the column names of the table ``profile``."""
    found = list(hours)
    batches = [batch for hour in found for batch in hour.batches]
    markers = [marker for hour in found for marker in hour.markers]
    records = [record for hour in found for record in hour.records]
    keys = [0 if each.key is None else len(each.key) for each in records]
    values = [0 if each.value is None else len(each.value) for each in records]
    headers = sum(
        len(name.encode("utf-8", "surrogateescape")) + (0 if value is None else len(value))
        for each in records
        for name, value in each.headers
    )
    size, content = sum(each.size for each in batches), sum(keys) + sum(values) + headers
    producers = {each.producer_id for each in batches if isinstance(each, RecordBatch) and each.producer_id >= 0}
    kinds = [kind for _, kind in markers]
    return {
        "records": len(records),
        "batches": len(batches),
        "bytes": size + sum(batch.size for batch, _ in markers),
        "contentBytes": content,
        "ratio": content / size if size else None,
        "codecs": sorted({CODEC_NAMES[each.codec] for each in batches}),
        "meanKeySize": sum(keys) / len(records) if records else None,
        "maxKeySize": max(keys, default=None),
        "meanValueSize": sum(values) / len(records) if records else None,
        "maxValueSize": max(values, default=None),
        "withoutKey": sum(each.key is None for each in records),
        "tombstones": sum(each.value is None for each in records),
        "producers": len(producers),
        "transactions": kinds.count(ControlType.COMMIT),
        "abortedTransactions": kinds.count(ControlType.ABORT),
        "abortedRecords": sum(hour.aborted for hour in found),
        "outOfOrder": sum(hour.late for hour in found),
        "firstOffset": min((each.offset for each in records), default=None),
        "lastOffset": max((each.offset for each in records), default=None),
    }
