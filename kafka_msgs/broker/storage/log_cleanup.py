"""Log cleanup according to the topic configs: retention of segments, compaction of keys, and producer expiration.

``retention`` selects old segments, and ``compaction`` old records. In Kafka these are ``LogManager``, ``LogCleaner``
and ``UnifiedLog`` of ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from kafka_msgs.broker.storage import compaction, retention
from kafka_msgs.broker.storage.compaction import MAX_KEYS, CleanableRange
from kafka_msgs.broker.storage.log_segment import LogSegment
from kafka_msgs.broker.storage.partition_log import PartitionLog

__all__ = ["clean", "compact", "delete_old_segments", "dirty_part"]


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
