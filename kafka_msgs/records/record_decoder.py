"""The decoder for the records of a magic 2 batch in Python: the complete implementation, which runs everywhere.

``python`` always uses it. ``native`` uses it for bytes that the C core does not handle: numbers of more than 64 bits,
and damaged bytes. This module owns the layout of one record for reading, and its zig-zag varints
(``org.apache.kafka.common.record.internal.DefaultRecord``). ``record.explain`` finds the fault in damaged bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from kafka_msgs.binary_layouts import MARK_INTERVAL, RecordField
from kafka_msgs.records.record import INT_BITS, LONG_BITS, Header, Headers, Payload, Record, explain, to_consumer_record

__all__ = ["decode_records", "read"]


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
    """Return exactly ``count`` records from ``body``, between ``at`` and ``end``.

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
    """Read a raw varint, before zig-zag decoding; return it and the position after it."""
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
    """Check all records; return the start of every ``MARK_INTERVAL``-th record, and the end of the last one."""
    start, marks = at, []
    if count > end - at:
        raise explain(body, start, end, count)
    try:
        for index in range(count):
            if index % MARK_INTERVAL == 0:
                marks.append(at)
            at = _behind_record(body, at, end)
    except (IndexError, _BadNumberError):
        raise explain(body, start, end, count) from None
    if at != end:
        raise explain(body, start, end, count)
    return [*marks, at]


_PICK: Final[dict[RecordField, Callable[[Record], Any]]] = {
    RecordField.OFFSETS: attrgetter("offset"),
    RecordField.TIMESTAMPS: attrgetter("timestamp"),
    RecordField.KEYS: attrgetter("key"),
    RecordField.VALUES: attrgetter("value"),
}


def read(
    part: RecordField,
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
    """Return one part of each record, or the marks.

    Takes the same arguments and raises the same errors as ``decode_records``. With a topic and a partition, the
    records are ``ConsumerRecord`` instances.
    """
    if part is RecordField.MARKS:
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
    if part is not RecordField.RECORDS:
        return list(map(_PICK[part], records))
    if topic is None or partition is None:
        return records
    return [to_consumer_record(record, topic, partition) for record in records]
