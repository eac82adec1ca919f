"""Producer batches, and the results of their records.

Results need no storage per record: a delivery refers to its batch and its index in it, and the batch stores the part of
the response that applies to all of its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka_msgs._backend import backend
from kafka_msgs.client.flow import Future
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType, Record, read_batches
from kafka_msgs.records.builder import RowColumns, replace_producer

__all__ = [
    "NO_PRODUCER",
    "NO_SEQUENCE",
    "DeliveryStorage",
    "ProducerBatch",
    "ProducerIdAndEpoch",
    "RecordMetadata",
    "add_to_sequence",
]

if TYPE_CHECKING or backend() != "c":

    class DeliveryStorage:
        """Stores the batch of a record, its index in it, and its timestamp."""

        __slots__ = ("_batch", "_index", "_timestamp")

        def __init__(self, batch: ProducerBatch, index: int, timestamp: int) -> None:
            self._batch = batch
            self._index = index
            self._timestamp = timestamp

else:
    # One object per sent record. The C version is small, and the garbage collector does not track it.
    from kafka_msgs._core.extension import DeliveryStorage

NO_SEQUENCE = -1
_SEQUENCES = 2**31


class RecordMetadata(NamedTuple):
    """The location of a record. ``offset`` is -1 with ``acks=0``. ``timestamp`` is in milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int


class ProducerIdAndEpoch(NamedTuple):
    """The identity of a producer: its id and its epoch (KIP-98)."""

    id: int
    epoch: int


NO_PRODUCER = ProducerIdAndEpoch(-1, -1)


def add_to_sequence(sequence: int, count: int) -> int:
    """Return the sequence ``count`` records later. Sequences wrap to 0 after 2147483647."""
    return (sequence + count) % _SEQUENCES


