"""What a caller hands in to be written: checked, and made exactly what is written.

Owns the bounds of numbers, the kinds of content, and the words for what is neither. Both implementations come
here with what is not exact already, so that both refuse the same in the same words.
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
    "Limits",
    "Named",
    "check",
    "checked",
    "checked_content",
    "checked_header",
    "checked_timestamp",
]

INT16: Final = 2**15 - 1
INT32: Final = 2**31 - 1
INT64: Final = 2**63 - 1

Content = bytes | None
Named = tuple[bytes, Content]
"""A header as it is written: its name in UTF-8, and its value."""


class Limits(Protocol):
    """What the records so far leave to the next one."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def next_offset(self) -> int:
        """The lowest offset that the next one may have."""

    @property
    def highest_offset(self) -> int:
        """The highest offset that any may have."""

    @property
    def base_timestamp(self) -> int:
        """What timestamps count from, in milliseconds since the epoch; -1 where nothing has settled that."""


def check(name: str, value: object, low: int, high: int) -> None:
    """Raise ``RecordWriteError`` for what is no int from ``low`` to ``high``."""
    if not isinstance(value, int) or not low <= value <= high:
        raise RecordWriteError(field=name, value=value, reason=f"{shown(value)} is not from {low} to {high}")


def checked_content(name: str, value: object) -> Content:
    """Return a key or a value as bytes or None; raises ``RecordWriteError``."""
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise RecordWriteError(field=name, value=value, reason=f"{shown(value)} is neither bytes nor None")


def checked_header(header: object) -> Named:
    """Return a header as it is written; raises ``RecordWriteError``."""
    if not isinstance(header, tuple) or len(header) != 2 or not isinstance(header[0], str):
        raise RecordWriteError(field="headers", value=header, reason=f"{shown(header)} is not a name and a value")
    try:
        name = header[0].encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as refused:
        raise RecordWriteError(field="headers", value=header, reason=f"a name is not text: {refused}") from None
    return name, checked_content("headers", header[1])


def checked_timestamp(limits: Limits, timestamp: Any) -> int:
    """Return a timestamp whose difference to the base fits into 64 bits; raises ``RecordWriteError``."""
    beyond = limits.count > 0 and limits.base_timestamp < 0
    check("timestamp", timestamp, NO_TIMESTAMP, INT64 - beyond)
    return int(timestamp)


def checked(
    limits: Limits, key: Any, value: Any, timestamp: Any, headers: Iterable[Any], offset: Any
) -> tuple[Content, Content, int, tuple[Named, ...], int]:
    """Return the arguments of a record, exact; raises ``RecordWriteError`` for the first that is wrong.

    ``offset`` is the next one where it is None. Headers are taken before anything is decided, since taking them may run
    anybody's code.
    """
    given = tuple(headers) if headers else ()
    if offset is None:
        offset = limits.next_offset
    check("offset", offset, limits.next_offset, limits.highest_offset)
    time = checked_timestamp(limits, timestamp)
    contents = checked_content("key", key), checked_content("value", value)
    return *contents, time, tuple(map(checked_header, given)), int(offset)
