"""Conversion of rows to tables and metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, TypeAlias

from kafka_msgs.report.metric_definitions import DEFINITIONS
from kafka_msgs.report.model import BarPlot, Kind, Metric, Sample, Section, Table, metric

__all__ = [
    "SHOWN",
    "Row",
    "Rows",
    "bars",
    "first_rows",
    "grouped",
    "largest_first",
    "metrics_of",
    "subset_note",
    "table_from",
]  # fmt: skip

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Sequence[Row]
_NAMES: Final[Mapping[Kind, str]] = {
    "number": """answered assigned connections consumedPerHour errors exchanges fewest hosts idle lag leaders measured
        members most partitions preferred problems producedPerHour recordSkew records replicas segments skew throttled
        trendPerHour unknown variation""",
    "name": "broker largestPartition partition version",
    "flag": "active",
    "time": "at historySince newest oldest partitionTime unreadSince",
    "seconds": """behindSeconds catchUpSeconds lagSeconds latency max overdueSeconds p50 p90 p99 retentionSeconds
        spanSeconds throttle""",
    "bytes": """bytes bytesPerDay largestBytes leaderBytes overdueBytes preferredBytes replicaBytes requestSize
        responseSize retention.bytes""",
}
_KINDS: Final = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""The kinds of columns with any values, which may all be missing. Other columns have the kind of their values."""
SHOWN: Final = 500
"""The number of rows of a table that a page shows."""
_FIRST: Final = 50
"""The number of rows of a table that has more rows elsewhere."""


def grouped(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows grouped by the values of columns, in input order."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[column] for column in columns), []).append(row)
    return found


def largest_first(rows: Iterable[Row], column: str, *then: str) -> list[Row]:
    """Return rows sorted by a number, the largest first and missing numbers last, then by the text of other columns."""

    def key(row: Row) -> tuple[Any, ...]:
        value = row.get(column)
        return (value is None, -(value or 0), *(_text_key(row.get(each)) for each in then))

    return sorted(rows, key=key)


def _text_key(value: Any) -> tuple[bool, float, str]:
    return (True, 0, str(value)) if not isinstance(value, int | float) else (False, value, "")


def table_from(title: str, rows: Rows, columns: Sequence[str], note: str = "", total: int | None = None) -> Table:
    """Return a table of rows. ``total`` is the total number of rows, if ``rows`` is only a subset."""
    shown = tuple(tuple(row.get(column) for column in columns) for row in rows[:SHOWN])
    known = {column: _KINDS[column] for column in columns if column in _KINDS}
    return Table(title, tuple(columns), shown, note, kinds=known, total=max(total or 0, len(rows)))


def first_rows(
    title: str, columns: Sequence[str], rows: Rows, total: int | None = None, *, most: int = _FIRST, **kinds: Kind
) -> Table:
    """Return a table of the first ``most`` rows, as an extract of ``total`` rows, by default of all ``rows``.

    ``kinds`` are the kinds of columns that cannot be derived from their values.
    """
    shown = tuple(tuple(row[column] for column in columns) for row in rows[:most])
    return Table(title, tuple(columns), shown, kinds=kinds, total=len(rows) if total is None else total)


def bars(
    title: str,
    file: str,
    rows: Rows,
    label: Callable[[Row], str],
    series: Mapping[str, str],
    unit: str,
    *,
    most: int,
    which: str = "",
    least: float | None = None,
) -> list[Section]:
    """Return a plot of the first ``most`` rows, or no plot without rows. ``series`` maps names to columns.

    ``which`` describes the shown rows, if there are as many. With ``least``, the smallest shown value, the axis is
    logarithmic: such an axis has no 0.
    """
    shown = rows[:most]
    values = {
        name: [
            value if least is None or value is None else max(value, least) for value in map(itemgetter(column), shown)
        ]
        for name, column in series.items()
    }
    plot = BarPlot(
        title=title,
        file=file,
        labels=list(map(label, shown)),
        series=values,
        unit=unit,
        log=least is not None,
        note=f"the {most} {which}" if which and len(shown) == most else "",
    )
    return [plot] if shown else []


def subset_note(rows: Rows, total: int | None, which: str, note: str = "") -> str:
    """Return a note that statistics are based on a subset of the rows; ``which`` describes the subset."""
    some = f"out of {len(rows):,} of {total:,} rows, those with {which}" if (total or 0) > len(rows) else ""
    return "; ".join(filter(None, (some, note)))


def metrics_of(rows: Rows, columns: Mapping[str, str], **labels: str) -> tuple[Metric, ...]:
    """Return metrics by name, each with a sample for each row that has a value in its column.

    ``labels`` maps label names to columns; by default these have the name of the label. All metrics must have the same
    labels, which the metrics of a row share. Labels that none of the rows has are omitted.
    """
    (names,) = {DEFINITIONS[name].labels for name in columns}
    sources = {label: labels.get(label, label) for label in names}
    present = {label: column for label, column in sources.items() if any(column in row for row in rows)}
    known = [
        {label: "" if row.get(each) is None else str(row[each]) for label, each in present.items()} for row in rows
    ]
    return tuple(metric(name, _samples(rows, column, known)) for name, column in columns.items())


def _samples(rows: Rows, column: str, labels: Sequence[Mapping[str, str]]) -> Iterator[Sample]:
    for row, each in zip(rows, labels, strict=True):
        if (value := row.get(column)) is not None:
            yield Sample(each, value)
