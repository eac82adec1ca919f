"""Table values as text, formatted by the kind of their column.

Defines the format of numbers, times and sizes. The page and the terminal show the same text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kafka_msgs.report.model import Kind, Table
from kafka_msgs.report.scales import time_text

__all__ = ["cell", "kind_of", "kinds_of", "sort_key"]

_NAMES_SOMETHING: Final = re.compile(r"(Port|Id|Key|code|version|[Ee]poch|[Pp]artition|connection|broker|leader)$")
"""Columns whose numbers are identifiers, which have no thousands separators."""
_SIZES: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_STEP: Final = 1024
_MILLIS: Final = 1000
_TIMES: Final = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def kinds_of(table: Table) -> tuple[Kind, ...]:
    """Return the kinds of all columns of a table, in order."""
    values = zip(*table.rows, strict=True) if table.rows else ((),) * len(table.columns)
    return tuple(
        table.kinds.get(column) or kind_of(column, each) for column, each in zip(table.columns, values, strict=True)
    )


def kind_of(column: str, values: Iterable[Any]) -> Kind:
    """Return the kind of a column without an explicit kind, derived from its name and its first value."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, bool):
        return "flag"
    if isinstance(first, int | float):
        return "name" if _NAMES_SOMETHING.search(column) else "number"
    return "text"


def cell(value: Any, kind: Kind = "text") -> str:
    """Return the text of a value in a report, empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(cell(each, kind) for each in value)
    return _TEXTS.get(kind, _plain)(value) if isinstance(value, int | float) else str(value)


def sort_key(value: Any, kind: Kind) -> str | None:
    """Return the sort key of a cell, or None if its text sorts like the value."""
    if kind == "text" or not isinstance(value, int | float):
        return None
    return repr(value + 0).replace("inf", "Infinity")


def _plain(value: float) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"


def _time(value: float) -> str:
    text = time_text(value)
    return f"{text} ms" if text == str(value) else text


def _size(value: float) -> str:
    if abs(value) < _STEP:
        return f"{value:.4g} B"
    power = min((int(abs(value)).bit_length() - 1) // 10, len(_SIZES) - 1)
    return f"{value / _STEP**power:,.2f} {_SIZES[power]}"


def _seconds(value: float) -> str:
    """Return a duration in its two largest units."""
    sign, rest = "-" * (value < 0), abs(value)
    if 0 < rest < 1:
        return f"{value * _MILLIS:.4g} ms"
    if not rest < float("inf") or rest < _TIMES[2][0]:
        return f"{value:.4g} s"
    place = next(number for number, (unit, _) in enumerate(_TIMES) if rest >= unit)
    (large, large_name), (small, small_name) = _TIMES[place : place + 2]
    return f"{sign}{rest // large:,.0f} {large_name} {rest % large // small:.0f} {small_name}"


_TEXTS: Final[Mapping[Kind, Callable[[Any], str]]] = {
    "name": str,
    "time": _time,
    "bytes": _size,
    "seconds": _seconds,
}
