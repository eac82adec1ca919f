"""The plots of reports."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final
from xml.etree import ElementTree

import pytest

from kafka_msgs.report import BarPlot, LinePlot, by_hour
from kafka_msgs.report.plots import render_svg
from kafka_msgs.report.scales import linear, logarithmic, number_text, times

SPACE: Final = "{http://www.w3.org/2000/svg}"
HOUR: Final = 3_600_000
AT: Final = 1_767_225_600_000


def drawn(plot: BarPlot | LinePlot) -> ElementTree.Element:
    return ElementTree.fromstring(render_svg(plot, alone=True))


def texts(svg: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in svg.iter(f"{SPACE}text")]


def shapes(svg: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """Return the shapes that represent values: those that have a title."""
    return [each for each in svg.iter(f"{SPACE}{name}") if each.find(f"{SPACE}title") is not None]


def about(shape: ElementTree.Element) -> str:
    return shape.findtext(f"{SPACE}title", "")


@pytest.mark.parametrize(
    ("value", "text"),
    [(80_000, "80,000"), (123_456_789.0, "123,456,789"), (0, "0"), (2.5, "2.50"), (80_000.4, "80,000")],
)
def test_numbers_of_plots_have_no_exponent(value: float, text: str) -> None:
    assert number_text(value) == text


def test_hours_without_data_are_zero_and_not_a_slope_between_two_points() -> None:
    counts = {5 * HOUR: (3, 4), 6 * HOUR: (1, 2), 100 * HOUR: (7, 0)}
    plot = by_hour("Records", "r.svg", "records", ("a", "b"), counts)
    assert [x // HOUR for x in plot.x] == [5, 6, 7, 99, 100]
    assert plot.series == {"a": [3, 1, 0, 0, 7], "b": [4, 2, 0, 0, 0]}
    assert list(by_hour("Records", "r.svg", "records", ("a",), {HOUR: (3,)}).x) == [HOUR]


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ((3, 80_000), ["0", "20,000", "40,000", "60,000", "80,000"]),
        ((1, 2), ["0", "1", "2"]),
        ((0, 0), ["0", "1"]),
        ((), ["0", "1"]),
        ((-20, 35), ["-20", "-10", "0", "10", "20", "30"]),
        ((0.5, 1.25), ["0.0", "0.5", "1.0"]),
        ((0.001, 0.004), ["0.000", "0.001", "0.002", "0.003", "0.004"]),
    ],
)
def test_an_axis_has_marks_at_round_numbers_and_at_whole_ones_where_all_values_are_whole(
    values: tuple[float, ...], marks: list[str]
) -> None:
    scale = linear(values)
    assert [mark.text for mark in scale.marks] == marks
    assert scale.low <= min(values, default=0) <= max(values, default=0) <= scale.high


def test_a_logarithmic_axis_has_marks_at_powers_of_ten_and_shows_nothing_as_nothing() -> None:
    scale = logarithmic((3, 40_000))
    assert [mark.text for mark in scale.marks] == ["1", "10", "100", "1,000", "10,000", "100,000"]
    assert scale.share(0) == 0 < scale.share(1) < scale.share(3)
    assert scale.share(100) - scale.share(10) == pytest.approx(scale.share(1000) - scale.share(100))


@pytest.mark.parametrize(
    ("span", "marks"),
    [
        (20, [("00:00:00", "2026-01-01"), ("00:00:05", ""), ("00:00:10", ""), ("00:00:15", ""), ("00:00:20", "")]),
        (36 * 3600, [*zip(("00:00", "06:00", "12:00", "18:00"), ("2026-01-01", "", "", ""), strict=True),
                     ("00:00", "2026-01-02"), ("06:00", ""), ("12:00", "")]),
        (3 * 86_400, [("00:00", "2026-01-01"), ("12:00", ""), ("00:00", "2026-01-02"), ("12:00", ""),
                      ("00:00", "2026-01-03"), ("12:00", ""), ("00:00", "2026-01-04")]),
        (12 * 86_400, [(f"2026-01-{day:02}", "") for day in range(1, 14, 2)]),
    ],
)  # fmt: skip
def test_an_axis_of_times_says_the_day_where_it_changes(span: int, marks: list[tuple[str, str]]) -> None:
    assert [(mark.text, mark.below) for mark in times((AT, AT + span * 1000)).marks] == marks


def test_times_that_no_calendar_has_are_numbers() -> None:
    last = 2**63 - 1
    plot = LinePlot(title="Records", file="r.svg", x=(-1, last), series={"a": (1, 2)})
    assert about(shapes(drawn(plot), "circle")[1]) == f"a, {last}: 2"


@pytest.mark.parametrize("lines", [True, False], ids=["lines", "bars"])
def test_every_series_has_its_name_and_colour_in_the_legend(lines: bool) -> None:
    series = {"__transaction_state": (1, 2), "orders": (3, 4)}
    plot = (
        LinePlot(title="", file="", x=(0, 1), series=series)
        if lines
        else BarPlot(title="", file="", labels="ab", series=series)
    )
    svg = drawn(plot)
    keys = [each for each in svg.iter(f"{SPACE}rect") if each.get("height") == "10"]
    assert texts(svg)[:2] == list(series)
    valued = list(svg.iter(f"{SPACE}polyline")) if lines else shapes(svg, "rect")[:2]
    assert [each.get("stroke" if lines else "fill") for each in valued] == [key.get("fill") for key in keys]


def test_a_bar_that_is_not_there_takes_no_room() -> None:
    series = {"p50": (1, None, None), "p99": (None, None, None), "max": (3, 4, 5)}
    svg = drawn(BarPlot(title="Latency", file="l.svg", labels="abc", series=series))
    bars = shapes(svg, "rect")
    assert [about(bar) for bar in bars] == ["a, p50: 1", "a, max: 3", "b, max: 4", "c, max: 5"]
    widths = [float(bar.get("width", 0)) for bar in bars]
    assert [width / widths[0] for width in widths] == pytest.approx([1, 3, 4, 5], rel=1e-2)
    rows = [float(bar.get("y", 0)) for bar in bars]
    steps = [after - before for before, after in pairwise(rows)]
    assert steps[0] < steps[1] == steps[2]
    assert texts(svg)[:2] == ["p50", "max"]


def test_one_time_gives_a_bar_for_each_series() -> None:
    plot = LinePlot(title="Commits", file="c.svg", x=(AT,), series={"tea": (3,), "café": (3,)}, unit="commits")
    svg = drawn(plot)
    assert [about(bar) for bar in shapes(svg, "rect")] == ["tea: 3", "café: 3"]
    assert texts(svg)[-1] == "commits, 2026-01-01 00:00:00 UTC"


def test_a_gap_parts_a_line_and_a_point_between_gaps_is_seen() -> None:
    values = (1, 2, None, 3, None, *range(100))
    plot = LinePlot(title="Records", file="r.svg", x=range(len(values)), series={"a": values})
    svg = drawn(plot)
    assert [len((line.get("points") or "").split()) for line in svg.iter(f"{SPACE}polyline")] == [2, 100]
    assert [about(dot).rpartition(" ")[2] for dot in shapes(svg, "circle")] == ["3"]


def test_a_long_label_is_shortened_and_whole_where_it_is_pointed_at() -> None:
    name = "group-" * 20
    svg = drawn(BarPlot(title="Lag", file="l.svg", labels=(name,), series={"lag": (1,)}))
    (label, *_) = svg.iter(f"{SPACE}text")
    assert (label.text or "").endswith("…")
    assert about(label) == name


@pytest.mark.parametrize("text", ["<script>", "a\0b\x1b[1m", "\ud800", "\ufffe", 'a"b&c', "line\nfeed"])
def test_any_text_gives_xml_that_can_be_read(text: str) -> None:
    plot = BarPlot(title=text, file="l.svg", labels=(text,), series={text: (1,)}, unit=text)
    written = render_svg(plot, alone=True).encode("utf-8", "backslashreplace")
    shown = texts(ElementTree.fromstring(written))[0]
    letters = re.compile(r"[^\w<>&\"]+")
    assert letters.sub("", shown) == letters.sub("", text.encode("utf-8", "backslashreplace").decode())


def test_values_that_are_not_finite_have_no_bar() -> None:
    plot = BarPlot(title="", file="", labels="abc", series={"a": (float("nan"), float("inf"), 1)})
    assert [about(bar) for bar in shapes(drawn(plot), "rect")] == ["c: 1"]


def test_a_plot_without_values_is_still_one() -> None:
    assert texts(drawn(BarPlot(title="", file="", labels="a", series={"lag": (None,)}, unit="x"))) == [
        "a",
        "0",
        "1",
        "x",
    ]
    assert not shapes(drawn(LinePlot(title="", file="", x=(0, 1), series={"a": (None, None)})), "circle")
    assert texts(drawn(LinePlot(title="", file="", x=(), series={"a": ()}, unit="x")))[-1] == "UTC"
