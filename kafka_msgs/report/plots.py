"""The plots of a report as PNG files.

Owns how they look. Nothing of matplotlib's global state is used, so that any thread may draw.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.report.content import Bars, Lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["draw", "number_text"]

_WIDTH: Final = 8.0
_WHOLE_FROM: Final = 1000
"""From this number on fractions are not shown."""
_ROW: Final = 0.26
"""The height of a bar in inches."""
_THICK: Final = 0.92
_BETWEEN: Final = 0.4
"""The room between the bars of two labels, in bars."""
_COLOURS: Final = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c")


def draw(plot: Bars | Lines, path: Path) -> None:
    """Write a plot; raises ``MissingExtraError`` without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        missing = MissingExtraError(feature="a report with plots", extra="report", package="matplotlib")
        raise missing from error
    if isinstance(plot, Lines) and len(set(plot.x)) == 1:
        plot = _at_one_time(plot)
    if isinstance(plot, Bars):
        known = {name: values for name, values in plot.series.items() if any(each is not None for each in values)}
        plot = evolve(plot, series=known)
    height = 1.2 + _ROW * _rows(plot) if isinstance(plot, Bars) else 3.6
    figure = Figure(figsize=(_WIDTH, max(height, 2.0)), layout="constrained")
    axes = figure.subplots()
    axes.set_prop_cycle(color=_COLOURS)
    if isinstance(plot, Bars):
        _bars(axes, plot)
    else:
        _lines(axes, plot)
    axes.spines[["top", "right"]].set_visible(False)
    if len(plot.series) > 1:
        _legend(axes, plot)
    # Neither the time nor the version goes into the file: the same figures give the same bytes.
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _legend(axes: Axes, plot: Bars | Lines) -> None:
    """Name the series. The names are set afterwards: matplotlib leaves out a name that starts with an underscore."""
    handles: Any = axes.containers if isinstance(plot, Bars) else axes.lines
    legend = axes.legend(handles, list(map(str, range(len(plot.series)))), fontsize=8, frameon=False)
    for text, name in zip(legend.get_texts(), _plain(plot.series), strict=True):
        text.set_text(name)


def _bars(axes: Axes, plot: Bars) -> None:
    """Draw horizontal bars, the first label on top, each with its value. A value of None takes no room."""
    ticks, places = _places(plot)
    for name, values in plot.series.items():
        shown: Any = [value for value in values if value is not None]
        bars = axes.barh(places[name], shown, _THICK)
        axes.bar_label(bars, [number_text(value) for value in shown], padding=3, fontsize=8)
    axes.set_yticks(ticks, _plain(plot.labels), fontsize=9)
    axes.invert_yaxis()
    if plot.log:
        axes.set_xscale("log")
    axes.margins(x=0.12)
    _numbers(axes.xaxis, plot)
    axes.set_xlabel(plot.unit, fontsize=9)


def _rows(plot: Bars) -> float:
    """Return the height of all bars and of the room between them, in bars."""
    bars = sum(value is not None for values in plot.series.values() for value in values)
    return bars + _BETWEEN * len(plot.labels)


def _places(plot: Bars) -> tuple[list[float], dict[str, list[float]]]:
    """Return the place of each label, and those of the bars of each series."""
    ticks, places, at = [], {name: list[float]() for name in plot.series}, 0.0
    for number in range(len(plot.labels)):
        there = [name for name, values in plot.series.items() if values[number] is not None]
        for place, name in enumerate(there):
            places[name].append(at + place)
        ticks.append(at + max(len(there) - 1, 0) / 2)
        at += max(len(there), 1) + _BETWEEN
    return ticks, places


def _at_one_time(plot: Lines) -> Bars:
    """Return a bar for each series. Points at one time would cover each other."""
    time = datetime.fromtimestamp(plot.x[0] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    values = [series[-1] for series in plot.series.values()]
    unit = f"{plot.unit}, {time}" if plot.unit else time
    return Bars(title=plot.title, file=plot.file, labels=tuple(plot.series), series={time: values}, unit=unit)


def _lines(axes: Axes, plot: Lines) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    times: Any = [datetime.fromtimestamp(each / 1000, UTC) for each in plot.x]
    for values in plot.series.values():
        known: Any = [float("nan") if value is None else value for value in values]
        axes.plot(times, known, marker="o", markersize=3, linewidth=1.4)
    locator = AutoDateLocator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    axes.tick_params(labelsize=9)
    axes.set_ylim(bottom=0)
    _numbers(axes.yaxis, plot)
    axes.set_xlabel("UTC", fontsize=9)
    axes.set_ylabel(plot.unit, fontsize=9)


def number_text(value: float) -> str:
    """Return a number as a table shows it: whole where it is whole, grouped by thousands, never with an exponent."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= _WHOLE_FROM else f"{value:,.2f}"


def _numbers(axis: Axis, plot: Bars | Lines) -> None:
    """Label an axis of values as tables write them, and at whole numbers only where all values are whole."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    axis.set_minor_formatter(NullFormatter())
    values = [value for series in plot.series.values() for value in series if value is not None]
    if not getattr(plot, "log", False) and all(float(value).is_integer() for value in values):
        axis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _plain(labels: Any) -> list[str]:
    """Return labels in which nothing is read as a formula."""
    return [str(label).replace("$", r"\$") for label in labels]
