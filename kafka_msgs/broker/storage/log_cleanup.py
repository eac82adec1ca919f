"""Log cleanup according to the topic configs: retention of segments, compaction of keys, and producer expiration.

Retention deletes whole segments, oldest first, and only below the high watermark. ``compaction`` selects old records.
In Kafka these are ``LogManager``, ``LogCleaner`` and ``UnifiedLog`` of ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile

from kafka_msgs.broker.storage import compaction
from kafka_msgs.broker.storage.compaction import MAX_KEYS, CleanableRange
from kafka_msgs.broker.storage.log_segment import LogSegment
from kafka_msgs.broker.storage.log_segments import LogSegments
from kafka_msgs.broker.storage.partition_log import PartitionLog
from kafka_msgs.broker.storage.topic_config import TopicConfig

__all__ = ["clean", "compact", "delete_old_segments", "dirty_part"]

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


def clean(log: PartitionLog, now: int) -> None:
    """Remove data that the topic configs do not retain at ``now``, in milliseconds. Raises ``OSError``."""
    if log.config.compacts and dirty_part(log, now).is_enough(log.config):
        compact(log, now)
    delete_old_segments(log, now)
    log.producers.expire(now, log.producer_expiration_ms)
    log.segments.store.expire(now)


def dirty_part(log: PartitionLog, now: int) -> CleanableRange:
    """Return the range that a compaction would clean."""
    offsets = log.clean_offset, log.log_start_offset, log.last_stable_offset
    return compaction.find_cleanable(log.segments, log.config, *offsets, now)


def compact(log: PartitionLog, now: int, max_keys: int = MAX_KEYS) -> None:
    """Keep only the latest record of each key, except in the last segment. Raises ``OSError``."""
    dirty, states = dirty_part(log, now), log.producers.states
    if dirty.size:
        log.clean_offset = compaction.compact(
            log.segments, log.config, dirty, states, log.high_watermark, now, max_keys
        )


def delete_old_segments(log: PartitionLog, now: int) -> None:
    """Remove segments that are below the log start offset or exceed ``retention.bytes`` or ``retention.ms``.

    Raises ``OSError``.
    """
    segments, config = log.segments, log.config
    _remove(log, find_below_log_start(segments, log.high_watermark, log.log_start_offset), now)
    if config.deletes:
        _remove(log, find_over_size(segments, log.high_watermark, config), now)
        _remove(log, find_too_old(segments, log.high_watermark, config, now), now)


def _remove(log: PartitionLog, old: list[LogSegment], now: int) -> None:
    if not old:
        return
    if len(old) == len(log.segments):
        log.roll(now)
    log.increment_log_start_offset(log.segments.end_of(old[-1]))
    log.segments.remove(old, now, log.config.file_delete_delay_ms)
