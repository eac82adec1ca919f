"""Batches: the header of a magic 2 batch, and the walk over a buffer that holds batches of any format.

This module owns the meaning of the header, the checksum, and where one batch ends and the next one begins. ``native``
or ``python`` read the records of a batch. ``legacy`` reads entries of magic 0 and 1. ``builder`` writes batches. The
sources are KIP-98 and Kafka's classes ``DefaultRecordBatch`` and ``ByteBufferLogInputStream`` in
``org.apache.kafka.common.record.internal``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from mmap import mmap
from typing import Any, Final, Self, TypeVar

from attrs import field, frozen

from kafka_msgs._backend import backend_module
from kafka_msgs.binary_layouts import (
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_AND_OFFSET_STRUCT,
    MAGIC_OFFSET,
    TRANSACTIONAL,
    RecordField,
)
from kafka_msgs.checksums import crc32c
from kafka_msgs.codec import Buffer
from kafka_msgs.errors import (
    CorruptRecordError,
    CrcMismatchError,
    RecordBudgetError,
    RecordError,
    UnsupportedMagicError,
)
from kafka_msgs.records import legacy
from kafka_msgs.records.batch_base import Batch
from kafka_msgs.records.compression import decompress
from kafka_msgs.records.control_records import ControlRecord, read_control
from kafka_msgs.records.lazy_records import LazyRecords, ReadRecords
from kafka_msgs.records.options import DEFAULT_READ_OPTIONS, ReadOptions
from kafka_msgs.records.record import ConsumerRecord, Payload, Record, RecordFaultError

__all__ = ["BatchReader", "BatchRun", "RecordBatch", "read_batches", "walk_batches", "yield_errors"]

T = TypeVar("T")

_IMPLEMENTATION: Final = backend_module("kafka_msgs.records")
_SMALLEST_SIZE: Final = 14
_MAX_SEQUENCE: Final = 2**31 - 1


@frozen(repr=False, eq=False)
class RecordBatch(Batch):
    """A magic 2 batch: its header, and its records, which are decoded on access.

    The fields follow the format (KIP-98, ``org.apache.kafka.common.record.internal.DefaultRecordBatch``).
    Timestamps are in milliseconds since the epoch. A producer id, epoch or sequence of -1 means that the batch does not
    have one.
    """

    position: int
    size: int
    base_offset: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    _data: bytes
    _start: int
    _options: ReadOptions

    def __repr__(self) -> str:
        first, last = self.base_offset, self.last_offset
        return f"<RecordBatch at byte {self.position}: offsets {first} to {last}, {self.count} records>"

    @property
    def last_offset(self) -> int:
        """The last offset of the batch. It stays the same if compaction removed the last record."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, or -1 if the batch has no sequence. After 2147483647 comes 0."""
        if self.base_sequence == -1:
            return -1
        last = self.base_sequence + self.last_offset_delta
        return last if last <= _MAX_SEQUENCE else last - _MAX_SEQUENCE - 1

    @property
    def delete_horizon(self) -> int | None:
        """When tombstones and markers may be removed (KIP-534), in milliseconds since the epoch. None if it is not
        set.
        """
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def is_transactional(self) -> bool:
        """Whether the records belong to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the records are control records, which consumers do not receive; see ``control_records``."""
        return bool(self.attributes & CONTROL)

    @property
    def stored_bytes(self) -> memoryview:
        """The bytes of the batch in the buffer, unchanged."""
        return memoryview(self._data)[self._start : self._start + self.size]

    @property
    def detach(self) -> BatchRun:
        """The batch as a run of one."""
        end, shift = self._start + self.size, self.position - self._start
        return BatchRun(self._data, self._start, end, self._options, last_offset=self.last_offset, shift=shift)

    def computed_crc(self) -> int:
        """Return the CRC-32C of the bytes that the checksum covers. In a valid batch it equals ``crc``."""
        return crc32c(self.stored_bytes[CRC_START:])

    def records(self) -> list[Record]:
        """Return the records. Compressed records are decompressed first.

        Raises ``CorruptRecordError``, ``CompressionError``, ``DecompressedSizeError``, ``RecordBudgetError`` and
        ``MissingExtraError``.
        """
        return self._read(RecordField.RECORDS)

    def lazy_records(self) -> Sequence[Record]:
        """Return the records as a sequence that builds each record on access and keeps none.

        All records are checked now: this raises what ``records`` raises, and accessing a record raises no error. The
        sequence keeps the decompressed bytes of the batch alive, or its whole buffer if the batch is not compressed.
        """
        content = self.content()
        marks = self._made(content, RecordField.MARKS)
        return LazyRecords(marks, self.count, self._reader(content[0]))

    def _reader(self, body: bytes) -> ReadRecords:
        read, part, views = _IMPLEMENTATION.read, RecordField.RECORDS, self._options.zero_copy
        rest = self.base_offset, self.base_timestamp, self.append_timestamp, views
        return lambda at, end, count: read(part, body, at, end, count, *rest)

    def consumer_records(self, topic: str, partition: int) -> list[ConsumerRecord]:
        """Return the records as a consumer of a partition receives them; raises what ``records`` raises."""
        return self._read(RecordField.RECORDS, topic, partition)

    def offsets(self) -> list[int]:
        """Return only the offsets of the records, which is faster than ``records``; raises what ``records`` raises."""
        return self._read(RecordField.OFFSETS)

    def timestamps(self) -> list[int]:
        """Return only the timestamps of the records, in milliseconds since the epoch; raises what ``records``
        raises.
        """
        return self._read(RecordField.TIMESTAMPS)

    def keys(self) -> list[Payload | None]:
        """Return only the keys of the records; raises what ``records`` raises."""
        return self._read(RecordField.KEYS)

    def values(self) -> list[Payload | None]:
        """Return only the values of the records; raises what ``records`` raises."""
        return self._read(RecordField.VALUES)

    def content(self) -> tuple[bytes, int, int]:
        """Return the decompressed bytes that hold the records, and the positions where the records start and end.

        Raises ``RecordBudgetError`` for more records than the options allow, and the errors of ``records`` about the
        batch and its compression. The records themselves are not checked.
        """
        body, at, end = self._content()
        limit = self._options.max_elements
        if _IMPLEMENTATION.exceeds_element_limit(body, at, end, self.count, limit):
            raise RecordBudgetError(
                position=self.position,
                offset=self.base_offset,
                reason=f"more than {limit} records and headers (max_elements)",
                limit=limit,
            )
        return body, at, end

    def _content(self) -> tuple[bytes, int, int]:
        if self.count < 0:
            raise self._corrupt(57, None, f"{self.count} records", compressed=False)
        if self.count == 0:
            return b"", 0, 0
        if self.codec == 0:
            return self._data, self._start + HEADER_SIZE, self._start + self.size
        limit = self._options.max_decompressed_bytes
        stored = self.stored_bytes[HEADER_SIZE:]
        body = decompress(self.codec, stored, limit, position=self.position, offset=self.base_offset)
        return body, 0, len(body)

    def _read(self, part: RecordField, *origin: Any) -> list[Any]:
        return self._made(self.content(), part, *origin)

    def _made(self, content: tuple[bytes, int, int], part: RecordField, *origin: Any) -> list[Any]:
        times = self.base_timestamp, self.append_timestamp
        try:
            found: list[Any] = _IMPLEMENTATION.read(
                part, *content, self.count, self.base_offset, *times, self._options.zero_copy, *origin
            )
            return found
        except RecordFaultError as fault:
            compressed = self.codec != 0
            place = fault.at if compressed else fault.at - self._start
            raise self._corrupt(place, fault.index, fault.reason, compressed=compressed) from None

    def _corrupt(self, place: int, index: int | None, reason: str, *, compressed: bool) -> CorruptRecordError:
        at = place if compressed else self.position + place
        return CorruptRecordError(
            position=self.position, offset=self.base_offset, at=at, index=index, compressed=compressed, reason=reason
        )

    def control_records(self) -> list[ControlRecord]:
        """Return the decoded control records of a control batch, or an empty list for any other batch.

        Raises what ``records`` raises, and ``CorruptRecordError`` for a record whose content does not match its type.
        """
        if not self.is_control:
            return []
        return [read_control(record, self.position, self.base_offset) for record in self.records()]


