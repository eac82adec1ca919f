"""A record, and the records inside a magic 2 batch: bytes to values and back.

Owns the layout of one record and its zig-zag varints. The header of a batch, its checksum and its compression are left
to ``batch``; the entries of older formats to ``legacy``.

``decode_records`` only notices that something is wrong; ``_explain`` then reads the same bytes step by step and says
what and where. So the loop that every record passes stays short, and native code can take its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from kafka_msgs.errors import InternalError

__all__ = [
    "NO_TIMESTAMP",
    "Header",
    "Headers",
    "Payload",
    "Record",
    "RecordFaultError",
    "decode_records",
    "encode_record",
]

NO_TIMESTAMP: Final = -1

Payload = bytes | memoryview
"""What a key or a value is: a view where the caller asked for views, bytes otherwise."""

Header = tuple[str, Payload | None]
"""A name and a value. A name whose bytes are not UTF-8 keeps them as surrogate escapes (PEP 383)."""

Headers = tuple[Header, ...]


@frozen
class Record:
    """One record of a log.

    ``offset`` is its place in the partition; ``timestamp`` is in milliseconds since the epoch, -1 for none; ``key`` and
    ``value`` are None for null; ``headers`` are in their order, names may repeat.
    """

    offset: int
    timestamp: int
    key: Payload | None
    value: Payload | None
    headers: Headers = ()


class RecordFaultError(Exception):
    """Records that contradict themselves: the place in the bytes, which record, and why. ``batch`` words it."""

    def __init__(self, at: int, index: int, reason: str) -> None:
        super().__init__(at, index, reason)
        self.at = at
        self.index = index
        self.reason = reason


class _BadNumberError(Exception):
    pass


_new = object.__new__
_set_offset = Record.__dict__["offset"].__set__
_set_timestamp = Record.__dict__["timestamp"].__set__
_set_key = Record.__dict__["key"].__set__
_set_value = Record.__dict__["value"].__set__
_set_headers = Record.__dict__["headers"].__set__
_INT_BITS: Final = 32
_LONG_BITS: Final = 64


def _long_varint(body: bytes, at: int, low: int, bits: int = _INT_BITS) -> tuple[int, int]:
    """Read the rest of a varint whose first byte, before ``at``, was ``low``; return its raw value and its end."""
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
    """Return the ``count`` records that ``body`` holds from ``at`` to ``end``, no more and no less.

    With ``append_timestamp`` all records have that one. With ``views`` keys and values are views of ``body``. Raises
    ``RecordFaultError``.
    """
    source = memoryview(body) if views else body
    records: list[Record] = []
    start = at
    if count > end - at:
        raise _explain(body, start, end, count)
    try:
        for _ in range(count):
            raw = body[at]
            at += 1
            if raw > 127:
                raw, at = _long_varint(body, at, raw)
            stop = at + (raw >> 1)
            if raw & 1 or stop > end:
                raise _explain(body, start, end, count)
            at += 1
            raw = body[at]
            at += 1
            if raw > 127:
                raw, at = _long_varint(body, at, raw, _LONG_BITS)
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
                raise _explain(body, start, end, count)
            records.append(record)
    except (IndexError, _BadNumberError):
        raise _explain(body, start, end, count) from None
    if at != end:
        raise _explain(body, start, end, count)
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


class _Explainer:
    """Reads records one step at a time and stops with the first fault."""

    def __init__(self, body: bytes, at: int, end: int) -> None:
        self.body = body
        self.at = at
        self.end = end
        self.index = 0

    def fault(self, at: int, reason: str) -> RecordFaultError:
        return RecordFaultError(at, self.index, reason)

    def varint(self, what: str, stop: int, bits: int = _INT_BITS) -> int:
        start, raw = self.at, 0
        for shift in range(0, bits + 7 - bits % 7, 7):
            if self.at >= stop:
                raise self.fault(start, f"{what} does not end before its record does")
            byte = self.body[self.at]
            self.at += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
        if byte > 127 or raw >> bits:
            raise self.fault(start, f"{what} is a varint of more than {bits} bits")
        return raw >> 1 ^ -(raw & 1)

    def payload(self, what: str, stop: int, *, nullable: bool = True) -> None:
        start = self.at
        size = self.varint(f"the length of {what}", stop)
        if size < (-1 if nullable else 0):
            raise self.fault(start, f"{what} has the length {size}")
        if size > stop - self.at:
            raise self.fault(start, f"{what} needs {size} bytes, {stop - self.at} left in the record")
        self.at += max(size, 0)

    def headers(self, stop: int) -> None:
        start = self.at
        count = self.varint("the number of headers", stop)
        if not 0 <= count <= stop - self.at:
            raise self.fault(start, f"{count} headers, {stop - self.at} bytes left in the record")
        for _ in range(count):
            self.payload("a header's name", stop, nullable=False)
            self.payload("a header's value", stop)

    def record(self) -> None:
        start = self.at
        size = self.varint("the length of the record", self.end)
        stop = self.at + size
        if size < 0 or stop > self.end:
            raise self.fault(start, f"the record needs {size} bytes, {self.end - self.at} left")
        self.at += 1
        self.varint("the timestamp", stop, _LONG_BITS)
        self.varint("the offset", stop)
        self.payload("the key", stop)
        self.payload("the value", stop)
        self.headers(stop)
        if self.at != stop:
            raise self.fault(self.at, f"{stop - self.at} bytes left over in the record")

    def run(self, count: int) -> None:
        if count > self.end - self.at:
            raise self.fault(self.at, f"{count} records in {self.end - self.at} bytes")
        while self.index < count:
            self.record()
            self.index += 1
        if self.at != self.end:
            raise self.fault(self.at, f"{self.end - self.at} bytes left over after {count} records")


def _explain(body: bytes, at: int, end: int, count: int) -> Exception:
    """Return the fault of records that ``decode_records`` refused."""
    try:
        _Explainer(body, at, end).run(count)
    except RecordFaultError as fault:
        return fault
    return InternalError(reason="records were refused that have no fault")


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
    key: bytes | bytearray | None,
    value: bytes | bytearray | None,
    headers: Sequence[tuple[bytes, bytes | bytearray | None]],
) -> bytes:
    """Return the bytes of one record of a magic 2 batch; the arguments are the caller's to check."""
    parts: list[bytes | bytearray] = [b"\0", _varint(timestamp_delta), _varint(offset_delta)]
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
