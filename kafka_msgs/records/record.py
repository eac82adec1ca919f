"""The record class, and the explanation of bytes that are not a record.

This module owns the record class, and a slow and simple reader of the records inside a magic 2 batch. ``native`` and
``python`` only detect that a record is invalid. ``explain`` then reads the same bytes step by step, and reports the
fault and its position. This keeps both fast loops short. The layout follows Kafka's class
``org.apache.kafka.common.record.internal.DefaultRecord`` (KIP-98).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from kafka_msgs._backend import backend
from kafka_msgs.binary_layouts import NO_TIMESTAMP
from kafka_msgs.errors import InternalError

__all__ = [
    "INT_BITS",
    "LONG_BITS",
    "NO_TIMESTAMP",
    "ConsumerRecord",
    "Header",
    "Headers",
    "Payload",
    "Record",
    "RecordFaultError",
    "exceeds_element_limit",
    "explain",
    "to_consumer_record",
]

INT_BITS: Final = 32
LONG_BITS: Final = 64
"""The largest number of bits of a varint: 64 for a timestamp, 32 for everything else."""

_SMALLEST_RECORD: Final = 7
_SMALLEST_HEADER: Final = 2
"""Minimum sizes in bytes. Each part of a record and of a header has at least one byte."""

Payload = bytes | memoryview
"""The type of a key or a value: a ``memoryview`` if the caller requested views, otherwise ``bytes``."""

Header = tuple[str, Payload | None]
"""A name and a value (KIP-82). Bytes of a name that are not UTF-8 become surrogate escapes (PEP 383)."""

Headers = tuple[Header, ...]
"""The headers of a record, in order. Names may repeat (KIP-82)."""


if TYPE_CHECKING or backend() != "c":

    class _Storage:
        """Leaves the slots to the class that extends it."""

        __slots__ = ()

    _PlacedStorage = _Storage

else:
    # The storage stores the offset as a C integer, because a Python object per offset would cost memory and time.
    from kafka_msgs._core.extension import PlacedRecordStorage as _PlacedStorage
    from kafka_msgs._core.extension import RecordStorage as _Storage

    # With __slots__ set, attrs treats the storage fields as fields of the classes.
    _Storage.__slots__ = ("offset", "timestamp", "key", "value", "headers")
    _PlacedStorage.__slots__ = ("topic", "partition")


@frozen(weakref_slot=False)
class Record(_Storage):
    """One record of a log.

    ``offset`` is its offset in the partition. ``timestamp`` is in milliseconds since the epoch, -1 for none. ``key``
    and ``value`` are None for null. ``headers`` keep their order, and names may repeat (KIP-82). Kafka's class is
    ``org.apache.kafka.common.record.internal.DefaultRecord``.
    """

    offset: int
    timestamp: int
    key: Payload | None
    value: Payload | None
    headers: Headers = ()


@frozen(weakref_slot=False)
class ConsumerRecord(_PlacedStorage):
    """A record as a consumer receives it, with its topic and partition.

    It has all fields of ``Record``. Kafka's class is ``org.apache.kafka.clients.consumer.ConsumerRecord``.
    """

    offset: int
    timestamp: int
    key: Payload | None
    value: Payload | None
    headers: Headers
    topic: str
    partition: int


def to_consumer_record(record: Record, topic: str, partition: int) -> ConsumerRecord:
    """Return ``record`` as a consumer of a partition receives it."""
    return ConsumerRecord(record.offset, record.timestamp, record.key, record.value, record.headers, topic, partition)


class RecordFaultError(Exception):
    """A fault in records: its position in the bytes, the index of the record, and the reason. ``batch`` reports it."""

    def __init__(self, at: int, index: int, reason: str) -> None:
        super().__init__(at, index, reason)
        self.at = at
        self.index = index
        self.reason = reason


class _Explainer:
    """Reads records one step at a time and stops at the first fault."""

    def __init__(self, body: bytes, at: int, end: int) -> None:
        self.body = body
        self.at = at
        self.end = end
        self.index = 0

    def fault(self, at: int, reason: str) -> RecordFaultError:
        return RecordFaultError(at, self.index, reason)

    def varint(self, what: str, stop: int, bits: int = INT_BITS) -> int:
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

    def head(self) -> tuple[int, int]:
        """Read a record up to its headers; return the declared end of the record and number of headers."""
        start = self.at
        size = self.varint("the length of the record", self.end)
        stop = self.at + size
        if size < 0 or stop > self.end:
            raise self.fault(start, f"the record needs {size} bytes, {self.end - self.at} left")
        self.at += 1
        self.varint("the timestamp", stop, LONG_BITS)
        self.varint("the offset", stop)
        self.payload("the key", stop)
        self.payload("the value", stop)
        start = self.at
        count = self.varint("the number of headers", stop)
        if not 0 <= count <= stop - self.at:
            raise self.fault(start, f"{count} headers, {stop - self.at} bytes left in the record")
        return stop, count

    def record(self) -> None:
        stop, headers = self.head()
        for _ in range(headers):
            self.payload("a header's name", stop, nullable=False)
            self.payload("a header's value", stop)
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


def exceeds_element_limit(body: bytes, at: int, end: int, count: int, limit: int) -> bool:
    """Return whether ``count`` records from ``at`` to ``end`` have more than ``limit`` elements: records and headers.

    If the bytes are not records, it returns False. The reader of the records then reports the fault. The bytes are
    examined only if they are long enough for so many elements.
    """
    if not 0 <= count <= (end - at) // _SMALLEST_RECORD:
        return False
    room = limit - count
    if room < 0 or (end - at - _SMALLEST_RECORD * count) // _SMALLEST_HEADER <= room:
        return room < 0
    reader = _Explainer(body, at, end)
    try:
        for _ in range(count):
            stop, headers = reader.head()
            room -= headers
            if room < 0 or (headers == 0 and reader.at != stop):
                break
            reader.at = stop
    except RecordFaultError:
        return False
    return room < 0


def explain(body: bytes, at: int, end: int, count: int) -> Exception:
    """Return the fault of ``count`` records from ``at`` to ``end`` that ``native`` or ``python`` did not accept."""
    try:
        _Explainer(body, at, end).run(count)
    except RecordFaultError as fault:
        return fault
    return InternalError(reason="records without a fault were refused")