@frozen
class BatchRun:
    """Consecutive complete batches of magic 2, handled together.

    They are the bytes of ``data`` from ``start`` to before ``end``. The position of a batch is its index in ``data``
    plus ``shift``. ``last_offset`` is the last offset of the last batch. Their checksums were compared before, or need
    no comparison.
    """

    data: Buffer | mmap
    start: int
    end: int
    options: ReadOptions
    last_offset: int = field(kw_only=True)
    shift: int = field(kw_only=True, default=0)

    @property
    def position(self) -> int:
        """The position of the first batch."""
        return self.start + self.shift

    def batches(self, start: int | None = None) -> Iterator[RecordBatch]:
        """Yield the batches one by one, starting at the byte ``start`` of the data."""
        with memoryview(self.data) as view:
            at = self.start if start is None else start
            while at < self.end:
                size = int.from_bytes(view[at + 8 : at + LENGTH_AND_OFFSET_STRUCT], "big") + LENGTH_AND_OFFSET_STRUCT
                yield _made_batch(bytes(view[at : at + size]), 0, at + self.shift, size, self.options)
                at += size


class BatchReader(Iterator["RecordBatch | legacy.LegacyBatch"]):
    """The batches of a buffer, in order. ``position`` is the byte where the next batch starts.

    ``left`` counts the bytes from ``position`` to the end. When the iteration ends, ``left`` is the size of a partial
    last batch, or 0. After an error about one batch, the next call continues after that batch. If the damaged batch
    also has a wrong size, the iteration ends.
    """

    def __init__(self, buffer: Buffer | mmap, options: ReadOptions) -> None:
        self.data: Final = buffer if isinstance(buffer, bytes) else memoryview(buffer).cast("B")
        self._source = (self.data, 0) if isinstance(self.data, bytes) else _IMPLEMENTATION.view_source(self.data)
        self.options: Final = options
        self._ended = False
        self.position = 0

    @property
    def left(self) -> int:
        """The number of bytes from ``position`` to the end of the buffer."""
        return len(self.data) - self.position

    def resume_at(self, position: int, next_offset: int) -> None:
        """Continue at ``position``. The caller has found complete and valid batches up to this byte."""
        self.position = position

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> RecordBatch | legacy.LegacyBatch:
        size = self._next_size()
        if size is None:
            raise StopIteration
        position = self.position
        self.position += size
        if self._source is None:
            data, start = bytes(self.data[position : position + size]), 0
        else:
            data, start = self._source[0], self._source[1] + position
        if data[start + MAGIC_OFFSET] == 2:
            return _record_batch(data, start, position, size, self.options)
        return legacy.read_entry(data, start, position, size, self.options)

    def _next_size(self) -> int | None:
        """Return the size of the complete batch at ``position``, or None if there is no complete batch."""
        if self._ended or self.left <= MAGIC_OFFSET:
            return None
        position = self.position
        offset = int.from_bytes(self.data[position : position + 8], "big", signed=True)
        size = int.from_bytes(self.data[position + 8 : position + 12], "big", signed=True)
        magic = int.from_bytes(self.data[position + MAGIC_OFFSET : position + MAGIC_OFFSET + 1], "big", signed=True)
        if size < _SMALLEST_SIZE:
            self._ended = True
            reason = f"a batch of {size} bytes; the smallest has {_SMALLEST_SIZE}"
            raise CorruptRecordError(
                position=position, offset=offset, at=position + 8, index=None, compressed=False, reason=reason
            )
        if not 0 <= magic <= 2:
            self._ended = size + LENGTH_AND_OFFSET_STRUCT > self.left
            self.position += 0 if self._ended else size + LENGTH_AND_OFFSET_STRUCT
            reason = f"the format {magic} is unknown"
            raise UnsupportedMagicError(position=position, offset=offset, magic=magic, reason=reason)
        return None if size + LENGTH_AND_OFFSET_STRUCT > self.left else size + LENGTH_AND_OFFSET_STRUCT


