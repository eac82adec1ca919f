"""The plots of a report as SVG, in the page and as separate files.

Defines the layout. The markup is in the template ``plot.svg.j2``. Bars have their values next to them, and bars and
dots have tooltips.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import cycle, groupby
from typing import Final, TypeAlias

from attrs import frozen

from kafka_msgs.report.model import BarPlot, LinePlot
from kafka_msgs.report.scales import AxisScale, linear, logarithmic, number_text, time_text, times
from kafka_msgs.report.svg_shapes import Bar, Dot, Drawing, Polyline, Rule, Text, plain, shortened, width_of
from kafka_msgs.report.templates import environment

__all__ = ["render_svg"]

_WIDTH: Final = 880
_EDGE: Final = 10
_GAP: Final = 7
"""The distance between an axis or a bar and the text next to it."""
_ROW: Final = 22
_THICK: Final = 20
_BETWEEN: Final = 9
"""The height of a row, the height of its bar, and the distance between the rows of two labels."""
_LINES: Final = 280
"""The height of a line plot."""
_BASE: Final = 4
"""The distance from the middle of a text down to its baseline."""
_TICK: Final = 17
"""The height of a line of text."""
_DOTTED: Final = 60
"""The maximum number of points for which a line has a dot at each point."""
_COLOURS: Final = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c")
_Series: TypeAlias = Mapping[str, Sequence[float | None]]


def render_svg(plot: BarPlot | LinePlot, *, alone: bool = False) -> str:
    """Return a plot as SVG, as part of a page or ``alone`` as a file. Equal plots give equal text.

    Raises ``MissingExtraError`` without Jinja2.
    """
    if isinstance(plot, LinePlot) and len(set(plot.x)) == 1:
        plot = _at_one_time(plot)
    drawing = _bars(plot) if isinstance(plot, BarPlot) else _lines(plot)
    return environment().get_template("plot.svg.j2").render(drawing=drawing, alone=alone)


def _at_one_time(plot: LinePlot) -> BarPlot:
    """Return a bar plot with a bar for each series, because points at the same time would overlap."""
    time = f"{time_text(plot.x[0])} UTC"
    values = [series[-1] for series in plot.series.values()]
    unit = f"{plot.unit}, {time}" if plot.unit else time
    return BarPlot(title=plot.title, file=plot.file, labels=tuple(plot.series), series={time: values}, unit=unit)


def _known(series: _Series) -> dict[str, list[float | None]]:
    """Return series whose values are numbers or None."""
    return {
        name: [value if value is not None and math.isfinite(value) else None for value in values]
        for name, values in series.items()
    }


def _values(series: _Series) -> list[float]:
    return [value for values in series.values() for value in values if value is not None]


def _bars(plot: BarPlot) -> Drawing:
    """Draw horizontal bars, the first label on top, each with its value. A value of None takes no space."""
    series = {name: values for name, values in _known(plot.series).items() if any(each is not None for each in values)}
    values = _values(series)
    scale = logarithmic(values) if plot.log else linear(values)
    names = [shortened(plain(label)) for label in plot.labels]
    drawing = Drawing(plain(plot.title), _WIDTH)
    left = _EDGE + max(map(width_of, names), default=0) + _GAP
    right = _WIDTH - _EDGE - _GAP - max((width_of(number_text(value)) for value in values), default=0)
    top = _legend(drawing, series) + _BETWEEN
    bottom = _rows(drawing, plot, names, series, top, _Across(scale, left, right))
    _axis_below(drawing, _Across(scale, left, right), top, bottom, plot.unit)
    return drawing


@frozen
class _Across:
    """A scale from left to right, in pixels."""

    scale: AxisScale
    left: float
    right: float

    def at(self, value: float) -> float:
        """Return the position of a value."""
        return round(self.left + self.scale.share(value) * (self.right - self.left), 1)


def _rows(drawing: Drawing, plot: BarPlot, names: Sequence[str], series: _Series, top: float, across: _Across) -> float:
    """Draw the bars of all labels and return their end position."""
    y = top
    for number, (label, name) in enumerate(zip(plot.labels, names, strict=True)):
        there = [(place, each, values[number]) for place, (each, values) in enumerate(series.items())]
        shown = [(place, each, value) for place, each, value in there if value is not None]
        middle = y + max(len(shown), 1) * _ROW / 2
        full = plain(label)
        drawing.texts.append(Text(across.left - _GAP, middle + _BASE, name, "end", full=None if name == full else full))
        for place, each, value in shown:
            said = f"{full}, {plain(each)}" if len(series) > 1 else full
            _bar(drawing, across, y, value, said, _COLOURS[place % len(_COLOURS)])
            y += _ROW
        y += (0 if shown else _ROW) + _BETWEEN
    return y


def _bar(drawing: Drawing, across: _Across, y: float, value: float, label: str, colour: str) -> None:
    start, end = across.at(0), across.at(value)
    low, high = min(start, end), max(start, end)
    text = number_text(value)
    drawing.bars.append(Bar(low, y, round(max(high - low, 1), 1), _THICK, colour, f"{label}: {text}"))
    drawing.texts.append(Text(high + _GAP, y + _THICK / 2 + _BASE, text))


def _axis_below(drawing: Drawing, across: _Across, top: float, bottom: float, unit: str) -> None:
    """Draw a grid with labels on its marks and the unit below them, and set the height of the drawing."""
    lines = 1
    for mark in across.scale.marks:
        x = across.at(mark.value)
        drawing.rules.append(Rule(x, top, x, bottom))
        drawing.texts.append(Text(x, bottom + _TICK, mark.text, "middle"))
        if mark.below:
            lines = 2
            drawing.texts.append(Text(x, bottom + 2 * _TICK, mark.below, "middle"))
    drawing.rules.append(Rule(across.left, bottom, across.right, bottom, strong=True))
    bottom += (lines + 1) * _TICK + _GAP
    drawing.texts.append(Text((across.left + across.right) / 2, bottom, plain(unit), "middle"))
    drawing.height = bottom + _EDGE


def _legend(drawing: Drawing, series: _Series) -> float:
    """Draw the legend if there are several series, and return its end position."""
    x, y = float(_EDGE), 0.0
    if len(series) < 2:
        return y
    for name, colour in zip(series, cycle(_COLOURS), strict=False):
        text = shortened(plain(name))
        wide = _TICK + width_of(text) + 2 * _EDGE
        if x > _EDGE and x + wide > _WIDTH:
            x, y = float(_EDGE), y + _TICK
        drawing.bars.append(Bar(x, y + _GAP, 10, 10, colour))
        drawing.texts.append(Text(x + _TICK, y + _GAP + 5 + _BASE, text, full=None if text == name else plain(name)))
        x += wide
    return y + _TICK + _GAP


def _lines(plot: LinePlot) -> Drawing:
    """Draw a line for each series over time. A value of None leaves a gap."""
    series = _known(plot.series)
    upright = linear(_values(series))
    drawing = Drawing(plain(plot.title), _WIDTH)
    top = _legend(drawing, series) + _TICK
    bottom = top + _LINES
    left = _EDGE + _TICK + max(width_of(mark.text) for mark in upright.marks) + _GAP
    across = _Across(times(plot.x), left, _WIDTH - 4 * _EDGE)

    def height(value: float) -> float:
        return round(bottom - upright.share(value) * _LINES, 1)

    for mark in upright.marks:
        y = height(mark.value)
        drawing.rules.append(Rule(left, y, across.right, y))
        drawing.texts.append(Text(left - _GAP, y + _BASE, mark.text, "end"))
    drawing.texts.append(Text(_EDGE + _BASE, (top + bottom) / 2, plain(plot.unit), "middle", upright=True))
    places = [across.at(each) for each in plot.x]
    for (name, values), colour in zip(series.items(), cycle(_COLOURS), strict=False):
        points = [None if value is None else (x, height(value)) for x, value in zip(places, values, strict=True)]
        for piece in _pieces(points):
            drawing.paths.append(Polyline(tuple(f"{x},{y}" for x, y in piece), colour))
        drawing.dots += _dots(plain(name), plot.x, values, points, colour)
    _axis_below(drawing, across, top, bottom, "UTC")
    return drawing


_Points: TypeAlias = "Sequence[tuple[float, float] | None]"


def _pieces(points: _Points) -> Iterator[list[tuple[float, float]]]:
    """Yield the line segments between gaps, if they have two or more points."""
    for _, run in groupby(points, key=bool):
        piece = [point for point in run if point is not None]
        if len(piece) > 1:
            yield piece


def _dots(name: str, x: Sequence[int], values: Iterable[float | None], points: _Points, colour: str) -> Iterator[Dot]:
    """Yield a dot for each point, or in lines with many points only for isolated points between gaps."""
    around = [None, *points, None]
    for number, (value, point) in enumerate(zip(values, points, strict=True)):
        alone = around[number] is None and around[number + 2] is None
        if value is not None and point is not None and (alone or len(points) <= _DOTTED):
            yield Dot(*point, colour, f"{name}, {time_text(x[number])}: {number_text(value)}")
