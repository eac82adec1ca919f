"""The plots of a report as PNG files.

Owns how they look. Nothing of matplotlib's global state is used, so that any thread may draw.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.spark.report.content import Bars, Lines

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["draw", "number_text"]

_WIDTH: Final = 8.0
_NO_BAR: Final = float("nan")
_AROUND: Final = timedelta(minutes=30)
_WHOLE_FROM: Final = 1000
"""From this number on fractions are not shown."""
_ROW: Final = 0.32
_COLOURS: Final = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c")


def draw(plot: Bars | Lines, path: Path) -> None:
    """Write a plot; raises ``MissingExtraError`` without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        missing = MissingExtraError(feature="a report with plots", extra="pipeline", package="matplotlib")
        raise missing from error
    height = 1.2 + _ROW * len(plot.labels) * len(plot.series) if isinstance(plot, Bars) else 3.6
    figure = Figure(figsize=(_WIDTH, max(height, 2.0)), layout="constrained")
    axes = figure.subplots()
    axes.set_prop_cycle(color=_COLOURS)
    if isinstance(plot, Bars):
        _bars(axes, plot)
    else:
        _lines(axes, plot)
    axes.set_title(plot.title, fontsize=10, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    if len(plot.series) > 1:
        axes.legend(fontsize=8, frameon=False)
    # Neither the time nor the version goes into the file: the same figures give the same bytes.
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _bars(axes: Axes, plot: Bars) -> None:
    """Draw horizontal bars, the first label on top, each with its value."""
    thick = 0.8 / len(plot.series)
    for number, (name, values) in enumerate(plot.series.items()):
        places = [at + thick * (number - (len(plot.series) - 1) / 2) for at in range(len(plot.labels))]
        widths: Any = [_NO_BAR if value is None else value for value in values]
        bars = axes.barh(places, widths, thick * 0.92, label=name)
        axes.bar_label(bars, ["" if value is None else number_text(value) for value in values], padding=3, fontsize=8)
    axes.set_yticks(range(len(plot.labels)), _plain(plot.labels), fontsize=9)
    axes.invert_yaxis()
    if plot.log:
        axes.set_xscale("log")
    axes.margins(x=0.12)
    _numbers(axes.xaxis, plot)
    axes.set_xlabel(plot.unit, fontsize=9)


def _lines(axes: Axes, plot: Lines) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    times: Any = [datetime.fromtimestamp(each / 1000, UTC) for each in plot.x]
    for name, values in plot.series.items():
        known: Any = [float("nan") if value is None else value for value in values]
        axes.plot(times, known, marker="o", markersize=3, linewidth=1.4, label=_plain([name])[0])
    locator = AutoDateLocator(minticks=3, maxticks=8)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    if len(set(plot.x)) == 1:
        # Around a single point the axis would reach over years.
        axes.set_xlim(times[0] - _AROUND, times[0] + _AROUND)
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
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    values = [value for series in plot.series.values() for value in series if value is not None]
    if not getattr(plot, "log", False) and all(float(value).is_integer() for value in values):
        axis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _plain(labels: Any) -> list[str]:
    """Return labels in which nothing is read as a formula."""
    return [str(label).replace("$", r"\$") for label in labels]
