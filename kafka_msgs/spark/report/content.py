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

__all__ = ["ROWS", "Bars", "Lines", "Report", "Section", "Table", "table_of", "time_of"]

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
    """Return milliseconds since the epoch as a text in UTC, whatever the session's zone, under the same name."""
    in_utc = F.to_utc_timestamp(F.timestamp_millis(column), F.current_timezone())
    return F.date_format(in_utc, "yyyy-MM-dd HH:mm:ss").alias(column)


def table_of(rows: DataFrame, title: str, limit: int = ROWS) -> Table:
    """Return the first ``limit`` rows of a DataFrame, and how many there are; runs two Spark jobs."""
    total = rows.count()
    shown = tuple(tuple(row) for row in rows.take(limit))
    note = f"{len(shown):,} of {total:,} rows" if total > len(shown) else ""
    return Table(title, tuple(rows.columns), shown, note)
