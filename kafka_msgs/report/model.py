"""The structure of a report: tables, plots, facts and metrics, as plain data.

``html_page`` and ``plots`` render it. The callers compute the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from attrs import field, frozen

from kafka_msgs.report.metric_definitions import DEFINITIONS, MetricType

__all__ = [
    "BarPlot",
    "Kind",
    "LinePlot",
    "Metric",
    "Report",
    "ReportPart",
    "Sample",
    "Section",
    "Table",
    "by_hour",
    "metric",
    "report_of",
]

_HOUR_MS: Final = 3_600_000

Kind: TypeAlias = Literal["text", "number", "name", "flag", "time", "seconds", "bytes"]
"""The kind of values in a column.

``number`` is a count or a measurement, ``name`` is a number that identifies something, such as a partition. ``time`` is
in milliseconds since the epoch, ``seconds`` is a duration, ``bytes`` a size.
"""


@frozen
class Table:
    """Rows with column names; ``note`` is a remark for the reader.

    ``total`` is the total number of rows, if ``rows`` is only a subset. ``kinds`` maps column names to kinds. Other
    kinds are derived from the values and the name of the column.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""
    kinds: Mapping[str, Kind] = field(factory=dict, kw_only=True)
    total: int | None = field(default=None, kw_only=True)

    @property
    def note_text(self) -> str:
        """The number of displayed and total rows if these differ, and the note."""
        left = f"{len(self.rows):,} of {self.total:,} rows" if (self.total or 0) > len(self.rows) else ""
        return "; ".join(filter(None, (left, self.note)))


@frozen(kw_only=True)
class BarPlot:
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
class LinePlot:
    """A line for each series over time, drawn into the PNG ``file``.

    ``x`` is in milliseconds since the epoch; a value of None leaves a gap.
    """

    title: str
    file: str
    x: Sequence[int]
    series: Mapping[str, Sequence[float | None]]
    unit: str = ""
    note: str = ""


def by_hour(title: str, file: str, unit: str, names: Sequence[str], counts: Mapping[int, Sequence[int]]) -> LinePlot:
    """Return a line for each name. ``counts`` maps hours (milliseconds since the epoch) to one number for each name.

    Hours that are not in ``counts`` have the number 0. Of consecutive such hours only the first and the last are drawn,
    to limit the number of points.
    """
    hours = set(counts)
    earliest, latest = min(hours, default=0), max(hours, default=0)
    hours |= {hour + _HOUR_MS for hour in counts if hour < latest}
    hours |= {hour - _HOUR_MS for hour in counts if hour > earliest}
    none = (0,) * len(names)
    points = [(hour, counts.get(hour, none)) for hour in sorted(hours)]
    series = {name: [numbers[place] for _, numbers in points] for place, name in enumerate(names)}
    return LinePlot(title=title, file=file, x=[hour for hour, _ in points], series=series, unit=unit)


Section: TypeAlias = Table | BarPlot | LinePlot


@frozen
class Sample:
    """One value of a metric, and its labels."""

    labels: Mapping[str, str]
    value: float


@frozen(kw_only=True)
class Metric:
    """A metric for a monitoring system: its ``name`` with the unit as its suffix, and its values by labels."""

    name: str
    help: str
    samples: tuple[Sample, ...]
    type: MetricType = "gauge"


def metric(name: str, samples: Iterable[Sample]) -> Metric:
    """Return the metric with this name in ``DEFINITIONS``."""
    definition = DEFINITIONS[name]
    return Metric(name=name, help=definition.help, samples=tuple(samples), type=definition.type)


@frozen
class ReportPart:
    """A part of a report: sections, and the corresponding metrics for a monitoring system."""

    sections: tuple[Section, ...] = ()
    metrics: tuple[Metric, ...] = ()


@frozen
class Report:
    """A report: its title, its sections in order, and ``facts`` about the run, such as its inputs and time.

    ``metrics`` are the metrics for a monitoring system. Empty sections are omitted.
    """

    title: str
    sections: tuple[Section, ...]
    facts: Mapping[str, str] = field(factory=dict)
    metrics: tuple[Metric, ...] = ()


def report_of(title: str, parts: Iterable[Section | ReportPart]) -> Report:
    """Return the report with these parts and sections, in order."""
    whole = [each if isinstance(each, ReportPart) else ReportPart((each,)) for each in parts]
    return Report(
        title,
        tuple(section for each in whole for section in each.sections),
        metrics=tuple(metric for each in whole for metric in each.metrics),
    )
