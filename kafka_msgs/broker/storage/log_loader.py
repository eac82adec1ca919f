"""Opening a partition: loading its stored data, checking it, and repairing it after a crash.

Everything below the recovery point was flushed and is trusted. Later data is read and its checksums are verified;
everything from the first incomplete or invalid batch on is removed. Indexes and producer state are rebuilt. In Kafka
this is ``LogLoader`` and ``LogSegment.recover`` in ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from collections.abc import Iterator

from kafka_msgs.broker.storage.batch_headers import PositionedHeader, has_valid_crc, iter_headers
from kafka_msgs.broker.storage.leader_epochs import LeaderEpochCache
from kafka_msgs.broker.storage.log_segment import LogSegment
from kafka_msgs.broker.storage.log_segments import LogSegments
from kafka_msgs.broker.storage.log_validator import RawBatch, read_marker
from kafka_msgs.broker.storage.producer_state import (
    AppendOrigin,
    ProducerAppendInfo,
    ProducerStateEntry,
    ProducerStateManager,
)
from kafka_msgs.broker.storage.store import PartitionStore, SavedPartition, SegmentStore
from kafka_msgs.broker.storage.topic_config import TopicConfig
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.log.writers.index_writer import SegmentIndexes

__all__ = ["load", "sound_batches"]


def load(
    store: PartitionStore, config: TopicConfig, now: int, expiration_ms: int
) -> tuple[LogSegments, LeaderEpochCache, ProducerStateManager, int, int]:
    """Open the stored data of a partition, or create a new one. Raises ``OSError``.

    Return also the log start offset, and the offset up to which the log is compacted.
    """
    stored = store.load()
    segments = LogSegments(store, config.index_interval_bytes, recovery_point=stored.recovery_point)
    epochs, producers = LeaderEpochCache(stored.epochs), ProducerStateManager()
    unsure = _unsure(stored)
    for each in stored.segments:
        indexes = None if each in unsure else each.load_indexes(config.index_interval_bytes)
        segments.add(
            LogSegment(
                each.base_offset, each, indexes or SegmentIndexes(each.base_offset, config.index_interval_bytes), now
            )
        )
        segments.end_offset = each.base_offset
        if indexes is not None:
            segments.active.take_times_after_index()
        elif _recover(segments, epochs, producers, stored.log_start_offset, now, expiration_ms):
            store.delete(stored.segments[len(segments) :], now, 0)
            break
    if not len(segments) or segments.active.next_offset() < stored.log_start_offset:
        segments.remove(list(segments), now, 0)
        segments.begin(stored.log_start_offset, now)
    segments.end_offset = segments.active.next_offset()
    start = max(stored.log_start_offset, segments[0].base_offset)
    _remove_stray_snapshots(segments)
    producers.reset()
    changed = [epochs.truncate_end(segments.end_offset), epochs.truncate_start(start)]
    if any(changed) or epochs.entries != stored.epochs:
        store.save_epochs(epochs.entries)
    if stored.clean and not segments.store.snapshots():  # A broker that wrote no snapshots, so there are no producers.
        producers.reset((), segments.end_offset)
    else:
        _restore(segments, producers, start, now, expiration_ms)
    segments.take_snapshot(producers, start)
    return segments, epochs, producers, start, stored.clean_offset


def _unsure(stored: SavedPartition) -> list[SegmentStore]:
    """Return the segments that may be unflushed, starting with the segment that contains the recovery point."""
    if stored.clean:
        return []
    below = [each for each in stored.segments if each.base_offset <= stored.recovery_point]
    return list(stored.segments[max(len(below) - 1, 0) :])


def _recover(
    segments: LogSegments,
    epochs: LeaderEpochCache,
    producers: ProducerStateManager,
    start: int,
    now: int,
    expiration_ms: int,
) -> bool:
    """Read the whole active segment, and rebuild its indexes. Return whether bytes were removed from it."""
    segment = segments.active
    _restore(segments, producers, start, now, expiration_ms)
    segment.indexes = SegmentIndexes(segment.base_offset, segments.index_interval)
    end = 0
    for batch in sound_batches(segment.store):
        if not segment.indexes.can_hold(batch.last_offset):
            break
        segment.indexes.add(batch.position, batch.size, batch.last_offset, batch.max_timestamp)
        if batch.leader_epoch > (-1 if epochs.latest is None else epochs.latest):
            epochs.assign(batch.leader_epoch, batch.base_offset)
        replay(segment, batch, producers, keep_aborted=True)
        end = batch.end
    cut = end < segment.size
    if cut:
        segment.store.truncate(end)
    segment.indexes.add_latest_time()
    segment.store.save_indexes(segment.indexes)
    segments.take_snapshot(producers, start)
    return cut


def sound_batches(store: SegmentStore) -> Iterator[PositionedHeader]:
    """Yield the batches of a segment up to the first incomplete batch or checksum mismatch."""
    for batch in iter_headers(store):
        data = memoryview(b"".join(store.read(batch.position, batch.end)))
        if not has_valid_crc(batch, data):
            return
        yield batch


def replay(
    segment: LogSegment, batch: PositionedHeader, producers: ProducerStateManager, *, keep_aborted: bool
) -> None:
    """Apply a batch of the log to the producers; ``keep_aborted`` adds aborted transactions to the segment's index."""
    if batch.has_producer:
        prepared, marker = ProducerAppendInfo(), None
        if batch.is_control:
            data = memoryview(b"".join(segment.store.read(batch.position, batch.end)))
            try:
                marker = read_marker(RawBatch(batch, data))
            except RequestRefusedError:
                marker = None
        producers.prepare(batch, AppendOrigin.REPLAY, marker, 0, prepared)
        producers.commit(prepared)
        for done in prepared.completed:
            if keep_aborted:
                segment.complete(done, producers.stable_offset_after(done))
            producers.complete(done, batch.last_offset + 1)
    producers.end_offset = batch.last_offset + 1


