"""Removes from a log what the configs of its topic do not keep: old segments, old records of keys, idle producers.

``retention`` says which segments are old, and ``compaction`` which records are. In Kafka these are ``LogManager``,
``LogCleaner`` and ``UnifiedLog`` of ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from kafka_msgs.broker.storage import compaction, retention
from kafka_msgs.broker.storage.compaction import MAX_KEYS, CleanableRange
from kafka_msgs.broker.storage.log_segment import LogSegment
from kafka_msgs.broker.storage.partition_log import PartitionLog

__all__ = ["clean", "compact", "delete_old_segments", "dirty_part"]


def clean(log: PartitionLog, now: int) -> None:
    """Remove what the configs of the topic do not keep at ``now``, in milliseconds. Raises ``OSError``."""
    if log.config.compacts and dirty_part(log, now).is_enough(log.config):
        compact(log, now)
    delete_old_segments(log, now)
    log.producers.expire(now, log.producer_expiration_ms)
    log.segments.store.expire(now)


def dirty_part(log: PartitionLog, now: int) -> CleanableRange:
    """Return what a compaction would look at."""
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
    """Remove segments that are below the start of the log, over ``retention.bytes`` or over ``retention.ms``.

    Raises ``OSError``.
    """
    segments, config = log.segments, log.config
    _remove(log, retention.find_below_log_start(segments, log.high_watermark, log.log_start_offset), now)
    if config.deletes:
        _remove(log, retention.find_over_size(segments, log.high_watermark, config), now)
        _remove(log, retention.find_too_old(segments, log.high_watermark, config, now), now)


def _remove(log: PartitionLog, old: list[LogSegment], now: int) -> None:
    if not old:
        return
    if len(old) == len(log.segments):
        log.roll(now)
    log.increment_log_start_offset(log.segments.end_of(old[-1]))
    log.segments.remove(old, now, log.config.file_delete_delay_ms)
