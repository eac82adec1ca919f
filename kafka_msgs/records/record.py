"""A record, and what is wrong with bytes that are none.

Owns the values that a record is read into, and the slow, obvious reader of the records inside a magic 2 batch.
``native`` and ``python`` only notice that something is wrong; ``explain`` then reads the same bytes step by step and
says what and where. So the loop that every record passes stays short, and there may be two of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from kafka_msgs._backend import backend
from kafka_msgs.errors import InternalError
from kafka_msgs.layouts import NO_TIMESTAMP

__all__ = [
    "INT_BITS",
    "LONG_BITS",
    "NO_TIMESTAMP",
    "Header",
    "Headers",
    "Payload",
    "Record",
    "RecordFaultError",
    "exceeds",
    "explain",
]

INT_BITS: Final = 32
LONG_BITS: Final = 64
"""The most that a varint holds: of a timestamp the larger number, of everything else the smaller one."""

_SMALLEST_RECORD: Final = 7
_SMALLEST_HEADER: Final = 2
"""Bytes: each part of a record and of a header has one at least."""

Payload = bytes | memoryview
"""What a key or a value is: a view where the caller asked for views, bytes otherwise."""

Header = tuple[str, Payload | None]
"""A name and a value. A name whose bytes are not UTF-8 keeps them as surrogate escapes (PEP 383)."""

Headers = tuple[Header, ...]
"""Headers of a record, in their order; keys may repeat (KIP-82)."""


if TYPE_CHECKING or backend() != "c":

    class _Storage:
        """Leaves the slots to the class that extends it."""

        __slots__ = ()

else:
    # Keeps the offset as a number: an object for each would cost memory, and time, before anybody reads it.
    from kafka_msgs._core.extension import RecordStorage as _Storage


@frozen(weakref_slot=False)
class Record(_Storage):
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


class _Explainer:
    """Reads records one step at a time and stops with the first fault."""

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
        """Read a record up to its headers; return where it says that it ends, and how many headers it says it has."""
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


def exceeds(body: bytes, at: int, end: int, count: int, limit: int) -> bool:
    """Return whether ``count`` records from ``at`` to ``end`` have more than ``limit`` elements: records and headers.

    It stops, and returns False, where the bytes are not records; whoever reads them finds that. The bytes are looked
    at only where they can hold so many elements.
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
    """Return the fault of ``count`` records that a loop refused to read from ``at`` to ``end``."""
    try:
        _Explainer(body, at, end).run(count)
    except RecordFaultError as fault:
        return fault
    return InternalError(reason="records were refused that have no fault")
