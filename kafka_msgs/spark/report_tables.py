"""Conversion of DataFrames to report tables, and to the rows that report parts are built from.

Defines the limit on the rows fetched from Spark for a table. ``kafka_msgs.report`` defines the content of reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.report import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ROWS", "report_table", "rows_of"]

ROWS: Final = 50
"""The default number of rows that a report shows of a table."""
_SERIES: Final = 10_000
"""The number of rows fetched for a part of a report: the first ones in the relevant order."""


def rows_of(frame: DataFrame, limit: int = _SERIES) -> list[dict[str, Any]]:
    """Return the first rows of a DataFrame; runs a Spark job."""
    return [row.asDict(recursive=True) for row in frame.take(limit)]


def report_table(rows: DataFrame, title: str, limit: int = ROWS) -> Table:
    """Return a table of the first ``limit`` rows of a DataFrame and the total row count; runs two Spark jobs."""
    total = rows.count()
    shown = tuple(tuple(row) for row in rows.take(limit))
    note = f"{len(shown):,} of {total:,} rows" if total > len(shown) else ""
    return Table(title, tuple(rows.columns), shown, note)
