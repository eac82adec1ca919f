"""The record filters of ``consume``: regular expressions for keys, values and headers, and an expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from kafka_msgs.records import ConsumerRecord, Payload

if TYPE_CHECKING:
    from kafka_msgs.registry.record_filter import RecordFilter

__all__ = ["header_pattern", "pattern", "record_filter"]

Pattern = re.Pattern[bytes]


def pattern(text: str) -> Pattern:
    """Return a click type: a regular expression for bytes."""
    try:
        return re.compile(text.encode())
    except re.error as error:
        raise click.BadParameter(f"{text!r} is not a regular expression: {error}") from None


def header_pattern(text: str) -> tuple[str, Pattern]:
    """Return a click type: the name of a header, and a regular expression for its value; any value without one."""
    name, _, value = text.partition("=")
    return name, pattern(value)


def record_filter(
    keys: Sequence[Pattern],
    values: Sequence[Pattern],
    headers: Sequence[tuple[str, Pattern]],
    selection: RecordFilter | None = None,
) -> Callable[[ConsumerRecord], bool]:
    """Return a function that reports whether a record matches every pattern and the selection.

    Null matches no pattern.
    """

    def matches(record: ConsumerRecord) -> bool:
        return (
            all(_found(pattern, record.key) for pattern in keys)
            and all(_found(pattern, record.value) for pattern in values)
            and all(any(name == n and _found(each, value) for n, value in record.headers) for name, each in headers)
            and (selection is None or selection.matches(record))
        )

    return matches


def _found(wanted: Pattern, data: Payload | None) -> bool:
    return data is not None and wanted.search(data) is not None
