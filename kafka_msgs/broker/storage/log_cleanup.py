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
from kafka_msgs.broker.storage.partition_log import PartitionLog

__all__ = ["clean", "compact", "delete_old_segments", "dirty_part"]


def _oldest(log: PartitionLog, is_old: Callable[[LogSegment], bool]) -> list[LogSegment]:
    """Return the oldest segments, up to the first one that is not old. An empty last segment stays."""
    segments = log.segments

    def may_go(segment: LogSegment) -> bool:
        kept = log.high_watermark < segments.end_of(segment)
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

    def is_below_start(segment: LogSegment) -> bool:
        return segment is not segments.active and segments.end_of(segment) <= log.log_start_offset

    _remove(log, _oldest(log, is_below_start), now)
    surplus = sum(segment.size for segment in segments) - config.retention_bytes

    def is_surplus(segment: LogSegment) -> bool:
        nonlocal surplus
        surplus -= segment.size
        return surplus >= 0

    if config.deletes and config.retention_bytes >= 0:
        _remove(log, _oldest(log, is_surplus), now)
    if config.deletes and config.retention_ms >= 0:
        _remove(log, _oldest(log, lambda segment: now - segment.largest_timestamp > config.retention_ms), now)


def _remove(log: PartitionLog, old: list[LogSegment], now: int) -> None:
    if not old:
        return
    if len(old) == len(log.segments):
        log.roll(now)
    log.increment_log_start_offset(log.segments.end_of(old[-1]))
    log.segments.remove(old, now, log.config.file_delete_delay_ms)
