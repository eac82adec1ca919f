"""The log of a partition: appends, reads, and its offsets.

The partition has one log, whichever broker leads it. Offsets: ``log_start_offset`` <= ``last_stable_offset`` <=
``high_watermark`` <= ``log_end_offset``. ``log_validator`` checks batches, ``producer_state`` checks their producers,
``log_segments`` stores them, ``log_loader`` opens a stored log, and ``log_cleanup`` removes old data. The time is an
argument of each method: ``now`` is in milliseconds since the epoch. In Kafka this is
``org.apache.kafka.storage.internals.log.UnifiedLog``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from kafka_msgs.binary_layouts import NO_TIMESTAMP
from kafka_msgs.broker.storage import log_reads
from kafka_msgs.broker.storage.batch_headers import PositionedHeader
from kafka_msgs.broker.storage.log_append import (
    AppendContext,
    AppendResult,
    ReadResult,
    assign_offsets,
    prepare_producers,
)
from kafka_msgs.broker.storage.log_loader import load
from kafka_msgs.broker.storage.log_segment import TimestampAndOffset
from kafka_msgs.broker.storage.log_validator import RawBatch, check_bytes, split_batches
from kafka_msgs.broker.storage.producer_state import (
    AppendOrigin,
    BatchMetadata,
    ProducerAppendInfo,
)
from kafka_msgs.broker.storage.store import PartitionStore
from kafka_msgs.broker.storage.topic_config import TopicConfig
from kafka_msgs.broker.storage.verification import VerificationGuard
from kafka_msgs.codec import Buffer
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.log import IsolationLevel, LeaderEpoch
from kafka_msgs.messages import EndTxnMarker
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType

__all__ = ["PartitionLog"]

PRODUCER_EXPIRATION_MS: Final = 86_400_000
"""Kafka's default for ``producer.id.expiration.ms``."""


