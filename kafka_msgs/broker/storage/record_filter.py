"""Record filtering during compaction.

The record with the latest offset of each key remains. A tombstone (a record without a value) or a transaction marker
remains for ``delete.retention.ms`` after the compaction that removed all other records it affects. The batch header
then contains the time of its removal: the delete horizon (KIP-534). Records of aborted transactions are removed. The
last batch of a producer remains, even without records, because it contains the last sequence. In Kafka these are
``Cleaner``, ``CleanedTransactionMetadata`` and ``MemoryRecords.RecordFilter``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import count

from attrs import define, evolve, field

from kafka_msgs.binary_layouts import (
    CODEC_MASK,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_AND_OFFSET_STRUCT,
    NO_TIMESTAMP,
)
from kafka_msgs.broker.storage.batch_headers import PositionedHeader
from kafka_msgs.broker.storage.log_segment import LogSegment
from kafka_msgs.broker.storage.log_validator import RawBatch, read_marker
from kafka_msgs.broker.storage.producer_state import ProducerStateEntry
from kafka_msgs.checksums import crc32c
from kafka_msgs.log.indexes import AbortedTransaction
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, ControlType, Record

__all__ = ["CleanedTransactionMetadata", "CompactionFilter"]


@define(eq=False)
class CleanedTransactionMetadata:
    """The transactions encountered while reading batches in offset order."""

    _order: Iterator[int] = field(factory=count)
    _expected: list[tuple[int, int, AbortedTransaction]] = field(factory=list)
    _aborted: dict[int, AbortedTransaction] = field(factory=dict)
    _seen: set[int] = field(factory=set)
    _committed: set[int] = field(factory=set)
    _index: list[AbortedTransaction] | None = None

    def expect(self, aborted: Iterable[AbortedTransaction]) -> None:
        """Add aborted transactions of the next batches."""
        for entry in aborted:
            heappush(self._expected, (entry.first_offset, next(self._order), entry))

    def index_into(self, index: list[AbortedTransaction]) -> None:
        """From now on, collect the aborted transactions that still have batches in ``index``."""
        self._index = index

    def _begin(self, offset: int) -> None:
        while self._expected and self._expected[0][0] <= offset:
            entry = heappop(self._expected)[-1]
            self._aborted.setdefault(entry.producer_id, entry)

    def is_aborted(self, header: PositionedHeader) -> bool:
        """Return whether a batch of records belongs to an aborted transaction."""
        self._begin(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def control_batch(self, header: PositionedHeader, segment: LogSegment) -> bool:
        """Read a control batch, and return whether all other records of its transaction are gone."""
        self._begin(header.last_offset)
        data = memoryview(b"".join(segment.store.read(header.position, header.end)))
        marker = read_marker(RawBatch(header, data)) if header.records else None
        if marker is None:
            return header.records == 0
        producer = header.producer_id
        if marker.kind is ControlType.COMMIT:
            known = producer in self._committed
            self._committed.discard(producer)
            return not known
        entry = self._aborted.pop(producer, None)
        known = entry is not None and producer in self._seen
        self._seen.discard(producer)
        if known and entry is not None and self._index is not None:
            self._index.append(entry)
        return not known


@define(eq=False)
class CompactionFilter:
    """The filter for batches in offset order. ``now`` and ``delete_retention_ms`` are in milliseconds.

    ``latest`` maps keys to their latest offset below ``end_offset``. Records from ``end_offset`` on remain.
    """

    latest: Mapping[bytes, int]
    end_offset: int
    transactions: CleanedTransactionMetadata
    producers: Mapping[int, ProducerStateEntry]
    high_watermark: int
    delete_retention_ms: int
    now: int

    def filter_batch(self, header: PositionedHeader, segment: LogSegment) -> bytes:
        """Return the remaining bytes of a batch: unchanged, with fewer records, without records, or empty.

        A batch with unreadable records stays unchanged.
        """
        if header.is_control:
            over = self.transactions.control_batch(header, segment)
            drop = over and header.delete_horizon is not None and header.delete_horizon <= self.now
        else:
            over = drop = self.transactions.is_aborted(header)
        keep_empty = self._is_last_of_producer(header) or header.last_offset + 1 == self.high_watermark
        if drop and not keep_empty:
            return b""
        records = segment.records(header)
        if records is None:
            return b"".join(segment.store.read(header.position, header.end))
        kept = [] if drop else [each for each in records if header.is_control or self._stays(header, each)]
        if not kept:
            return _without_records(header) if keep_empty else b""
        ends = (header.is_control and over) or any(each.value is None for each in kept)
        new_horizon = ends and header.delete_horizon is None
        if len(kept) == len(records) and header.magic == 2 and not new_horizon:
            return b"".join(segment.store.read(header.position, header.end))
        return _rewritten(header, kept, self.now + self.delete_retention_ms if new_horizon else header.delete_horizon)

    def _is_last_of_producer(self, header: PositionedHeader) -> bool:
        state = self.producers.get(header.producer_id) if header.has_producer else None
        if state is None:
            return False
        if state.batches:
            return header.last_offset == state.batches[-1].last_offset
        return header.is_control and header.producer_epoch == state.epoch

    def _stays(self, header: PositionedHeader, record: Record) -> bool:
        if record.offset >= self.end_offset:
            return True
        if record.key is None or record.offset < self.latest.get(bytes(record.key), -1):
            return False
        return record.value is not None or header.delete_horizon is None or self.now < header.delete_horizon


def _rewritten(header: PositionedHeader, records: list[Record], horizon: int | None) -> bytes:
    """Return a batch with some of its records. Its offsets and sequences stay unchanged."""
    plain = BatchHeader(
        base_offset=header.base_offset,
        partition_leader_epoch=header.leader_epoch,
        log_append_timestamp=header.max_timestamp if header.has_broker_time else None,
        delete_horizon=horizon,
        last_offset=header.last_offset,
    )
    builder = BatchBuilder(plain, codec=CompressionType(header.codec))
    for record in records:
        builder.append(
            record.key, record.value, timestamp=record.timestamp, headers=record.headers, offset=record.offset
        )
    return builder.build(
        evolve(
            plain,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            transactional=header.is_transactional,
            control=header.is_control,
        )
    )


def _without_records(header: PositionedHeader) -> bytes:
    """Return the header of a batch from which all records were removed."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON)
    size = HEADER_SIZE - LENGTH_AND_OFFSET_STRUCT
    empty = header._replace(length=size, crc=0, attributes=attributes, base_timestamp=NO_TIMESTAMP, records=0)
    crc = crc32c(HEADER.pack(*empty[1:])[CRC_START:])
    return HEADER.pack(*empty._replace(crc=crc)[1:])