class ProducerBatch:
    """Records for one partition, from the first ``append`` until they are delivered or have failed."""

    __slots__ = (
        "_builder",
        "_built",
        "_codec",
        "_count",
        "_raw_size",
        "_stamp",
        "append",
        "attempts",
        "base_offset",
        "callbacks",
        "collector",
        "created",
        "done",
        "error",
        "error_observed",
        "last_error",
        "log_append_time",
        "order",
        "owner",
        "partition",
        "parts",
        "pending",
        "producer",
        "record_errors",
        "reserved",
        "retried",
        "retry_at",
        "sequence",
        "sequence_was_reset",
        "topic",
        "transactional",
    )

    def __init__(
        self, topic: str, partition: int, created: float, *, codec: CompressionType, level: int | None, size_limit: int
    ) -> None:
        builder = BatchBuilder(codec=codec, level=level, size_limit=size_limit)
        self.topic = topic
        self.partition = partition
        self.created = created
        """The time of the first record, in seconds of the network's clock."""
        self.owner: Any = None
        """The object that waits for deliveries; None when the batch is done."""
        self.append = builder.append
        self.collector: Any = builder._collector
        """The collector of an open batch: one C call adds a record and counts it."""
        self._count = 0
        self.callbacks: list[tuple[int, int, Callable[..., Any]]] | None = None
        """Callbacks for the end of the batch, each with the index and the timestamp of its record."""
        self.order: tuple[int, ...] = ()
        """Sort key among the batches of its partition. The parts of a split batch are consecutive."""
        self.reserved = 0
        """Bytes of buffer memory that the batch reserves."""
        self.attempts = 0
        self.retried = False
        """Whether the batch, or the batch that it was split from, has been sent before."""
        self.last_error: Exception | None = None
        self.retry_at = 0.0
        self.producer = NO_PRODUCER
        self.sequence = NO_SEQUENCE
        self.sequence_was_reset = False
        self.transactional = False
        self.done = False
        self.base_offset = -1
        self.log_append_time = -1
        self.error: Exception | None = None
        self.error_observed = False
        """Whether the program has received the error of a record."""
        self.record_errors: dict[int, str | None] = {}
        self.parts: list[ProducerBatch] = []
        """The smaller batches that replace this one, if the broker found it too large."""
        self.pending: Future[None] | None = None
        self._codec = codec, level
        self._builder: BatchBuilder | None = builder
        self._built = b""
        self._raw_size = 0
        """Bytes before compression."""
        self._stamp: tuple[ProducerIdAndEpoch, int] = (NO_PRODUCER, NO_SEQUENCE)

    @property
    def size(self) -> int:
        """The size in bytes: encoded if the batch has been encoded, otherwise uncompressed."""
        return len(self._built) if self._builder is None else self._builder.size

    def encode(self) -> bytes:
        """Return the encoded batch, with its current producer id and sequence.

        The first call compresses it. Raises ``MissingExtraError``.
        """
        stamp = self.producer, self.sequence
        if self._builder is not None:
            header = BatchHeader(
                producer_id=self.producer.id,
                producer_epoch=self.producer.epoch,
                base_sequence=self.sequence,
                transactional=self.transactional,
            )
            self._count = int(self.collector.count)
            self._raw_size = self._builder.size
            self._built, self._builder = self._builder.build(header), None
            self.collector = None
            del self.append
        elif stamp != self._stamp:
            self._built = replace_producer(self._built, *self.producer, self.sequence)
        self._stamp = stamp
        return self._built

    def append_rows(self, columns: RowColumns, start: int, stop: int, timestamp: int) -> int:
        """Add rows until the batch is full, and return their number. The batch must be open."""
        assert self._builder is not None
        return self._builder.append_rows(columns, start, stop, timestamp=timestamp)

    @property
    def count(self) -> int:
        """The number of records."""
        return self._count if self.collector is None else int(self.collector.count)

    @property
    def is_stamped(self) -> bool:
        """Whether the last encoding has the current producer id and sequence."""
        return self._stamp == (self.producer, self.sequence)

    @property
    def is_open(self) -> bool:
        """Whether the batch accepts records."""
        return self._builder is not None

    def complete(self, base_offset: int, log_append_time: int = -1) -> None:
        """Mark the records as delivered."""
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self._finish()

    def fail(self, error: Exception, record_errors: dict[int, str | None] | None = None) -> None:
        """Mark the records as failed. ``record_errors`` lists the records that caused this (KIP-467)."""
        self.error = error
        self.record_errors = record_errors or {}
        self._finish()

    def split(self) -> list[ProducerBatch]:
        """Move the records into smaller batches, which replace this one and determine its results.

        Each part has about 50 % of the bytes, and at least one record.
        """
        (whole,) = read_batches(self.encode())
        records = list(whole)
        for record in records:
            if not (self.parts and self._add(self.parts[-1], record)):
                self._begin_part(max(1, self._raw_size // 2))
                self._add(self.parts[-1], record)
        if len(self.parts) == 1:
            self._split_evenly(records)
        self._hand_over()
        self._drop()
        if self.pending is not None:
            self.pending.resolve(None)
        return self.parts

    def _split_evenly(self, records: Sequence[Record]) -> None:
        """Split by the number of records if splitting by size is impossible."""
        self.parts.clear()
        half = (len(records) + 1) // 2
        for start in range(0, len(records), half):
            self._begin_part(self._raw_size)
            for record in records[start : start + half]:
                self._add(self.parts[-1], record)

    def _begin_part(self, size_limit: int) -> None:
        codec, level = self._codec
        part = ProducerBatch(self.topic, self.partition, self.created, codec=codec, level=level, size_limit=size_limit)
        part.owner, part.transactional, part.last_error = self.owner, self.transactional, self.last_error
        part.order, part.retried = (*self.order, len(self.parts)), True
        self.parts.append(part)

    def _hand_over(self) -> None:
        """Distribute the memory and the callbacks among the parts."""
        for part in self.parts:
            part.reserved = self.reserved * part.count // self.count
        callbacks, self.callbacks = self.callbacks, None
        for index, timestamp, function in callbacks or ():
            part, place = self.delivery_of(index)
            part.callbacks = [*(part.callbacks or ()), (place, timestamp, function)]

    def _add(self, part: ProducerBatch, record: Record) -> bool:
        taken: bool = part.append(record.key, record.value, timestamp=record.timestamp, headers=record.headers)
        return taken

    def delivery_of(self, index: int) -> tuple[ProducerBatch, int]:
        """Return the current batch of a record and its index in it."""
        batch = self
        while batch.parts:
            for part in batch.parts:  # pragma: no branch
                if index < part.count:
                    batch = part
                    break
                index -= part.count
        return batch, index

    def deliveries_of(self, index: int, count: int) -> Iterator[tuple[ProducerBatch, int, int]]:
        """Yield the current batches of a range of records, each with the index of its first record and their number."""
        if not self.parts:
            yield self, index, count
        for part in self.parts:
            here = min(count, part.count - index)
            if here > 0:
                yield from part.deliveries_of(index, here)
                count -= here
            index = max(0, index - part.count)

    def metadata(self, index: int, timestamp: int) -> RecordMetadata:
        """Return the metadata of a record, or raise its error. The batch must be done."""
        if self.error is not None:
            self.error_observed = True
            raise self.error
        offset = self.base_offset + index if self.base_offset >= 0 else -1
        time = timestamp if self.log_append_time < 0 else self.log_append_time
        return RecordMetadata(self.topic, self.partition, offset, time)

    def observed_error(self) -> Exception | None:
        """Return the error of a failed batch, or None, and mark it as received by the program."""
        self.error_observed = self.error is not None
        return self.error

    def finished(self) -> Future[None]:
        """Return a future that is done when the batch is done or has been split."""
        if self.pending is None:
            self.pending = Future()
            if self.done:
                self.pending.resolve(None)
        return self.pending

    def _finish(self) -> None:
        self.done = True
        self._drop()
        if self.pending is not None:
            self.pending.resolve(None)

    def _drop(self) -> None:
        """Free the memory of the records: deliveries may outlive the batch by far."""
        self._built = b""
        self.owner = None
        if self._builder is not None:
            self._count = int(self.collector.count)
            self._builder = self.collector = None
            del self.append
