"""Message sets: read and write the entries of magic 0 and 1, which are messages or wrappers of a compressed set.

This module owns their layout, their CRC-32, and the rules for offsets and timestamps inside a wrapper (KIP-31, KIP-32).
``compression`` has the codecs. ``batch`` walks over a buffer. The source is Kafka's classes ``LegacyRecord`` and
``AbstractLegacyRecordBatch`` in ``org.apache.kafka.common.record.internal``.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Any, Final
from zlib import crc32

from attrs import frozen

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT, MAGIC_OFFSET
from kafka_msgs.errors import CompressionError, CorruptRecordError, CrcMismatchError, RecordBudgetError
from kafka_msgs.records.batch_base import Batch
from kafka_msgs.records.compression import CompressionType, decompress
from kafka_msgs.records.options import ReadOptions
from kafka_msgs.records.record import NO_TIMESTAMP, Payload, Record

__all__ = ["LegacyBatch", "encode_entry", "read_entry"]

_HEADER: Final = Struct(">qiIbb")
_TIMESTAMP: Final = Struct(">q")
_CRC_FROM: Final = MAGIC_OFFSET
_SMALLEST_ENTRY: Final = 26
"""The size in bytes of an entry of magic 0 without key and value."""
_CONTENT_AT: Final = (18, 26)
"""The position of the key's length in an entry, by magic."""


@frozen
class _Entry:
    """One entry with the stored offset and timestamp. A wrapper may change their meaning."""

    offset: int
    magic: int
    attributes: int
    timestamp: int
    key: Payload | None
    value: Payload | None


@frozen(repr=False, eq=False)
class LegacyBatch(Batch):
    """An entry of a message set of magic 0 or 1: one record, or a wrapper around a compressed set of them.

    ``offset`` is the stored offset of the entry. For a wrapper it is the offset of the last record inside.
    """

    position: int
    size: int
    offset: int
    crc: int
    magic: int
    attributes: int
    max_timestamp: int
    _key: Payload | None
    _value: Payload | None
    _data: bytes
    _start: int
    _options: ReadOptions

    def __repr__(self) -> str:
        return f"<LegacyBatch at byte {self.position}: magic {self.magic}, offset {self.offset}, {self.size} bytes>"

    @property
    def last_offset(self) -> int:
        """The offset of the last record inside."""
        return self.offset

    @property
    def stored(self) -> memoryview:
        """The bytes of the entry in the buffer, unchanged."""
        return memoryview(self._data)[self._start : self._start + self.size]

    def computed_crc(self) -> int:
        """Return the CRC-32 of the bytes that the checksum covers. In a valid entry it equals ``crc``."""
        return crc32(self.stored[_CRC_FROM:])

    def records(self) -> list[Record]:
        """Return the record, or the records of the compressed set.

        As in Kafka, an incomplete entry ends the set, and the checksums inside are not compared. Raises
        ``CorruptRecordError``, ``CompressionError``, ``DecompressedSizeError``, ``RecordBudgetError`` and
        ``MissingExtraError``.
        """
        if self.codec == CompressionType.NONE:
            return [Record(self.offset, self.max_timestamp, self._key, self._value)]
        entries = list(self._inner())
        if not entries:
            raise self._corrupt("the compressed set has no messages")
        base = self._inner_base(entries[-1].offset)
        stamp = self.append_timestamp
        return [
            Record(base + entry.offset, entry.timestamp if stamp is None else stamp, entry.key, entry.value)
            for entry in entries
        ]

    def _inner_base(self, last: int) -> int:
        """Return the number to add to the offsets inside. A wrapper with the offset 0 comes from a producer."""
        if self.magic == 0 or self.offset == 0:
            return 0
        if self.offset < last:
            raise self._corrupt(f"the last offset inside is {last}")
        return self.offset - last

    def _inner(self) -> Iterator[_Entry]:
        if self._value is None:
            raise self._corrupt("the compressed set is null")
        if self.codec == CompressionType.ZSTD:
            reason = f"zstd needs magic 2, this is magic {self.magic}"
            raise CompressionError(position=self.position, offset=self.offset, reason=reason, codec="zstd")
        limit = self._options.max_decompressed_bytes
        body = decompress(
            self.codec,
            memoryview(self._value),
            limit,
            magic=self.magic,
            position=self.position,
            offset=self.offset,
        )
        self._check_count(body)
        at = 0
        while len(body) - at > MAGIC_OFFSET:
            size = int.from_bytes(body[at + 8 : at + 12], "big", signed=True) + LENGTH_AND_OFFSET_STRUCT
            if size > len(body) - at:
                return
            entry = _read(body, at, size, self._options.zero_copy)
            if isinstance(entry, str) or entry.attributes & 7 or entry.magic > self.magic:
                reason = (
                    entry if isinstance(entry, str) else "a compressed set inside a compressed set, or a newer format"
                )
                raise self._corrupt(reason, at, compressed=True)
            yield entry
            at += size

    def _check_count(self, body: bytes) -> None:
        """Raise for too many entries, before the first one is read. Bytes that are not an entry end the count."""
        limit = self._options.max_elements
        count = at = 0
        while len(body) // _SMALLEST_ENTRY > limit and len(body) - at > MAGIC_OFFSET:
            size = int.from_bytes(body[at + 8 : at + 12], "big", signed=True) + LENGTH_AND_OFFSET_STRUCT
            if not _SMALLEST_ENTRY <= size <= len(body) - at:
                return
            at += size
            count += 1
            if count > limit:
                reason = f"more than {limit} records (max_elements)"
                raise RecordBudgetError(position=self.position, offset=self.offset, reason=reason, limit=limit)

    def _corrupt(self, reason: str, at: int | None = None, *, compressed: bool = False) -> CorruptRecordError:
        place = self.position if at is None else at
        return _corrupt(self.position, self.offset, place, reason, compressed=compressed)


