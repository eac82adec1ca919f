"""Readable times: ISO 8601 in UTC, next to Kafka's numbers.

This module defines the fields of messages that are points in time, their readable form, and its name.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from kafka_msgs.internal_topics.streams_metadata import decode_streams_metadata

__all__ = ["is_time", "iso_of_ms", "iso_of_us", "short_time", "streams_times", "time_name", "with_times"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIME_FIELD: Final = re.compile(r"(?:timestamp|append_time|start_time)(?:_ms)?$")
_NUMBER: Final = re.compile(r"(?:([tT])imestamp|([tT])ime)(?:Ms)?$")


def iso_of_ms(milliseconds: int | None) -> str | None:
    """Return ``2023-11-14T22:13:20.000Z`` for milliseconds since the epoch.

    Return None for a negative number, which is a missing time in Kafka, and for a time after the year 9999.
    """
    return None if milliseconds is None else _iso(milliseconds, "milliseconds")


def short_time(milliseconds: int | None) -> str | None:
    """Return ``2023-11-14 22:13:20Z``, for tables: the date and the time can be on two lines."""
    text = iso_of_ms(milliseconds)
    return None if text is None else f"{text[:10]} {text[11:19]}Z"


def streams_times(metadata: str | None) -> dict[str, Any]:
    """Return the partition time that Kafka Streams wrote as offset metadata; None for other metadata."""
    decoded = decode_streams_metadata(metadata)
    time = None if decoded is None else decoded.partition_time
    return {"partitionTimestamp": time, "partitionTime": iso_of_ms(time)}


def iso_of_us(microseconds: int | None) -> str | None:
    """Return the ISO 8601 form of microseconds since the epoch, with six decimals."""
    return None if microseconds is None else _iso(microseconds, "microseconds")


def _iso(count: int, unit: str) -> str | None:
    if count < 0:
        return None
    try:
        time = _EPOCH + timedelta(**{unit: count})
    except OverflowError:
        return None
    return f"{time.replace(tzinfo=None).isoformat(timespec=unit)}Z"


def is_time(attribute: str) -> bool:
    """Return whether an int64 field of a message, by its Python name, is a point in time in milliseconds."""
    return _TIME_FIELD.search(attribute) is not None


def time_name(name: str) -> str:
    """Return the name of the readable form: ``maxTimestamp`` is the number, ``maxTime`` the text."""
    return _NUMBER.sub(lambda match: f"{match[1] or match[2]}ime", name)


def with_times(facts: dict[str, Any]) -> dict[str, Any]:
    """Return facts with the readable form after each number in milliseconds whose name ends in ``Timestamp``."""
    shown: dict[str, Any] = {}
    for name, value in facts.items():
        shown[name] = value
        if name.lower().endswith("timestamp"):
            shown[time_name(name)] = iso_of_ms(value)
    return shown
