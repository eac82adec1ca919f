"""The records of a magic 2 batch in Python: bytes to records, records to bytes.

This is the complete implementation, which runs everywhere. ``native`` does the same faster. This module owns the layout
of one record and its zig-zag varints (``org.apache.kafka.common.record.internal.DefaultRecord``). ``record.explain``
finds the fault in damaged bytes. ``write_checks`` checks arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from operator import attrgetter
from typing import Any, Final, TypeGuard

from kafka_msgs.layouts import MARKED, RecordPart
from kafka_msgs.records.murmur2 import murmur2
from kafka_msgs.records.record import (
    INT_BITS,
    LONG_BITS,
    NO_TIMESTAMP,
    Header,
    Headers,
    Payload,
    Record,
    exceeds,
    explain,
    placed,
)
from kafka_msgs.records.write_checks import INT32, INT64, Content, Named, checked

__all__ = ["Collector", "contents", "decode_records", "encode_record", "exceeds", "murmur2", "read"]


class _BadNumberError(Exception):
    pass


_new = object.__new__
_set_offset = Record.__dict__["offset"].__set__
_set_timestamp = Record.__dict__["timestamp"].__set__
_set_key = Record.__dict__["key"].__set__
_set_value = Record.__dict__["value"].__set__
_set_headers = Record.__dict__["headers"].__set__


def _long_varint(body: bytes, at: int, low: int, bits: int = INT_BITS) -> tuple[int, int]:
    """Read the rest of a varint after its first byte, ``low``; return the raw value and the position after it."""
    byte = body[at]
    if byte < 0x80:  # two bytes hold the sizes and deltas of most records
        return low & 0x7F | byte << 7, at + 1
    value, shift = low & 0x7F, 7
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> bits:
                raise _BadNumberError
            return value, at
        shift += 7
        if shift > bits:
            raise _BadNumberError


def decode_records(
    body: bytes,
    at: int,
    end: int,
    count: int,
    *,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int | None = None,
    views: bool = False,
) -> list[Record]:
    """Return exactly ``count`` records, which ``body`` holds from ``at`` to ``end``.

    With ``append_timestamp`` all records have that timestamp. With ``views`` keys and values are views of ``body``.
    Raises ``RecordFaultError``.
    """
    source = memoryview(body) if views else body
    records: list[Record] = []
    start = at
    if count > end - at:
        raise explain(body, start, end, count)
    try:
        for _ in range(count):
            raw = body[at]
            at += 1
            if raw > 127:
                raw, at = _long_varint(body, at, raw)
            stop = at + (raw >> 1)
            if raw & 1 or stop > end:
                raise explain(body, start, end, count)
            at += 1
            raw = body[at]
            at += 1
            if raw > 127:
                raw, at = _long_varint(body, at, raw, LONG_BITS)
            timestamp = base_timestamp + (raw >> 1 ^ -(raw & 1)) if append_timestamp is None else append_timestamp
            raw = body[at]
            at += 1
            if raw > 127:
                raw, at = _long_varint(body, at, raw)
            record = _new(Record)
            _set_offset(record, base_offset + (raw >> 1 ^ -(raw & 1)))
            _set_timestamp(record, timestamp)
            key, at = _payload(source, body, at)
            _set_key(record, key)
            value, at = _payload(source, body, at)
            _set_value(record, value)
            headers, at = _headers(source, body, at, stop) if body[at] else ((), at + 1)
            _set_headers(record, headers)
            if at != stop:
                raise explain(body, start, end, count)
            records.append(record)
    except (IndexError, _BadNumberError):
        raise explain(body, start, end, count) from None
    if at != end:
        raise explain(body, start, end, count)
    return records


def _payload(source: Payload, body: bytes, at: int) -> tuple[Payload | None, int]:
    raw = body[at]
    at += 1
    if raw > 127:
        raw, at = _long_varint(body, at, raw)
    if raw & 1:
        if raw != 1:
            raise _BadNumberError
        return None, at
    stop = at + (raw >> 1)
    return source[at:stop], stop


def _headers(source: Payload, body: bytes, at: int, stop: int) -> tuple[Headers, int]:
    raw = body[at]
    at += 1
    if raw > 127:
        raw, at = _long_varint(body, at, raw)
    if raw & 1 or raw >> 1 > stop - at:
        raise _BadNumberError
    headers: list[Header] = []
    for _ in range(raw >> 1):
        name, at = _payload(body, body, at)
        if name is None or at > stop:
            raise _BadNumberError
        value, at = _payload(source, body, at)
        headers.append((str(name, "utf-8", "surrogateescape"), value))
    return tuple(headers), at


def _number(body: bytes, at: int, bits: int = INT_BITS) -> tuple[int, int]:
    """Read a varint as it stands, before zig-zag; return it and the position after it."""
    raw = body[at]
    return (raw, at + 1) if raw < 0x80 else _long_varint(body, at + 1, raw, bits)


def _behind_payload(body: bytes, at: int, lowest: int = -1) -> int:
    raw, at = _number(body, at)
    if raw & 1 and (raw != 1 or lowest == 0):
        raise _BadNumberError
    return at if raw & 1 else at + (raw >> 1)


def _behind_record(body: bytes, at: int, end: int) -> int:
    """Check a record, and return the position after it."""
    raw, at = _number(body, at)
    stop = at + (raw >> 1)
    if raw & 1 or stop > end:
        raise _BadNumberError
    _, at = _number(body, at + 1, LONG_BITS)
    _, at = _number(body, at)
    at = _behind_payload(body, _behind_payload(body, at))
    headers, at = _number(body, at)
    if headers & 1 or headers >> 1 > stop - at:
        raise _BadNumberError
    for _ in range(headers >> 1):
        at = _behind_payload(body, _behind_payload(body, at, lowest=0))
        if at > stop:
            raise _BadNumberError
    if at != stop:
        raise _BadNumberError
    return at


def _marks(body: bytes, at: int, end: int, count: int) -> list[int]:
    """Check all records; return the positions where every ``MARKED``-th one starts, and where the last one ends."""
    start, marks = at, []
    if count > end - at:
        raise explain(body, start, end, count)
    try:
        for index in range(count):
            if index % MARKED == 0:
                marks.append(at)
            at = _behind_record(body, at, end)
    except (IndexError, _BadNumberError):
        raise explain(body, start, end, count) from None
    if at != end:
        raise explain(body, start, end, count)
    return [*marks, at]


_PICK: Final[dict[RecordPart, Callable[[Record], Any]]] = {
    RecordPart.OFFSETS: attrgetter("offset"),
    RecordPart.TIMESTAMPS: attrgetter("timestamp"),
    RecordPart.KEYS: attrgetter("key"),
    RecordPart.VALUES: attrgetter("value"),
}


def read(
    part: RecordPart,
    body: bytes,
    at: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int | None,
    views: bool,
    topic: str | None = None,
    partition: int | None = None,
) -> list[Any]:
    """Return one part of each record, or the marks; arguments and errors are those of ``decode_records``.

    With a topic and a partition the records are of the class ``ConsumerRecord``.
    """
    if part is RecordPart.MARKS:
        return _marks(body, at, end, count)
    records = decode_records(
        body,
        at,
        end,
        count,
        base_offset=base_offset,
        base_timestamp=base_timestamp,
        append_timestamp=append_timestamp,
        views=views,
    )
    if part is not RecordPart.RECORDS:
        return list(map(_PICK[part], records))
    if topic is None or partition is None:
        return records
    return [placed(record, topic, partition) for record in records]


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
    headers: Sequence[Named],
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


class Collector:
    """Collects the bytes of records for a batch.

    ``records`` has the bytes, ``size`` is their number, and ``count`` is the number of records. ``next_offset`` is the
    offset of the next record. ``highest_offset`` is the highest offset that is allowed. The timestamp deltas count from
    ``base_timestamp``. It is -1 until the first record sets it. ``max_timestamp`` is the latest timestamp, -1 for none.
    Both are in milliseconds since the epoch.
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
        """Do what ``BatchBuilder.append`` does."""
        if _is_plain(key) and _is_plain(value) and type(timestamp) is int and NO_TIMESTAMP <= timestamp < INT64:
            offset_left = offset is None and self.next_offset <= self.highest_offset
            if offset_left and not headers:
                return self._add(key, value, timestamp, (), self.next_offset)
        return self._add(*checked(self, key, value, timestamp, headers, offset))

    def append_rows(self, start: int, stop: int, timestamp: int, *columns: Any) -> int:
        """Do what ``BatchBuilder.append_rows`` does."""
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

    def _add(self, key: Content, value: Content, timestamp: int, headers: Sequence[Named], offset: int) -> bool:
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


contents = attrgetter("records")
"""Gives the bytes that a collector has."""


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
