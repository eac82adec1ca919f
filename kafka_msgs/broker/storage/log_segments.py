"""The segments of a partition in offset order, always at least one.

The last segment is the active one, to which batches are appended. In Kafka these are ``LocalLog`` and ``LogSegments``
in ``org.apache.kafka.storage.internals.log``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter

from attrs import define, field

from kafka_msgs.broker.storage.batch_headers import PositionedHeader
from kafka_msgs.broker.storage.log_segment import LogSegment
from kafka_msgs.broker.storage.producer_state import ProducerStateManager
from kafka_msgs.broker.storage.store import PartitionStore
from kafka_msgs.codec import Buffer
from kafka_msgs.log.writers.index_writer import SegmentIndexes

__all__ = ["LogSegments"]


@define(eq=False)
class LogSegments:
    """The segments of one partition in its store. ``end_offset`` is the offset of the next record.

    Everything below ``recovery_point`` was flushed.
    """

    store: PartitionStore
    index_interval: int
    end_offset: int = 0
    recovery_point: int = 0
    _items: list[LogSegment] = field(factory=list)

    def __iter__(self) -> Iterator[LogSegment]:
        return iter(tuple(self._items))

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: int) -> LogSegment:
        return self._items[at]

    @property
    def active(self) -> LogSegment:
        """The segment that batches are appended to."""
        return self._items[-1]

    def from_offset(self, offset: int) -> Sequence[LogSegment]:
        """Return the segment that contains or would contain ``offset``, and all later segments."""
        at = bisect_right(self._items, offset, key=attrgetter("base_offset")) - 1
        return self._items[max(at, 0) :]

    def end_of(self, segment: LogSegment) -> int:
        """Return the base offset of the next segment, or the end of the log."""
        after = bisect_right(self._items, segment.base_offset, key=attrgetter("base_offset"))
        return self._items[after].base_offset if after < len(self._items) else self.end_offset

    def add(self, segment: LogSegment) -> None:
        """Append a segment after all others."""
        self._items.append(segment)

    def begin(self, base_offset: int, now: int) -> LogSegment:
        """Create a new empty segment after all others, and return it."""
        indexes = SegmentIndexes(base_offset, self.index_interval)
        segment = LogSegment(base_offset, self.store.create(base_offset), indexes, now)
        self._items.append(segment)
        return segment

    def roll(self, base_offset: int, now: int) -> None:
        """Roll to a new active segment. An empty active segment with this base offset is reused.

        Only the data of a durable store is flushed here. Otherwise the recovery point stays unchanged.
        """
        last = self.active
        if last.base_offset == base_offset and not last.size:
            last.indexes = SegmentIndexes(base_offset, self.index_interval)
            return
        last.indexes.add_latest_time()
        if self.store.durable:
            self.flush()
        else:
            last.store.save_indexes(last.indexes)
        self.begin(base_offset, now)

    def remove(self, segments: Sequence[LogSegment], now: int, delay_ms: int) -> None:
        """Remove segments. At least one segment must remain."""
        gone = set(map(id, segments))
        self._items = [each for each in self._items if id(each) not in gone]
        self.store.delete([each.store for each in segments], now, delay_ms)
        kept = {each.base_offset for each in self._items}
        for each in segments:
            if each.base_offset not in kept:
                self.store.delete_snapshot(each.base_offset)

    def replace(self, old: Sequence[LogSegment], new: LogSegment, now: int, delay_ms: int) -> None:
        """Replace adjacent segments by a rewritten segment."""
        self.store.replace([each.store for each in old], new.store, now, delay_ms)
        at = self._items.index(old[0])
        self._items[at : at + len(old)] = [new]
        for each in old:
            if each.base_offset != new.base_offset:
                self.store.delete_snapshot(each.base_offset)

    def take_snapshot(self, producers: ProducerStateManager, log_start_offset: int) -> None:
        """Save a producer snapshot, if the last snapshot is older."""
        if producers.end_offset > max(self.store.snapshots(), default=log_start_offset):
            self.store.save_snapshot(producers.end_offset, producers.states.values())

    def append(self, data: Buffer, headers: Sequence[PositionedHeader], now: int) -> None:
        """Append complete batches to the active segment. A durable store flushes them. Raises ``OSError``.

        If the flush fails, the batches are removed again.
        """
        active = self.active
        size = active.size
        active.append(data, headers, now)
        if self.store.durable:
            try:
                active.store.flush()
            except OSError:
                active.store.truncate(size)
                raise

    def flush(self) -> None:
        """Flush everything to disk, so that it survives a machine crash. Raises ``OSError``."""
        for segment in self.from_offset(self.recovery_point):
            segment.store.save_indexes(segment.indexes)
            if self.recovery_point < self.end_offset:
                segment.store.flush()
        self.recovery_point = self.end_offset

    def checkpoint(self, log_start_offset: int, high_watermark: int, clean_offset: int) -> None:
        """Pass the offsets for the checkpoint files to the store."""
        self.store.checkpoint(
            log_start_offset=log_start_offset if log_start_offset > self._items[0].base_offset else None,
            recovery_point=self.recovery_point,
            high_watermark=high_watermark,
            clean_offset=clean_offset,
        )