def _corrupt(position: int, offset: int, at: int, reason: str, *, compressed: bool = False) -> CorruptRecordError:
    return CorruptRecordError(position=position, offset=offset, at=at, index=None, compressed=compressed, reason=reason)


def _read(data: bytes, start: int, size: int, views: bool) -> _Entry | str:
    """Return the entry of ``size`` bytes at ``start``, or the reason why the bytes are not an entry."""
    magic = data[start + MAGIC_OFFSET] if size > MAGIC_OFFSET else 0
    if magic > 1:
        return f"the format {magic} inside a message set"
    at, end = start + _CONTENT_AT[magic], start + size
    if end - at < 8:
        return f"a message of {size - LENGTH_AND_OFFSET_STRUCT} bytes is too short for magic {magic}"
    offset, _, _, _, attributes = _HEADER.unpack_from(data, start)
    timestamp = _TIMESTAMP.unpack_from(data, start + 18)[0] if magic else NO_TIMESTAMP
    source = memoryview(data) if views else data
    content: list[Payload | None] = []
    for what in ("key", "value"):
        length = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if length < -1 or length > end - at or end - at < 0:
            return f"the {what} has the length {length}, {max(end - at, 0)} bytes left"
        content.append(None if length < 0 else source[at : at + length])
        at += max(length, 0)
    if at != end:
        return f"{end - at} bytes left over after the value"
    return _Entry(offset, magic, attributes, timestamp, *content)


def read_entry(data: bytes, start: int, position: int, size: int, options: ReadOptions) -> LegacyBatch:
    """Return the entry of ``size`` bytes at ``data[start]``. This is byte ``position`` of the caller's buffer.

    Raises ``CorruptRecordError`` and ``CrcMismatchError``.
    """
    offset, _, crc, _, _ = _HEADER.unpack_from(data, start)
    if options.check_crc and (found := crc32(memoryview(data)[start + _CRC_FROM : start + size])) != crc:
        reason = f"the checksum is {crc:08x}, the bytes have {found:08x}"
        raise CrcMismatchError(position=position, offset=offset, expected=crc, found=found, reason=reason)
    entry = _read(data, start, size, options.zero_copy)
    if isinstance(entry, str):
        raise _corrupt(position, offset, position, entry)
    return LegacyBatch(
        position, size, offset, crc, entry.magic, entry.attributes, entry.timestamp, entry.key, entry.value,
        data, start, options,
    )  # fmt: skip


def encode_entry(offset: int, magic: int, attributes: int, timestamp: int, key: Any, value: Any) -> bytes:
    """Return one entry of magic 0 or 1, with its size and checksum. Magic 0 does not have a timestamp."""
    body = bytearray((magic, attributes))
    if magic:
        body += _TIMESTAMP.pack(timestamp)
    for content in (key, value):
        body += (-1 if content is None else len(content)).to_bytes(4, "big", signed=True)
        body += b"" if content is None else content
    return b"".join((_TIMESTAMP.pack(offset), (len(body) + 4).to_bytes(4, "big"), crc32(body).to_bytes(4, "big"), body))