def _remove_stray_snapshots(segments: LogSegments) -> None:
    """Remove snapshots without a segment, except the snapshot that was taken when the log was closed."""
    bases = {segment.base_offset for segment in segments}
    strays = [offset for offset in segments.store.snapshots() if offset not in bases]
    for offset in strays:
        if offset != strays[-1] or offset < segments.active.base_offset:
            segments.store.delete_snapshot(offset)


def _restore(segments: LogSegments, producers: ProducerStateManager, start: int, now: int, expiration_ms: int) -> None:
    """Restore the producer state at ``segments.end_offset``. The last two segments get a snapshot each."""
    end, had_none = segments.end_offset, not producers.states and producers.end_offset >= segments.end_offset
    for offset in segments.store.snapshots():
        if not start < offset <= end:
            segments.store.delete_snapshot(offset)
    producers.reset(*_latest_snapshot(segments, start, end, now, expiration_ms))
    last_two = {segment.base_offset for segment in tuple(segments)[-2:]}
    for segment in () if had_none else segments.from_offset(producers.end_offset):
        if segment.base_offset >= end:
            break
        producers.end_offset = max(segment.base_offset, producers.end_offset, start)
        if segment.base_offset in last_two:
            segments.take_snapshot(producers, start)
        first = segment.batch_of(producers.end_offset)
        for batch in segment.batches(first.position) if first else ():
            if batch.base_offset >= end:
                break
            replay(segment, batch, producers, keep_aborted=False)
    producers.end_offset = end


def _latest_snapshot(
    segments: LogSegments, start: int, end: int, now: int, expiration_ms: int
) -> tuple[list[ProducerStateEntry], int]:
    for offset in sorted((each for each in segments.store.snapshots() if start < each <= end), reverse=True):
        found = segments.store.load_snapshot(offset)
        if found is not None:
            live = [
                each for each in found if each.first_offset is not None or now - each.last_timestamp < expiration_ms
            ]
            return live, offset
        segments.store.delete_snapshot(offset)
    return [], min(start, end)
