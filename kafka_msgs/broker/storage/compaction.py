"""Log compaction, which keeps only the latest record of each key.

A compaction reads the segments from the first dirty offset up to the first uncleanable one and finds the latest offset
of each key. It then rewrites all segments below that point. ``record_filter`` decides which records of a batch remain.
Small segments are merged. In Kafka these are ``Cleaner`` and ``LogCleanerManager`` in
``org.apache.kafka.storage.internals.log`` (KIP-58, KIP-354, KIP-534).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import define, field, frozen

from kafka_msgs.broker.storage.batch_headers import PositionedHeader, header_at
from kafka_msgs.broker.storage.log_reads import collect_aborted
from kafka_msgs.broker.storage.log_segment import LogSegment
from kafka_msgs.broker.storage.log_segments import LogSegments
from kafka_msgs.broker.storage.producer_state import ProducerStateEntry
from kafka_msgs.broker.storage.record_filter import CleanedTransactionMetadata, CompactionFilter
from kafka_msgs.broker.storage.topic_config import TopicConfig
from kafka_msgs.log.writers.index_writer import SegmentIndexes

__all__ = ["MAX_KEYS", "CleanableRange", "compact", "find_cleanable"]

MAX_KEYS: Final = 500_000
"""The maximum number of keys per compaction. The next compaction handles the remaining records."""

_MAX_OFFSETS: Final = 2**31 - 1


@frozen
class CleanableRange:
    """The range of a compaction: from ``start`` up to but excluding ``end``. The log begins at ``log_start``.

    ``ratio`` is the dirty share of all bytes below ``end``. ``overdue`` means that a record exceeds
    ``max.compaction.lag.ms``.
    """

    log_start: int
    start: int
    end: int
    size: int
    ratio: float
    overdue: bool

    def is_enough(self, config: TopicConfig) -> bool:
        """Return whether a compaction is due."""
        return self.size > 0 and (self.overdue or self.ratio > config.min_cleanable_dirty_ratio)


def find_cleanable(
    segments: LogSegments, config: TopicConfig, clean_offset: int, log_start_offset: int, stable_offset: int, now: int
) -> CleanableRange:
    """Return the cleanable range at ``now``, in milliseconds.

    Everything below ``clean_offset`` is already compacted.
    """
    start = clean_offset if log_start_offset <= clean_offset <= segments.end_offset else log_start_offset
    closed = [each for each in segments.from_offset(start) if each is not segments.active]
    ends = [stable_offset, segments.active.base_offset]
    if config.min_compaction_lag_ms > 0:
        ends += [each.base_offset for each in closed if each.largest_timestamp > now - config.min_compaction_lag_ms]
    end = segments.from_offset(max(start, min(ends)))[0].base_offset
    cleanable = sum(each.size for each in segments.from_offset(min(start, end)) if each.base_offset < end)
    clean = sum(each.size for each in segments if each.base_offset < start)
    first_times = [each.first_timestamp for each in closed]
    oldest = min((time for time in first_times if time), default=now)
    ratio = cleanable / (clean + cleanable) if clean + cleanable else 0.0
    return CleanableRange(
        log_start_offset, start, end, cleanable, ratio, oldest < now - max(config.max_compaction_lag_ms, 0)
    )


@define(eq=False)
class _LatestOffsets:
    """The latest offset of each key, and the offset up to which records were read."""

    limit: int
    by_key: dict[bytes, int] = field(factory=dict)
    end_offset: int = 0

    def take(self, segment: LogSegment, header: PositionedHeader, start: int) -> bool:
        """Add the keys of a batch, and return False if they exceed the capacity."""
        for record in segment.records(header) or ():
            if record.key is not None and record.offset >= start:
                if len(self.by_key) >= self.limit:
                    return False
                self.by_key[bytes(record.key)] = record.offset
        return True


def compact(
    segments: LogSegments,
    config: TopicConfig,
    dirty: CleanableRange,
    producers: dict[int, ProducerStateEntry],
    high_watermark: int,
    now: int,
    max_keys: int = MAX_KEYS,
) -> int:
    """Compact the dirty range and the segments below it. Return the offset up to which the log is now compacted.

    Raises ``OSError``. The segments are then unchanged or partly compacted.
    """
    latest = _latest_offsets(segments, dirty, max_keys)
    transactions = CleanedTransactionMetadata()
    wanted = [each for each in segments if each.base_offset < latest.end_offset]
    for group in _groups(wanted, config, dirty.end):
        survivors = CompactionFilter(
            latest.by_key, latest.end_offset, transactions, producers, high_watermark, config.delete_retention_ms, now
        )
        new = _rewrite(segments, group, survivors, dirty.log_start, now)
        segments.replace(group, new, now, config.file_delete_delay_ms)
    return latest.end_offset


def _latest_offsets(segments: LogSegments, dirty: CleanableRange, max_keys: int) -> _LatestOffsets:
    latest, transactions = _LatestOffsets(max_keys), CleanedTransactionMetadata()
    transactions.expect(collect_aborted(segments.from_offset(dirty.start), dirty.log_start, dirty.end))
    for segment in segments.from_offset(dirty.start):
        if segment.base_offset >= dirty.end:
            break
        for header in segment.batches(segment.indexes.position_before(dirty.start)):
            if header.is_control:
                transactions.control_batch(header, segment)
            elif not transactions.is_aborted(header) and not latest.take(segment, header, dirty.start):
                return latest
            if header.last_offset >= dirty.start:
                latest.end_offset = header.last_offset + 1
        latest.end_offset = min(segments.end_of(segment), dirty.end)
    return latest


def _groups(segments: Sequence[LogSegment], config: TopicConfig, end: int) -> list[list[LogSegment]]:
    """Group adjacent segments that fit into one segment."""
    groups: list[list[LogSegment]] = []
    ends = [*(each.base_offset for each in segments[1:]), end]
    for segment, next_offset in zip(segments, ends, strict=True):
        group = groups[-1] if groups else []
        too_far = bool(segment.size and group) and next_offset - 1 - group[0].base_offset > _MAX_OFFSETS
        if not group or too_far or not _fits([*group, segment], config):
            groups.append([segment])
        else:
            group.append(segment)
    return groups


def _fits(segments: Sequence[LogSegment], config: TopicConfig) -> bool:
    indexes = [each.indexes for each in segments]
    largest_index = max(
        sum(len(each.offset_index()) for each in indexes), sum(len(each.time_index()) for each in indexes)
    )
    return sum(each.size for each in segments) <= config.segment_bytes and largest_index <= config.segment_index_bytes


def _rewrite(
    segments: LogSegments, group: Sequence[LogSegment], survivors: CompactionFilter, log_start: int, now: int
) -> LogSegment:
    """Return a new segment with the remaining records of the given segments."""
    base_offset = group[0].base_offset
    store = segments.store.rewrite(base_offset)
    new = LogSegment(base_offset, store, SegmentIndexes(base_offset, segments.index_interval), now)
    survivors.transactions.index_into(new.indexes.aborted)
    for segment in group:
        behind = segments.from_offset(segment.base_offset)
        survivors.transactions.expect(collect_aborted(behind, log_start, segments.end_of(segment)))
        for header in segment.batches():
            data = survivors.filter_batch(header, segment)
            if data:
                kept = header_at(data, 0, 0, len(data))
                assert kept is not None
                new.append(data, [kept], now)
    new.indexes.add_latest_time()
    store.save_indexes(new.indexes)
    return new
