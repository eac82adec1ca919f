"""What a report consists of: tables and plots as plain data.

Owns the bound on what is fetched from Spark for a table. How it looks is left to ``page`` and ``plots``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import field, frozen
from pyspark.sql import functions as F  # noqa: N812

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["ROWS", "Bars", "Lines", "Report", "Section", "Table", "by_hour", "table_of", "time_of"]

_SECOND_MS: Final = 1000
_HOUR_MS: Final = 3_600_000
_MOST_SECONDS: Final = 10**12
ROWS: Final = 50
"""How many rows of a table a report shows, by default."""


@frozen
class Table:
    """Rows under the names of their columns; ``note`` is what the reader has to know, such as how many are shown."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""


@frozen(kw_only=True)
class Bars:
    """A bar for each label and series, drawn into the PNG ``file``; ``log`` makes the axis of values logarithmic.

    A value of None has no bar.
    """

    title: str
    file: str
    labels: Sequence[str]
    series: Mapping[str, Sequence[float | None]]
    unit: str = ""
    log: bool = False
    note: str = ""


@frozen(kw_only=True)
class Lines:
    """A line for each series over time, drawn into the PNG ``file``.

    ``x`` is in milliseconds since the epoch; a value of None leaves a gap.
    """

    title: str
    file: str
    x: Sequence[int]
    series: Mapping[str, Sequence[float | None]]
    unit: str = ""
    note: str = ""


def by_hour(title: str, file: str, unit: str, names: Sequence[str], counts: Mapping[int, Sequence[int]]) -> Lines:
    """Return a line for each name. ``counts`` has one number for each name, by hour (milliseconds since the epoch).

    An hour that is not in ``counts`` has the number 0. Of several such hours the first and the last are drawn, so that
    the number of points is bounded.
    """
    hours = set(counts)
    hours |= {hour + _HOUR_MS for hour in counts if hour < max(counts)}
    hours |= {hour - _HOUR_MS for hour in counts if hour > min(counts)}
    none = (0,) * len(names)
    points = [(hour, counts.get(hour, none)) for hour in sorted(hours)]
    series = {name: [numbers[place] for _, numbers in points] for place, name in enumerate(names)}
    return Lines(title=title, file=file, x=[hour for hour, _ in points], series=series, unit=unit)


Section: TypeAlias = Table | Bars | Lines


@frozen
class Report:
    """A report: its title, its sections in order, and ``facts`` about the run, such as what was read and when.

    Sections that have nothing to show are left out.
    """

    title: str
    sections: tuple[Section, ...]
    facts: Mapping[str, str] = field(factory=dict)


def time_of(column: str) -> Column:
    """Return milliseconds since the epoch as a text in UTC, whatever the session's zone, under the same name.

    The sum is one of timestamps without a zone. With one, an hour that clocks of the session's zone skip has no text.
    It is null for a time that Spark cannot count in seconds (after the year 33,000).
    """
    seconds = F.floor(F.col(column) / _SECOND_MS)
    moment = F.expr("timestamp_ntz'1970-01-01 00:00:00'") + F.make_dt_interval(secs=seconds)
    return F.when(F.abs(seconds) < _MOST_SECONDS, moment.cast("string")).alias(column)


def table_of(rows: DataFrame, title: str, limit: int = ROWS) -> Table:
    """Return the first ``limit`` rows of a DataFrame, and how many there are; runs two Spark jobs."""
    total = rows.count()
    shown = tuple(tuple(row) for row in rows.take(limit))
    note = f"{len(shown):,} of {total:,} rows" if total > len(shown) else ""
    return Table(title, tuple(rows.columns), shown, note)
