"""Segments to delete: expired, above the size limit, or below the log start offset.

Whole segments are deleted, oldest first, and only below the high watermark. In Kafka this is ``deleteOldSegments`` of
``org.apache.kafka.storage.internals.log.UnifiedLog``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from kafka_msgs.broker.storage.log_segment import LogSegment
from kafka_msgs.broker.storage.log_segments import LogSegments
from kafka_msgs.broker.storage.topic_config import TopicConfig

__all__ = ["find_below_log_start", "find_over_size", "find_too_old"]

Old = Callable[[LogSegment], bool]


def find_below_log_start(segments: LogSegments, high_watermark: int, log_start_offset: int) -> list[LogSegment]:
    """Return the segments whose records are all below the log start offset. The last segment stays."""

    def ends_below(segment: LogSegment) -> bool:
        return segment is not segments.active and segments.end_of(segment) <= log_start_offset

    return _oldest(segments, high_watermark, ends_below)


def find_over_size(segments: LogSegments, high_watermark: int, config: TopicConfig) -> list[LogSegment]:
    """Return the segments that can be deleted while ``retention.bytes`` bytes remain in the log."""
    surplus = sum(segment.size for segment in segments) - config.retention_bytes
    if config.retention_bytes < 0 or surplus < 0:
        return []

    def is_surplus(segment: LogSegment) -> bool:
        nonlocal surplus
        if surplus < segment.size:
            return False
        surplus -= segment.size
        return True

    return _oldest(segments, high_watermark, is_surplus)


def find_too_old(segments: LogSegments, high_watermark: int, config: TopicConfig, now: int) -> list[LogSegment]:
    """Return the segments whose latest record is older than ``retention.ms`` at ``now``, in milliseconds."""
    if config.retention_ms < 0:
        return []
    return _oldest(segments, high_watermark, lambda segment: now - segment.largest_timestamp > config.retention_ms)


def _oldest(segments: LogSegments, high_watermark: int, is_old: Old) -> list[LogSegment]:
    """Return the oldest segments, up to the first one that is not old. An empty last segment stays."""

    def may_go(segment: LogSegment) -> bool:
        kept = high_watermark < segments.end_of(segment)
        return not kept and is_old(segment) and not (segment is segments.active and not segment.size)

    return list(takewhile(may_go, segments))
