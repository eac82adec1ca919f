"""Size and retention: stored bytes, their age, the retention configs, and the daily growth.

A broker deletes a closed segment when its newest record is older than ``retention.ms``, or when the later segments
of the partition alone reach ``retention.bytes`` (``UnifiedLog.deleteOldSegments``).
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, Final

from kafka_msgs.report.model import Metric, ReportPart
from kafka_msgs.report.sections.table_building import (
    Rows,
    grouped,
    largest_first,
    metrics_of,
    subset_note,
    table_from,
)

__all__ = ["retention_part"]

_SECOND_MS: Final = 1000
_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_PARTITION_METRICS: Final = {"kafka_partition_bytes": "bytes", "kafka_partition_segments": "segments"}
_TOPIC_METRICS: Final = {
    "kafka_topic_oldest_timestamp_seconds": "oldestSeconds",
    "kafka_topic_growth_bytes_per_day": "bytesPerDay",
    "kafka_topic_retention_seconds": "retentionSeconds",
    "kafka_topic_retention_bytes": "retention.bytes",
    "kafka_topic_overdue_seconds": "overdueSeconds",
}
_TOPIC: Final = (
    "topic", "partitions", "segments", "bytes", "oldest", "newest", "spanSeconds", "bytesPerDay", "cleanup.policy",
    "retentionSeconds", "retention.bytes", "overdueSeconds", "overdueBytes",
)  # fmt: skip
_PARTITION: Final = ("topic", "partition", "segments", "bytes", "oldest", "newest", "bytesPerDay")
_SEGMENT: Final = ("topic", "partition", "segment", "bytes", "oldest", "newest", "active")
_NOTE: Final = (
    "retention as the metadata log sets it for the topic or for all brokers; empty where it does not; overdue: by how "
    "much the oldest closed segment is past it, at the newest time in the input"
)


def retention_part(
    rows: Rows, configs: Mapping[str, Mapping[str, str]], as_of: int | None, total: int | None = None
) -> ReportPart:
    """Return sizes, times and retention of topics, partitions and segments.

    A row is a segment: ``topic``, ``partition``, ``segment`` (a text that sorts by offset), ``bytes``, and ``oldestMs``
    and ``newestMs``, None if no record has a timestamp. ``configs`` contains the known topic configs. ``as_of`` is the
    newest time of the input. ``total`` is the total number of segments, if ``rows`` contains only the largest ones.
    """
    segments = _with_active(rows)
    partitions = [_sums(each) for each in grouped(segments, "topic", "partition").values()]
    topics = [_topic(each, configs.get(name, {}), as_of) for (name,), each in grouped(segments, "topic").items()]
    by_size = [largest_first(each, "bytes", "topic", "partition") for each in (topics, partitions, segments)]
    sections = (
        table_from(
            "Size and retention of topics", by_size[0], _TOPIC, subset_note(rows, total, "the most bytes", _NOTE)
        ),
        table_from("Size of partitions", by_size[1], _PARTITION, subset_note(rows, total, "the most bytes")),
        table_from("Size of segments", by_size[2], _SEGMENT, total=total),
    )
    return ReportPart(sections, _metrics(by_size[0], by_size[1]))


def _with_active(rows: Rows) -> list[dict[str, Any]]:
    """Mark the active segment of each partition, which a broker writes to and does not delete."""
    last = {place: max(row["segment"] for row in each) for place, each in grouped(rows, "topic", "partition").items()}
    return [
        {
            **row,
            "active": row["segment"] == last[row["topic"], row["partition"]],
            "oldest": row.get("oldestMs"),
            "newest": row.get("newestMs"),
        }
        for row in rows
    ]


def _sums(rows: Rows) -> dict[str, Any]:
    """Return the sums over the segments of a topic or partition."""
    oldest = min((row["oldest"] for row in rows if row["oldest"] is not None), default=None)
    newest = max((row["newest"] for row in rows if row["newest"] is not None), default=None)
    size = sum(row["bytes"] for row in rows)
    span = None if oldest is None or newest is None else newest - oldest
    return {
        "topic": rows[0]["topic"],
        "partition": rows[0]["partition"],
        "partitions": len({row["partition"] for row in rows}),
        "segments": len(rows),
        "bytes": size,
        "oldest": oldest,
        "newest": newest,
        "spanSeconds": _seconds(span),
        # Less than an hour of data is too short for a daily rate.
        "bytesPerDay": None if span is None or span < _HOUR_MS else size * _DAY_MS / span,
    }


def _topic(rows: Rows, settings: Mapping[str, str], as_of: int | None) -> dict[str, Any]:
    time, size = _number(settings.get("retention.ms")), _number(settings.get("retention.bytes"))
    policy = settings.get("cleanup.policy")
    partitions = list(grouped(rows, "partition").values())
    deletes = policy is None or "delete" in policy
    late = [_overdue_time(each, time, as_of) for each in partitions] if deletes else []
    surplus = [_overdue_bytes(each, size) for each in partitions] if deletes else []
    return {
        **_sums(rows),
        "cleanup.policy": policy,
        "retentionSeconds": _seconds(time),
        "retention.bytes": size,
        "overdueSeconds": max((each for each in late if each is not None), default=None),
        "overdueBytes": sum(each or 0 for each in surplus) or None,
    }


def _number(text: str | None) -> int | None:
    """Return a limit, or None for no limit, which is -1 in a config, and for a value that is not a number."""
    try:
        limit = int(text or "")
    except ValueError:
        return None
    return limit if limit >= 0 else None


def _overdue_time(rows: Rows, limit: int | None, as_of: int | None) -> float | None:
    """Return how long ago the oldest closed segment of a partition became deletable by time, in seconds."""
    closed = [row for row in rows if not row["active"]]
    oldest = min(closed, key=itemgetter("segment"), default=None)
    if oldest is None or oldest["newest"] is None or limit is None or as_of is None:
        return None
    late = as_of - oldest["newest"] - limit
    return late / _SECOND_MS if late > 0 else None


def _overdue_bytes(rows: Rows, limit: int | None) -> int | None:
    """Return the size of the closed segments that could have been deleted by size, in bytes."""
    if limit is None:
        return None
    left = sum(row["bytes"] for row in rows) - limit
    overdue = 0
    for row in sorted(rows, key=itemgetter("segment")):
        if row["active"] or left - overdue < row["bytes"]:
            break
        overdue += row["bytes"]
    return overdue


def _metrics(topics: Rows, partitions: Rows) -> tuple[Metric, ...]:
    dated = [{**row, "oldestSeconds": _seconds(row["oldest"])} for row in topics]
    return *metrics_of(partitions, _PARTITION_METRICS), *metrics_of(dated, _TOPIC_METRICS)


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / _SECOND_MS
