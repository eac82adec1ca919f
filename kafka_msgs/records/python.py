"""The records of a magic 2 batch in Python: decoding and encoding.

This is the complete implementation, which runs everywhere. ``native`` is a faster one. This module owns the layout of
one record for writing (``org.apache.kafka.common.record.internal.DefaultRecord``), and ``record_decoder`` for reading.
``write_checks`` checks arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import Any, Final, TypeGuard

from kafka_msgs.records.murmur2 import murmur2
from kafka_msgs.records.record import NO_TIMESTAMP, Payload, exceeds_element_limit
from kafka_msgs.records.record_decoder import decode_records, read
from kafka_msgs.records.write_checks import INT32, INT64, Content, NamedHeader, check_record

__all__ = [
    "RecordAppender",
    "appended_bytes",
    "decode_records",
    "encode_record",
    "exceeds_element_limit",
    "murmur2",
    "read",
    "view_source",
]


def view_source(view: memoryview) -> tuple[bytes, int] | None:
    """Return None: Python cannot find the offset of a view in its object."""
    return None


_VARINTS: Final = [bytes([raw]) for raw in range(128)]


def _varint(value: int) -> bytes:
    raw = value << 1 if value >= 0 else ~(value << 1)
    if raw < 0x80:
        return _VARINTS[raw]
    if raw < 0x4000:
        return (raw & 0x7F | 0x80 | raw >> 7 << 8).to_bytes(2, "little")
    out = bytearray()
    while raw > 127:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: Content,
    value: Content,
    headers: Sequence[NamedHeader],
) -> bytes:
    """Return the bytes of one record of a magic 2 batch. The caller must check the arguments."""
    parts = [b"\0", _varint(timestamp_delta), _varint(offset_delta)]
    for content in (key, value):
        if content is None:
            parts.append(b"\1")
        else:
            parts.append(_varint(len(content)))
            parts.append(content)
    parts.append(_varint(len(headers)))
    for name, content in headers:
        parts += (_varint(len(name)), name)
        parts += (b"\1",) if content is None else (_varint(len(content)), content)
    record = b"".join(parts)
    return _varint(len(record)) + record


def _is_plain(content: object) -> TypeGuard[Content]:
    return content is None or type(content) is bytes


class RecordAppender:
    """Collects the bytes of records for a batch.

    ``records`` contains the bytes, ``size`` is their number, and ``count`` is the number of records. ``next_offset`` is
    the offset of the next record. ``highest_offset`` is the highest allowed offset. The timestamp deltas are relative
    to ``base_timestamp``, which is -1 until the first record sets it. ``max_timestamp`` is the latest timestamp, -1 for
    none. These timestamps are in milliseconds since the epoch.
    """

    __slots__ = (
        "_base_offset",
        "_room",
        "base_timestamp",
        "count",
        "highest_offset",
        "max_timestamp",
        "next_offset",
        "records",
    )

    def __init__(self, base_offset: int, highest_offset: int, base_timestamp: int | None, room: int | None) -> None:
        self._base_offset = self.next_offset = base_offset
        self.highest_offset = highest_offset
        self.base_timestamp = NO_TIMESTAMP if base_timestamp is None else base_timestamp
        self.max_timestamp = NO_TIMESTAMP
        self._room = room
        self.records = bytearray()
        self.count = 0

    @property
    def size(self) -> int:
        """The size of the records in bytes."""
        return len(self.records)

    def sealed(self, head: bytes) -> bytes:
        """Return the header and the records. More records can be added later, for a larger batch."""
        return b"".join((head, self.records))

    def append(
        self,
        key: Payload | None,
        value: Payload | None,
        *,
        timestamp: int = NO_TIMESTAMP,
        headers: Iterable[tuple[str, Payload | None]] = (),
        offset: int | None = None,
    ) -> bool:
        """Add a record, like ``BatchBuilder.append``."""
        if _is_plain(key) and _is_plain(value) and type(timestamp) is int and NO_TIMESTAMP <= timestamp < INT64:
            offset_left = offset is None and self.next_offset <= self.highest_offset
            if offset_left and not headers:
                return self._add(key, value, timestamp, (), self.next_offset)
        return self._add(*check_record(self, key, value, timestamp, headers, offset))

    def append_rows(self, start: int, stop: int, timestamp: int, *columns: Any) -> int:
        """Add rows of columns, like ``BatchBuilder.append_rows``."""
        if not 0 <= start <= stop or stop > INT32:
            raise ValueError("a column does not have these rows")
        keys, values = _contents(start, stop, *columns[:4]), _contents(start, stop, *columns[4:8])
        added = 0
        for key, value, time in zip(keys, values, _times(start, stop, timestamp, *columns[8:]), strict=True):
            if self.next_offset > self.highest_offset or not NO_TIMESTAMP <= time < INT64:
                break
            if not self._add(key, value, time, (), self.next_offset):
                break
            added += 1
        return added

    def _add(self, key: Content, value: Content, timestamp: int, headers: Sequence[NamedHeader], offset: int) -> bool:
        first = self.count == 0 and self.base_timestamp == NO_TIMESTAMP
        base = timestamp if first else self.base_timestamp
        record = encode_record(timestamp - base, offset - self._base_offset, key, value, headers)
        if self._room is not None and self.count and len(self.records) + len(record) > self._room:
            return False
        self.records += record
        self.base_timestamp = base
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.next_offset = offset + 1
        self.count += 1
        return True


def appended_bytes(collector: RecordAppender) -> bytearray:
    """Return the bytes in a collector."""
    return collector.records


def _contents(start: int, stop: int, offsets: Any, data: Any, valid: Any, first: int) -> Iterable[bytes | None]:
    """Return the contents of some rows of a column."""
    if offsets is None:
        return repeat(None, stop - start)
    places, content = memoryview(offsets).cast("B").cast("q"), memoryview(data or b"").cast("B")
    flags = b"\1" * stop if valid is None else memoryview(valid).cast("B")
    if first < 0 or len(places) < first + stop + 1 or len(flags) < stop:
        raise ValueError("a column does not have these rows")
    ends = [places[first + row] for row in range(start, stop + 1)]
    if any(not 0 <= begin <= end <= len(content) for begin, end in pairwise(ends)):
        raise ValueError("the offsets of a column lead out of its bytes")
    return [bytes(content[begin:end]) if flags[row] else None for row, (begin, end) in enumerate(pairwise(ends), start)]


def _times(start: int, stop: int, timestamp: int, times: Any, first: int) -> Iterator[int]:
    """Yield the timestamps of some rows."""
    if times is None:
        return repeat(timestamp, stop - start)
    found = memoryview(times).cast("B").cast("q")
    if len(found) < first + stop:
        raise ValueError("a column does not have these rows")
    return iter(found[first + start : first + stop])
