"""Conversion of DataFrames to report tables, with a limit on the rows that are fetched from Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_msgs.report import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["ROWS", "report_table"]

ROWS: Final = 50
"""The default number of rows that a report shows of a table."""


def report_table(rows: DataFrame, title: str, limit: int = ROWS) -> Table:
    """Return a table of the first ``limit`` rows of a DataFrame and the total row count; runs two Spark jobs."""
    total = rows.count()
    shown = tuple(tuple(row) for row in rows.take(limit))
    note = f"{len(shown):,} of {total:,} rows" if total > len(shown) else ""
    return Table(title, tuple(rows.columns), shown, note)