class PartitionLog:
    """The log of one partition of a topic, in a store.

    ``on_change`` is called after each change of an offset. ``before_write`` is called before each append, and may raise
    ``OSError``. ``verify_transactions`` is Kafka's ``transaction.partition.verification.enable``. Opening a stored log
    raises ``OSError``.
    """

    def __init__(
        self,
        topic: str,
        topic_id: UUID,
        partition: int,
        config: TopicConfig,
        store: PartitionStore,
        *,
        now: int,
        producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
        verify_transactions: bool = True,
        on_change: Callable[[PartitionLog], None] | None = None,
        before_write: Callable[[], None] | None = None,
    ) -> None:
        self.topic, self.topic_id, self.partition = topic, topic_id, partition
        self.config = config
        self.producer_expiration_ms = producer_expiration_ms
        self.verify_transactions = verify_transactions
        self._on_change = on_change
        self._before_write = before_write
        self._held: int | None = None
        self.segments, self.epochs, self.producers, self.log_start_offset, self.clean_offset = load(
            store, config, now, producer_expiration_ms
        )

    def __repr__(self) -> str:
        return f"<PartitionLog {self.name}: offsets {self.log_start_offset} to {self.log_end_offset}>"

    @property
    def name(self) -> str:
        """The name of the partition, such as ``orders-0``."""
        return f"{self.topic}-{self.partition}"

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.segments.end_offset

    @property
    def high_watermark(self) -> int:
        """The offset up to which consumers may read. It equals the log end offset unless it is capped."""
        return self.log_end_offset if self._held is None else min(self._held, self.log_end_offset)

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which all transactions have ended."""
        unstable = self.producers.first_unstable_offset
        return (
            self.high_watermark if unstable is None else max(self.log_start_offset, min(unstable, self.high_watermark))
        )

    @property
    def size(self) -> int:
        """The size of all segments in bytes."""
        return sum(segment.size for segment in self.segments)

    def cap_high_watermark(self, offset: int | None) -> None:
        """Cap the high watermark at ``offset``, as if followers stopped fetching. None removes the cap."""
        self._held = offset
        self.producers.replicated(self.high_watermark)
        self._changed()

    def _changed(self) -> None:
        if self._on_change is not None:
            self._on_change(self)

    # Appending

    def append(
        self,
        records: Buffer,
        *,
        leader_epoch: int,
        now: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Append a batch and return its offsets.

        ``AppendOrigin.REPLAY`` accepts several batches and keeps their offsets. ``guard`` comes from ``verify`` and is
        required for the first batch of a transaction. ``transaction_version`` applies to transaction markers.

        Raises ``RequestRefusedError`` with the error code of Kafka: CORRUPT_MESSAGE, INVALID_RECORD, INVALID_TIMESTAMP,
        MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE, UNSUPPORTED_COMPRESSION_TYPE, UNSUPPORTED_FOR_MESSAGE_FORMAT,
        OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH, INVALID_TXN_STATE, TRANSACTION_COORDINATOR_FENCED,
        KAFKA_STORAGE_ERROR. With INVALID_RECORD and INVALID_TIMESTAMP it may be a ``RefusedRecordsError``.
        """
        batches = split_batches(records)
        for batch in batches:
            check_bytes(batch, self.config, origin)
        if not batches:
            return AppendResult(-1, -1, log_start_offset=self.log_start_offset)
        context = AppendContext(
            place=self.name,
            config=self.config,
            leader_epoch=leader_epoch,
            now=now,
            origin=origin,
            guard=guard,
            verify=self.verify_transactions,
            transaction_version=transaction_version,
        )
        return self._append(batches, context)

    def _append(self, batches: list[RawBatch], context: AppendContext) -> AppendResult:
        headers, data = assign_offsets(batches, context, self.log_end_offset)
        if len(data) > self.config.segment_bytes:
            reason = f"Message batch size is {len(data)} bytes, which exceeds {self.config.segment_bytes}"
            raise RequestRefusedError(ErrorCode.RECORD_LIST_TOO_LARGE, reason)
        try:
            if self._before_write is not None:
                self._before_write()
            self._assign_epochs(headers)
            self._roll_if_full(headers, len(data), context.now)
            prepared = prepare_producers(batches, headers, context, self.producers)
            if isinstance(prepared, BatchMetadata):
                offsets = prepared.first_offset, prepared.last_offset
                return AppendResult(*offsets, prepared.timestamp, self.log_start_offset, duplicate=True)
            self.segments.append(data, headers, context.now)
        except OSError as error:
            raise RequestRefusedError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._written(headers[-1].last_offset + 1, prepared)
        time = context.now if self.config.broker_time and context.origin is not AppendOrigin.REPLAY else NO_TIMESTAMP
        return AppendResult(headers[0].base_offset, headers[-1].last_offset, time, self.log_start_offset)

    def _assign_epochs(self, headers: list[PositionedHeader]) -> None:
        changed = [
            self.epochs.assign(each.leader_epoch, each.base_offset) for each in headers if each.leader_epoch >= 0
        ]
        if any(changed):
            self.segments.store.save_epochs(self.epochs.entries)

    def _roll_if_full(self, headers: list[PositionedHeader], size: int, now: int) -> None:
        latest = max(header.max_timestamp for header in headers)
        if self.segments.active.is_full(self.config, size, headers[-1].last_offset, latest, now):
            self.roll(now, headers[0].base_offset)

    def _written(self, end_offset: int, prepared: ProducerAppendInfo) -> None:
        self.segments.end_offset = end_offset
        self.producers.commit(prepared)
        for done in prepared.completed:
            self.segments.active.complete(done, self.producers.stable_offset_after(done))
            self.producers.complete(done, self.high_watermark)
        self.producers.end_offset = end_offset
        self._changed()

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int,
        leader_epoch: int,
        now: int,
        transaction_version: int = 0,
    ) -> int:
        """Append the marker that ends a producer's transaction, and return its offset.

        Raises the errors of ``append``.
        """
        header = BatchHeader(producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True)
        builder = BatchBuilder(header)
        kind = ControlType.COMMIT if committed else ControlType.ABORT
        builder.append_control(kind, EndTxnMarker(coordinator_epoch=coordinator_epoch), timestamp=now)
        appended = self.append(
            builder.build(),
            leader_epoch=leader_epoch,
            now=now,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=transaction_version,
        )
        return appended.base_offset

    def verify(
        self, producer_id: int, producer_epoch: int, sequence: int, *, bumps_epoch: bool, now: int
    ) -> VerificationGuard | None:
        """Begin the verification of a transaction (KIP-890), and return the guard for its first batch.

        Return None if the transaction is already open in this partition, so that the coordinator need not be queried.
        ``bumps_epoch`` is True if the producer gets a new epoch for each transaction. Raises ``RequestRefusedError``
        with INVALID_PRODUCER_EPOCH.
        """
        self.producers.check_epoch(producer_id, producer_epoch)
        if self.producers.has_open_transaction(producer_id, producer_epoch):
            return None
        return self.producers.verification.start(
            producer_id, sequence, producer_epoch, bumps_epoch=bumps_epoch, now=now
        )

    # Reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        isolation: IsolationLevel = "read_uncommitted",
        min_one_batch: bool = True,
        max_offset: int | None = None,
    ) -> ReadResult:
        """Return complete batches from the one that contains ``offset``, at most ``max_bytes`` of one segment.

        With ``min_one_batch`` the first batch is returned even if it is larger. The batches are below the high
        watermark, below the last stable offset, or below ``max_offset`` if it is given. Raises ``RequestRefusedError``
        with OFFSET_OUT_OF_RANGE.
        """
        found = self._range(offset, max_bytes, isolation, min_one_batch=min_one_batch, max_offset=max_offset)
        committed = isolation == "read_committed"
        if found is None:
            return ReadResult([], 0, offset, () if committed else None)
        aborted = log_reads.find_aborted_transactions(self.segments, found, offset) if committed else None
        return ReadResult(found.segment.store.read(found.start, found.stop), found.size, found.next_offset, aborted)

    def readable(self, offset: int, max_bytes: int, *, isolation: IsolationLevel, max_offset: int | None = None) -> int:
        """Return the number of bytes that ``read`` would return, without reading them.

        Raises the errors of ``read``.
        """
        found = self._range(offset, max_bytes, isolation, min_one_batch=True, max_offset=max_offset)
        return 0 if found is None else found.size

    def _range(
        self, offset: int, max_bytes: int, isolation: IsolationLevel, *, min_one_batch: bool, max_offset: int | None
    ) -> log_reads.BatchRange | None:
        if not self.log_start_offset <= offset <= self.log_end_offset:
            reason = f"offset {offset} is not from {self.log_start_offset} to {self.log_end_offset}"
            raise RequestRefusedError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        if max_offset is None:
            max_offset = self.last_stable_offset if isolation == "read_committed" else self.high_watermark
        return log_reads.find_batches(self.segments, offset, max_bytes, max_offset, min_one_batch=min_one_batch)

    def offset_for_timestamp(
        self, timestamp: int, isolation: IsolationLevel | None = None
    ) -> TimestampAndOffset | None:
        """Return the first record at ``timestamp`` or later, in milliseconds since the epoch, or None.

        Negative timestamps are defined by ListOffsets: -1 is the log end, -2 the log start, -3 the record with the
        latest timestamp, -4 the start of local data, -5 the end of data in remote storage, -6 the start of data that is
        not in remote storage yet. ``isolation`` limits the records that a consumer sees. None is for a follower.
        """
        limit = {None: self.log_end_offset, "read_uncommitted": self.high_watermark}.get(
            isolation, self.last_stable_offset
        )
        return log_reads.offset_for_timestamp(self.segments, self.epochs, self.log_start_offset, timestamp, limit)

    def end_offset_for_epoch(self, epoch: int) -> LeaderEpoch:
        """Return the highest epoch up to ``epoch``, and the offset after its last record. Both are -1 if unknown."""
        return self.epochs.end_offset(epoch, self.log_end_offset)

    # Truncation and maintenance

    def delete_records(self, before: int) -> int:
        """Move the log start to an offset, -1 for the high watermark; return the new log start offset (KIP-107).

        Raises ``RequestRefusedError`` with OFFSET_OUT_OF_RANGE for an offset above the high watermark.
        """
        wanted = self.high_watermark if before == -1 else before
        if not 0 <= wanted <= self.high_watermark:
            reason = f"offset {before} is above the high watermark {self.high_watermark}"
            raise RequestRefusedError(ErrorCode.OFFSET_OUT_OF_RANGE, reason)
        self.increment_log_start_offset(wanted)
        return self.log_start_offset

    def increment_log_start_offset(self, offset: int) -> None:
        """Increase the log start offset. Segments are removed by the next cleanup."""
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        if self.epochs.truncate_start(offset):
            self.segments.store.save_epochs(self.epochs.entries)
        self.producers.replicated(offset)
        self._changed()

    def start_empty_at(self, offset: int, now: int) -> None:
        """Remove all records, and start the log at an offset above its end. Raises ``OSError``."""
        old = list(self.segments)
        self.segments.begin(offset, now)
        self.segments.remove(old, now, 0)
        self.segments.end_offset = self.log_start_offset = offset
        self.epochs.truncate_end(0)
        self.segments.store.save_epochs(self.epochs.entries)
        self.producers.reset((), offset)

    def roll(self, now: int, base_offset: int | None = None) -> None:
        """Start a new segment at the end of the log, or at ``base_offset`` above it."""
        start = self.log_end_offset if base_offset is None else base_offset
        self.segments.roll(start, now)
        self.producers.end_offset = start
        self.segments.take_snapshot(self.producers, self.log_start_offset)

    def reconfigure(self, config: TopicConfig) -> None:
        """Replace the topic configs."""
        self.config = config
        self.segments.index_interval = config.index_interval_bytes

    def flush(self) -> None:
        """Flush all records, so that they survive a machine crash. Raises ``OSError``."""
        self.segments.flush()
        self.checkpoint()

    def checkpoint(self) -> None:
        """Pass the offsets for the checkpoint files to the store."""
        self.segments.checkpoint(self.log_start_offset, self.high_watermark, self.clean_offset)

    def delete(self) -> None:
        """Close the log and remove it. Raises ``OSError``."""
        self.close(clean=False)
        self.segments.store.remove()

    def close(self, *, clean: bool = True) -> None:
        """Close the log. ``clean`` writes all state, so that reopening the log needs no recovery."""
        if clean:
            self.segments.take_snapshot(self.producers, self.log_start_offset)
            self.segments.active.indexes.add_latest_time()
            self.flush()
        self.segments.store.close()
