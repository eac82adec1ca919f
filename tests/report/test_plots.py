"""The plots of reports."""

from __future__ import annotations

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from kafka_msgs.report import Bars, Lines, by_hour
from kafka_msgs.report.plots import draw, number_text


@pytest.mark.parametrize(
    ("value", "text"),
    [(80_000, "80,000"), (123_456_789.0, "123,456,789"), (0, "0"), (2.5, "2.50"), (80_000.4, "80,000")],
)
def test_numbers_of_plots_have_no_exponent(value: float, text: str) -> None:
    assert number_text(value) == text


def test_hours_without_data_are_zero_and_not_a_slope_between_two_points() -> None:
    hour = 3_600_000
    plot = by_hour("Records", "r.png", "records", ("a", "b"), {5 * hour: (3, 4), 6 * hour: (1, 2), 100 * hour: (7, 0)})
    assert [x // hour for x in plot.x] == [5, 6, 7, 99, 100]
    assert plot.series == {"a": [3, 1, 0, 0, 7], "b": [4, 2, 0, 0, 0]}
    assert list(by_hour("Records", "r.png", "records", ("a",), {hour: (3,)}).x) == [hour]


@pytest.mark.parametrize("lines", [True, False], ids=["lines", "bars"])
def test_every_series_has_its_name_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: bool) -> None:
    """Matplotlib leaves out names that start with an underscore, as the names of internal topics do."""
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    series = {"__transaction_state": (1, 2), "orders": (3, 4)}
    plot = (
        Lines(title="", file="", x=(0, 1), series=series)
        if lines
        else Bars(title="", file="", labels="ab", series=series)
    )
    draw(plot, tmp_path / "p.png")
    (axes,) = drawn[0].axes
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(series)
    colours = (
        [each.get_color() for each in axes.lines] if lines else [each[0].get_facecolor() for each in axes.containers]
    )
    handles = legend.legend_handles
    shown = [each.get_color() if lines else each.get_facecolor() for each in handles if each is not None]
    assert shown == colours


def test_a_bar_that_is_not_there_takes_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    series = {"p50": (1, None, None), "p99": (None, None, None), "max": (3, 4, 5)}
    draw(Bars(title="Latency", file="l.png", labels="abc", series=series), tmp_path / "l.png")
    (axes,) = drawn[0].axes
    middles = [bar.get_y() + bar.get_height() / 2 for bar in axes.patches]
    assert middles == pytest.approx([0, 1, 2.4, 3.8])
    assert [bar.get_width() for bar in axes.patches] == [1, 3, 4, 5]
    assert list(axes.get_yticks()) == pytest.approx([0.5, 2.4, 3.8])
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["p50", "max"]


def test_an_axis_of_whole_numbers_has_whole_ticks_and_one_time_gives_a_bar_for_each_series(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    at = 1_767_225_600_000
    series = {"tea": (3,), "café": (3,)}
    draw(Lines(title="Commits", file="c.png", x=(at,), series=series, unit="commits"), tmp_path / "c.png")
    draw(Bars(title="Lag", file="l.png", labels=("a", "b"), series={"lag": (80_000, None)}), tmp_path / "l.png")
    lines, bars = (figure.axes[0] for figure in drawn)
    assert lines.get_xlabel() == "commits, 2026-01-01 00:00:00 UTC"
    assert [label.get_text() for label in lines.get_yticklabels()] == ["tea", "café"]
    assert [bar.get_width() for bar in lines.patches] == [3, 3]
    assert {float(tick).is_integer() for tick in lines.get_xticks()} == {True}
    labels = [label.get_text() for label in bars.get_xticklabels()]
    assert [float(label.replace(",", "")) for label in labels] == list(bars.get_xticks())
