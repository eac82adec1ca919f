"""From DataFrames to the tables of a report, and to the rows that its parts are made of.

Owns the bound on what is fetched from Spark for a table. What a report consists of is left to ``kafka_msgs.report``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.report import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ROWS", "report_table", "rows_of"]

ROWS: Final = 50
"""How many rows of a table a report shows, by default."""
_SERIES: Final = 10_000
"""How many rows are fetched for a part of a report: the first ones in the order that matters."""


def rows_of(frame: DataFrame, limit: int = _SERIES) -> list[dict[str, Any]]:
    """Return the first rows of a DataFrame; runs a Spark job."""
    return [row.asDict(recursive=True) for row in frame.take(limit)]


def report_table(rows: DataFrame, title: str, limit: int = ROWS) -> Table:
    """Return the first ``limit`` rows of a DataFrame, and how many there are; runs two Spark jobs."""
    total = rows.count()
    shown = tuple(tuple(row) for row in rows.take(limit))
    note = f"{len(shown):,} of {total:,} rows" if total > len(shown) else ""
    return Table(title, tuple(rows.columns), shown, note)