def read_batches(buffer: Buffer | mmap, options: ReadOptions = DEFAULT_READ_OPTIONS) -> BatchReader:
    """Return the batches in ``buffer``: the records of a fetch response, a segment, or any part that starts at a batch.

    A partial last batch is not read. The ``left`` of the reader is then its number of bytes. ``bytes`` and, with the C
    core, views of ``bytes`` are read in place. From other buffers one batch at a time is copied. The iteration raises
    ``CrcMismatchError``, ``CorruptRecordError`` and ``UnsupportedMagicError``. The next call continues after the
    damaged batch.
    """
    return BatchReader(buffer, options)


def walk_batches(
    buffer: Buffer | mmap, options: ReadOptions = DEFAULT_READ_OPTIONS
) -> Iterator[RecordBatch | legacy.LegacyBatch | RecordError]:
    """Yield the same batches as ``read_batches``. Errors are yielded in their place instead of raised."""
    return yield_errors(BatchReader(buffer, options))


def yield_errors(batches: Iterator[T]) -> Iterator[T | RecordError]:
    """Yield the items of an iterator that continues after a ``RecordError``, and each error in its place."""
    while True:
        try:
            yield next(batches)
        except StopIteration:
            return
        except RecordError as error:
            yield error


def _record_batch(data: bytes, start: int, position: int, size: int, options: ReadOptions) -> RecordBatch:
    if size < HEADER_SIZE:
        offset = int.from_bytes(data[start : start + 8], "big", signed=True)
        reason = f"a batch of {size} bytes; the header alone has {HEADER_SIZE}"
        raise CorruptRecordError(
            position=position, offset=offset, at=position + 8, index=None, compressed=False, reason=reason
        )
    batch = _made_batch(data, start, position, size, options)
    if options.check_crc and (found := batch.computed_crc()) != batch.crc:
        reason = f"the checksum is {batch.crc:08x}, the bytes have {found:08x}"
        raise CrcMismatchError(
            position=position, offset=batch.base_offset, expected=batch.crc, found=found, reason=reason
        )
    return batch


def _made_batch(data: bytes, start: int, position: int, size: int, options: ReadOptions) -> RecordBatch:
    base_offset, _, epoch, magic, crc, flags, last, base_time, max_time, producer, era, sequence, count = (
        HEADER.unpack_from(data, start)
    )
    return RecordBatch(
        position, size, base_offset, epoch, magic, crc, flags, last, base_time, max_time, producer, era, sequence,
        count, data, start, options,
    )  # fmt: skip
