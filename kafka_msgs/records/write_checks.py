"""Checks of the values that a caller wants to write. The values are converted to the exact types.

This module owns the bounds of numbers, the types of content, and the texts of the errors. Both implementations use it
for each value that does not have the exact type. So both refuse the same values with the same text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

from kafka_msgs.errors import RecordWriteError, shown
from kafka_msgs.records.record import NO_TIMESTAMP

__all__ = [
    "INT16",
    "INT32",
    "INT64",
    "Content",
    "NamedHeader",
    "RecordLimits",
    "check",
    "check_record",
    "checked_content",
    "checked_header",
    "checked_timestamp",
]

INT16: Final = 2**15 - 1
INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1

Content = bytes | None
NamedHeader = tuple[bytes, Content]
"""A header in the form for writing: its name in UTF-8, and its value."""


class RecordLimits(Protocol):
    """The limits for the next record, given the records that are already in the batch."""

    @property
    def count(self) -> int:
        """The number of records."""

    @property
    def next_offset(self) -> int:
        """The lowest offset that the next record may have."""

    @property
    def highest_offset(self) -> int:
        """The highest offset that a record of the batch may have."""

    @property
    def base_timestamp(self) -> int:
        """The base of the timestamp deltas, in milliseconds since the epoch. -1 if it is not set yet."""


def check(name: str, value: object, low: int, high: int) -> None:
    """Raise ``RecordWriteError`` for a value that is not an int from ``low`` to ``high``."""
    if not isinstance(value, int) or not low <= value <= high:
        raise RecordWriteError(field=name, value=value, reason=f"{shown(value)} is not from {low} to {high}")


def checked_content(name: str, value: object) -> Content:
    """Return a key or a value as bytes or None; raises ``RecordWriteError``."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise RecordWriteError(field=name, value=value, reason=f"{shown(value)} is neither bytes nor None")


def checked_header(header: object) -> NamedHeader:
    """Return a header in the form for writing; raises ``RecordWriteError``."""
    if not isinstance(header, tuple) or len(header) != 2 or not isinstance(header[0], str):
        raise RecordWriteError(field="headers", value=header, reason=f"{shown(header)} is not a name and a value")
    try:
        name = header[0].encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as refused:
        raise RecordWriteError(field="headers", value=header, reason=f"a name is not text: {refused}") from None
    return name, checked_content("headers", header[1])


def checked_timestamp(limits: RecordLimits, timestamp: Any) -> int:
    """Return a timestamp whose distance from the base fits into 64 bits; raises ``RecordWriteError``."""
    beyond = limits.count > 0 and limits.base_timestamp < 0
    check("timestamp", timestamp, NO_TIMESTAMP, INT64 - beyond)
    return int(timestamp)


def check_record(
    limits: RecordLimits,
    key: Any,
    value: Any,
    timestamp: Any = NO_TIMESTAMP,
    headers: Iterable[Any] = (),
    offset: Any = None,
) -> tuple[Content, Content, int, tuple[NamedHeader, ...], int]:
    """Return the arguments of a record in their exact types; raises ``RecordWriteError`` for the first wrong one.

    An ``offset`` of None becomes the next offset. The headers are read first, because reading them may run code of the
    caller.
    """
    given = tuple(headers) if headers else ()
    if offset is None:
        offset = limits.next_offset
    check("offset", offset, limits.next_offset, limits.highest_offset)
    time = checked_timestamp(limits, timestamp)
    contents = checked_content("key", key), checked_content("value", value)
    return *contents, time, tuple(map(checked_header, given)), int(offset)
