"""Batch headers in a buffer or a segment, without the records.

Appends and reads only use headers. ``kafka_msgs.records`` reads batches with their records. The layout matches Kafka's
``DefaultRecordBatch`` and ``LegacyRecord``.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple, Protocol
from zlib import crc32

from kafka_msgs.binary_layouts import (
    CODEC_MASK,
    CONTROL,
    CRC_START,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LENGTH_AND_OFFSET_STRUCT,
    LOG_APPEND_TIME,
    MAGIC_OFFSET,
    NO_PRODUCER,
    NO_TIMESTAMP,
    TRANSACTIONAL,
)
from kafka_msgs.checksums import crc32c
from kafka_msgs.codec import Buffer

__all__ = ["Bytes", "PositionedHeader", "has_valid_crc", "header_at", "iter_headers", "next_sequence"]

_OFFSET_AND_LENGTH: Final = Struct(">qi")
_LEGACY: Final = Struct(">qiIbbq")
_SMALLEST: Final = 14
_MAX_SEQUENCE: Final = 2**31 - 1
_WINDOW: Final = 8192


class Bytes(Protocol):
    """The bytes of the batches of a segment."""

    @property
    def size(self) -> int:
        """The number of bytes."""

    def read(self, start: int, stop: int) -> list[Buffer]:
        """Return the bytes from ``start`` up to but excluding ``stop``, in pieces."""


class PositionedHeader(NamedTuple):
    """A batch header and the byte position of its batch. Messages of magic 0 or 1 fill only some of the fields."""

    position: int
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def size(self) -> int:
        """The size of the batch in bytes."""
        return self.length + LENGTH_AND_OFFSET_STRUCT

    @property
    def end(self) -> int:
        """The byte after the batch."""
        return self.position + self.length + LENGTH_AND_OFFSET_STRUCT

    @property
    def last_offset(self) -> int:
        """The last offset of the batch."""
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, or -1 if the producer is not idempotent."""
        return -1 if self.base_sequence == -1 else next_sequence(self.base_sequence, self.last_offset_delta)

    @property
    def codec(self) -> int:
        """The number of the compression type."""
        return self.attributes & CODEC_MASK

    @property
    def has_broker_time(self) -> bool:
        """Whether the timestamps are log append times."""
        return bool(self.attributes & LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch has control records."""
        return bool(self.attributes & CONTROL)

    @property
    def delete_horizon(self) -> int | None:
        """When tombstones and markers may be removed (KIP-534), in milliseconds since the epoch, or None."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON else None

    @property
    def has_producer(self) -> bool:
        """Whether the producer is idempotent."""
        return self.producer_id > NO_PRODUCER


def next_sequence(sequence: int, count: int) -> int:
    """Return the sequence ``count`` records later. 0 follows 2147483647."""
    later = sequence + count
    return later if later <= _MAX_SEQUENCE else later - _MAX_SEQUENCE - 1


def header_at(data: Buffer, at: int, position: int, left: int) -> PositionedHeader | None:
    """Return the header at ``at`` of ``data``. ``position`` is the position of that byte in the segment or buffer.

    Return None if the remaining ``left`` bytes do not start with a complete batch.
    """
    if left < LENGTH_AND_OFFSET_STRUCT + _SMALLEST:
        return None
    length = _OFFSET_AND_LENGTH.unpack_from(data, at)[1]
    if length < _SMALLEST or length + LENGTH_AND_OFFSET_STRUCT > left:
        return None
    magic = data[at + MAGIC_OFFSET]
    if magic == 2:
        return (
            PositionedHeader(position, *HEADER.unpack_from(data, at))
            if length + LENGTH_AND_OFFSET_STRUCT >= HEADER_SIZE
            else None
        )
    if magic > 2:
        return None
    offset, length, crc, magic, attributes, time = _LEGACY.unpack_from(data, at)
    time = time if magic else NO_TIMESTAMP
    return PositionedHeader(position, offset, length, -1, magic, crc, attributes, 0, time, time, NO_PRODUCER, -1, -1, 1)


def has_valid_crc(header: PositionedHeader, batch: memoryview) -> bool:
    """Return whether a batch matches its checksum: CRC-32C in magic 2, CRC-32 in older formats."""
    found = crc32c(batch[CRC_START:]) if header.magic == 2 else crc32(batch[MAGIC_OFFSET:])
    return bool(found == header.crc)


def iter_headers(data: Bytes, start: int = 0, stop: int | None = None) -> Iterator[PositionedHeader]:
    """Yield the headers of the batches that start from ``start`` up to but excluding ``stop``.

    The iteration ends at the first incomplete batch. Batch contents are not checked.
    """
    size = data.size
    stop = size if stop is None else min(stop, size)
    window, begin, at = b"", start, start
    while at < stop:
        if at - begin + HEADER_SIZE > len(window) and begin + len(window) < size:
            begin, window = at, b"".join(data.read(at, min(at + _WINDOW, size)))
        found = header_at(window, at - begin, at, size - at)
        if found is None:
            return
        yield found
        at = found.end
