"""The segments in tiered storage according to ``__remote_log_metadata``, and the offsets to read from each.

This module owns the effect of each record: a segment is being copied, available, being deleted, or deleted. It follows
Kafka's classes ``RemotePartitionMetadataStore``, ``RemoteLogMetadataCache`` and ``RemoteLogLeaderEpochState``
(KIP-405). The storage plugin and ``kafka_msgs.log.remote_naming`` determine the location of a segment's bytes. Apart
from sorting, the time is linear in the number of records.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias, TypeVar
from uuid import UUID

from attrs import evolve, field, frozen

from kafka_msgs.internal_topics.records import TopicRecord, UnknownRecord
from kafka_msgs.messages.remote_log_segment_metadata_record import RemoteLogSegmentMetadataRecord
from kafka_msgs.messages.remote_log_segment_metadata_update_record import RemoteLogSegmentMetadataUpdateRecord
from kafka_msgs.messages.remote_partition_delete_metadata_record import RemotePartitionDeleteMetadataRecord

__all__ = [
    "DroppedRecord",
    "EpochStart",
    "PartitionDeletion",
    "RemoteLog",
    "RemotePartition",
    "RemoteSegment",
    "RemoteSegmentRange",
    "SegmentState",
    "TopicIdPartition",
    "replay_remote_log",
]

T = TypeVar("T")


class SegmentState(IntEnum):
    """The state of a segment (Kafka's ``RemoteLogSegmentState``)."""

    COPY_STARTED = 0
    COPY_FINISHED = 1
    DELETE_STARTED = 2
    DELETE_FINISHED = 3


class PartitionDeletion(IntEnum):
    """The progress of a partition's deletion (Kafka's ``RemotePartitionDeleteState``)."""

    MARKED = 0
    STARTED = 1
    FINISHED = 2


_MAY_BECOME: Final[Mapping[SegmentState, frozenset[SegmentState]]] = {
    SegmentState.COPY_STARTED: frozenset({SegmentState.COPY_FINISHED, SegmentState.DELETE_STARTED}),
    SegmentState.COPY_FINISHED: frozenset({SegmentState.COPY_FINISHED, SegmentState.DELETE_STARTED}),
    SegmentState.DELETE_STARTED: frozenset({SegmentState.DELETE_STARTED, SegmentState.DELETE_FINISHED}),
}
"""The valid state transitions of a segment. Deleted segments are not tracked."""


class TopicIdPartition(NamedTuple):
    """A partition with segments in tiered storage. A recreated topic has another id."""

    topic: str
    topic_id: UUID
    partition: int


class EpochStart(NamedTuple):
    """A leader epoch and its start offset."""

    epoch: int
    start_offset: int


@frozen(kw_only=True)
class RemoteSegment:
    """A copy of a segment in tiered storage (Kafka's ``RemoteLogSegmentMetadata``).

    ``end_offset`` is the last offset, inclusive. ``epochs`` are the leader epochs in it, ascending. ``size`` is the
    size of the ``.log`` file in bytes. Times are in milliseconds since the epoch: ``max_timestamp`` is the largest
    record timestamp, ``event_timestamp`` the time of the last change. ``custom_metadata`` contains bytes of the plugin
    (KIP-917).
    """

    place: TopicIdPartition
    segment_id: UUID
    start_offset: int
    end_offset: int
    epochs: tuple[EpochStart, ...]
    size: int
    max_timestamp: int
    event_timestamp: int
    broker_id: int
    custom_metadata: bytes | None
    state: SegmentState
    txn_index_empty: bool
    """Whether it is known to contain no aborted transactions."""

    def last_offset_in(self, epoch: int) -> int:
        """Return the last possible offset of the segment in a leader epoch: before the next epoch, or its end."""
        after = bisect_right(self.epochs, epoch, key=itemgetter(0))
        return self.epochs[after].start_offset - 1 if after < len(self.epochs) else self.end_offset


class RemoteSegmentRange(NamedTuple):
    """A segment, and the offsets to read from it: from ``start`` to before ``end``."""

    segment: RemoteSegment
    start: int
    end: int


class DroppedRecord(NamedTuple):
    """A record without an effect, because it contradicts earlier records, and the reason. Kafka logs such records."""

    record: object
    reason: str


@frozen(kw_only=True)
class RemotePartition:
    """The segments of a partition in tiered storage.

    ``segments`` are all existing segments by id, including segments being copied or deleted. ``referenced`` lists, by
    leader epoch, the segments to read: the first offset of the epoch in each, ascending, and the segment id.
    ``highest`` is the largest offset that was ever copied in an epoch. ``deletion`` is None unless the partition is
    being deleted.
    """

    place: TopicIdPartition
    segments: Mapping[UUID, RemoteSegment]
    referenced: Mapping[int, tuple[tuple[int, UUID], ...]]
    highest: Mapping[int, int]
    deletion: PartitionDeletion | None = None

    def segment_at(self, epoch: int, offset: int) -> RemoteSegment | None:
        """Return the segment with an offset of a leader epoch (Kafka's ``remoteLogSegmentMetadata``)."""
        entries = self.referenced.get(epoch, ())
        number = bisect_right(entries, offset, key=itemgetter(0)) - 1
        if number < 0:
            return None
        segment = self.segments[entries[number][1]]
        return segment if offset <= segment.last_offset_in(epoch) else None

    def lineage(self) -> tuple[EpochStart, ...]:
        """Return the leader epochs of the referenced segments, and the start offset of each.

        The records of an epoch were replaced if it starts at or after the start of a later epoch (KIP-101), or if a
        segment has a later epoch right after an earlier one. Such an epoch is omitted. The exact lineage is in the
        ``leader-epoch-checkpoint`` of the partition's log; this method derives it from the segments.
        """
        kept: list[EpochStart] = []
        highest = max(self.referenced, default=0)
        for epoch in sorted(self.referenced, reverse=True):
            start = self.referenced[epoch][0][0]
            if epoch <= highest and (not kept or start < kept[-1].start_offset):
                kept.append(EpochStart(epoch, start))
                highest = min([highest, *self._before(epoch)])
        return tuple(reversed(kept))

    def _before(self, epoch: int) -> Iterator[int]:
        """Yield the epochs that directly precede an epoch in its referenced segments."""
        for _, segment_id in self.referenced[epoch]:
            epochs = self.segments[segment_id].epochs
            at = bisect_left(epochs, epoch, key=itemgetter(0))
            if at:
                yield epochs[at - 1].epoch

    def ranges(self, lineage: Sequence[tuple[int, int]] | None = None) -> tuple[RemoteSegmentRange, ...]:
        """Return the segments to read, in the order of offsets, each with its offset range.

        As in Kafka, each offset is read from a segment of its leader epoch. ``lineage`` contains epochs with their
        start offsets, ascending, such as the content of ``leader-epoch-checkpoint``; by default ``lineage()``.
        """
        known = self.lineage() if lineage is None else lineage
        found: list[RemoteSegmentRange] = []
        for (epoch, start), after in _with_next(known):
            for each in self._in_epoch(epoch, start, after and after[1]):
                if found and found[-1].segment is each.segment and found[-1].end == each.start:
                    found[-1] = found[-1]._replace(end=each.end)
                else:
                    found.append(each)
        return tuple(found)

    def _in_epoch(self, epoch: int, start: int, end: int | None) -> Iterator[RemoteSegmentRange]:
        for (first, segment_id), after in _with_next(self.referenced.get(epoch, ())):
            segment = self.segments[segment_id]
            ends = [segment.last_offset_in(epoch) + 1, *([after[0]] if after else []), *([] if end is None else [end])]
            if max(first, start) < min(ends):
                yield RemoteSegmentRange(segment, max(first, start), min(ends))


@frozen(kw_only=True)
class RemoteLog:
    """The state from the records of ``__remote_log_metadata``: partitions with segments, and dropped records."""

    partitions: Mapping[TopicIdPartition, RemotePartition]
    dropped: tuple[DroppedRecord, ...]


def _with_next(items: Sequence[T]) -> Iterator[tuple[T, T | None]]:
    return zip(items, (*items[1:], None)[: len(items)], strict=True)


def replay_remote_log(records: Iterable[object]) -> RemoteLog:
    """Return the state from the records of ``__remote_log_metadata``.

    ``records`` are the items of ``decode_batches``; records of one partition of the topic must be in log order. Records
    that Kafka drops are in ``dropped``. Items that are not records, such as the end of a transaction, are skipped.
    """
    loader = _Loader()
    for record in records:
        if isinstance(record, TopicRecord | UnknownRecord):
            loader.replay(record)
    return RemoteLog(
        partitions={place: each.partition(place) for place, each in loader.partitions.items()},
        dropped=tuple(loader.dropped),
    )


@frozen
class _Epoch:
    """The segments of a leader epoch: ids by the first offset of the epoch in each (``RemoteLogLeaderEpochState``).

    ``starts`` is a heap of these offsets, the last one first. It may contain offsets that are no longer in ``ids``.
    """

    ids: dict[int, UUID] = field(factory=dict)
    starts: list[int] = field(factory=list)
    highest: list[int] = field(factory=list)

    def add(self, start: int, segment_id: UUID, last: int) -> None:
        """Add a copied segment. It replaces the segments it contains, which an earlier leader copied."""
        while (latest := self._latest()) is not None and latest >= start and self.highest[0] <= last:
            del self.ids[latest]
        self.ids[start] = segment_id
        heappush(self.starts, -start)
        self.highest[:] = [max([last, *self.highest])]

    def remove(self, start: int, segment_id: UUID) -> None:
        if self.ids.get(start) == segment_id:
            del self.ids[start]

    def _latest(self) -> int | None:
        while self.starts and -self.starts[0] not in self.ids:
            heappop(self.starts)
        return -self.starts[0] if self.starts else None


@frozen
class _Partition:
    segments: dict[UUID, RemoteSegment] = field(factory=dict)
    epochs: dict[int, _Epoch] = field(factory=dict)
    deletion: list[PartitionDeletion] = field(factory=list)

    def update(self, segment: RemoteSegment) -> None:
        """Apply the new state of a segment."""
        for epoch, start in segment.epochs:
            entry = self.epochs.setdefault(epoch, _Epoch())
            if segment.state is SegmentState.COPY_FINISHED:
                entry.add(start, segment.segment_id, segment.last_offset_in(epoch))
            elif segment.state is SegmentState.DELETE_STARTED:
                entry.remove(start, segment.segment_id)
        if segment.state is SegmentState.DELETE_FINISHED:
            del self.segments[segment.segment_id]
        else:
            self.segments[segment.segment_id] = segment

    def partition(self, place: TopicIdPartition) -> RemotePartition:
        return RemotePartition(
            place=place,
            segments=self.segments,
            referenced={epoch: tuple(sorted(each.ids.items())) for epoch, each in self.epochs.items() if each.ids},
            highest={epoch: each.highest[0] for epoch, each in self.epochs.items() if each.highest},
            deletion=self.deletion[-1] if self.deletion else None,
        )


@frozen
class _Loader:
    partitions: dict[TopicIdPartition, _Partition] = field(factory=dict)
    dropped: list[DroppedRecord] = field(factory=list)

    def replay(self, record: TopicRecord | UnknownRecord) -> None:
        value = record.value
        if isinstance(value, RemoteLogSegmentMetadataRecord):
            reason = self._copied(value)
        elif isinstance(value, RemoteLogSegmentMetadataUpdateRecord):
            reason = self._updated(value)
        elif isinstance(value, RemotePartitionDeleteMetadataRecord):
            reason = self._deleted(value)
        else:
            reason = "it does not name a partition"
        if reason is not None:
            self.dropped.append(DroppedRecord(record, reason))

    def _copied(self, record: RemoteLogSegmentMetadataRecord) -> str | None:
        if reason := _wrong(record):
            return reason
        partition = self.partitions.setdefault(_place(record), _Partition())
        known = partition.segments.get(record.remote_log_segment_id.id)
        if known is not None and known.state is not SegmentState.COPY_STARTED:
            return f"a segment in the state {known.state.name} is not copied again"
        partition.update(_segment(record))
        return None

    def _updated(self, record: RemoteLogSegmentMetadataUpdateRecord) -> str | None:
        partition = self.partitions.get(_place(record), _NOTHING)
        known = partition.segments.get(record.remote_log_segment_id.id)
        if known is None:
            return "the segment is not known"
        state = _STATES.get(record.remote_log_segment_state)
        if state is None or state not in _MAY_BECOME[known.state]:
            name = record.remote_log_segment_state if state is None else state.name
            return f"a segment in the state {known.state.name} does not become {name}"
        partition.update(
            evolve(
                known,
                state=state,
                broker_id=record.broker_id,
                event_timestamp=record.event_timestamp_ms,
                custom_metadata=record.custom_metadata,
            )
        )
        return None

    def _deleted(self, record: RemotePartitionDeleteMetadataRecord) -> str | None:
        entry = record.topic_id_partition
        place = TopicIdPartition(entry.name, entry.id, entry.partition)
        number = record.remote_partition_delete_state
        if number not in PartitionDeletion._value2member_map_:
            return f"the state {number} is not known"
        if number == PartitionDeletion.FINISHED:
            self.partitions.pop(place, None)
        else:
            self.partitions.setdefault(place, _Partition()).deletion[:] = [PartitionDeletion(number)]
        return None


_NOTHING: Final = _Partition()
_STATES: Final = {int(state): state for state in SegmentState}
_OfSegment: TypeAlias = RemoteLogSegmentMetadataRecord | RemoteLogSegmentMetadataUpdateRecord


def _wrong(record: RemoteLogSegmentMetadataRecord) -> str | None:
    """Return the reason why Kafka refuses the record of a segment, or None."""
    if record.remote_log_segment_state != SegmentState.COPY_STARTED:
        return "the first record of a segment has the state COPY_STARTED"
    if not 0 <= record.start_offset <= record.end_offset:
        return f"offsets from {record.start_offset} to {record.end_offset}"
    return None if record.segment_leader_epochs else "it has no leader epoch"


def _place(record: _OfSegment) -> TopicIdPartition:
    entry = record.remote_log_segment_id.topic_id_partition
    return TopicIdPartition(entry.name, entry.id, entry.partition)


def _segment(record: RemoteLogSegmentMetadataRecord) -> RemoteSegment:
    starts = {each.leader_epoch: each.offset for each in record.segment_leader_epochs}
    return RemoteSegment(
        place=_place(record),
        segment_id=record.remote_log_segment_id.id,
        start_offset=record.start_offset,
        end_offset=record.end_offset,
        epochs=tuple(EpochStart(*each) for each in sorted(starts.items())),
        size=record.segment_size_in_bytes,
        max_timestamp=record.max_timestamp_ms,
        event_timestamp=record.event_timestamp_ms,
        broker_id=record.broker_id,
        custom_metadata=record.custom_metadata,
        state=SegmentState.COPY_STARTED,
        txn_index_empty=record.txn_index_empty,
    )
