"""Which segments of a partition are too old, too many, or below the start of the log.

Segments go as a whole, the oldest first. Nothing at or above the high watermark goes. In Kafka this is
``deleteOldSegments`` of ``org.apache.kafka.storage.internals.log.UnifiedLog``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from kafka_msgs.broker.partitions.config import TopicConfig
from kafka_msgs.broker.partitions.segment import Segment
from kafka_msgs.broker.partitions.segments import Segments

__all__ = ["below", "over_size", "too_old"]

Old = Callable[[Segment], bool]


def below(segments: Segments, high_watermark: int, log_start_offset: int) -> list[Segment]:
    """Return the segments whose records are all below the start of the log. The last segment stays."""

    def ends_below(segment: Segment) -> bool:
        return segment is not segments.active and segments.end_of(segment) <= log_start_offset

    return _oldest(segments, high_watermark, ends_below)


def over_size(segments: Segments, high_watermark: int, config: TopicConfig) -> list[Segment]:
    """Return the segments without which the log still has ``retention.bytes``."""
    surplus = sum(segment.size for segment in segments) - config.retention_bytes
    if config.retention_bytes < 0 or surplus < 0:
        return []

    def is_surplus(segment: Segment) -> bool:
        nonlocal surplus
        if surplus < segment.size:
            return False
        surplus -= segment.size
        return True

    return _oldest(segments, high_watermark, is_surplus)


def too_old(segments: Segments, high_watermark: int, config: TopicConfig, now: int) -> list[Segment]:
    """Return the segments whose latest record is older than ``retention.ms`` at ``now``, in milliseconds."""
    if config.retention_ms < 0:
        return []
    return _oldest(segments, high_watermark, lambda segment: now - segment.largest_timestamp > config.retention_ms)


def _oldest(segments: Segments, high_watermark: int, is_old: Old) -> list[Segment]:
    """Return the oldest segments, up to the first one that is not old. An empty last segment stays."""

    def may_go(segment: Segment) -> bool:
        kept = high_watermark < segments.end_of(segment)
        return not kept and is_old(segment) and not (segment is segments.active and not segment.size)

    return list(takewhile(may_go, segments))
