"""Reports as files: the tables on a page, and the plots."""

from __future__ import annotations

import re
import sys
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from kafka_msgs import __version__
from kafka_msgs.errors import MissingExtraError
from kafka_msgs.report import Bars, Lines, Report, Table, by_hour, write_report
from kafka_msgs.report.plots import draw, number_text
from kafka_msgs.spark.jobs.job import Job, run
from kafka_msgs.spark.reporting import time_of

TABLE = Table("Lags & more", ("group", "lag", "empty"), (("<b>tea</b>", 1234567, True), ("café", None, 0.5)), "2 of 9")
BARS = Bars(title="Lag", file="lag.png", labels=("tea $1$", "café"), series={"lag": (3, 4), "old": (1, 2)}, unit="x")
LINES = Lines(title="Commits", file="commits.png", x=(0, 3_600_000), series={"tea": (1, None)})


def test_page_shows_values_and_never_runs_them(tmp_path: Path) -> None:
    (page,) = write_report(Report("Offsets <1>", (TABLE,)), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "<title>Offsets &lt;1&gt;</title>" in text
    assert "<h2>Lags &amp; more</h2>" in text
    assert '<td>&lt;b&gt;tea&lt;/b&gt;</td><td class="number">1,234,567</td><td>yes</td>' in text
    assert '<td>café</td><td></td><td class="number">0.50</td>' in text
    assert '<p class="note">2 of 9</p>' in text
    assert "http" not in text


def test_plots_are_drawn_beside_the_page_and_the_same_figures_give_the_same_bytes(tmp_path: Path) -> None:
    drawn = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        files = write_report(Report("Offsets", (BARS, TABLE, LINES)), tmp_path / name)
        assert [file.name for file in files] == ["report.html", "lag.png", "commits.png"]
        drawn.append([file.read_bytes() for file in files])
    assert drawn[0] == drawn[1]
    assert all(image.startswith(b"\x89PNG") for image in drawn[0][1:])


def test_the_page_holds_its_plots_itself(tmp_path: Path) -> None:
    page, *plots = write_report(Report("Offsets", (BARS, LINES)), tmp_path)
    sources = re.findall('<img src="([^"]*)"', page.read_text(encoding="utf-8"))
    assert [b64decode(source.removeprefix("data:image/png;base64,")) for source in sources] == [
        plot.read_bytes() for plot in plots
    ]


def test_the_page_shows_what_was_read(tmp_path: Path) -> None:
    (page,) = write_report(Report("Offsets", (TABLE,), {"input": "/var/<logs>", "made": "today"}), tmp_path)
    head = page.read_text(encoding="utf-8").partition("<h2>")[0]
    assert "<dt>input</dt><dd>/var/&lt;logs&gt;</dd><dt>made</dt><dd>today</dd>" in head


@pytest.mark.parametrize(
    ("value", "text"),
    [(80_000, "80,000"), (123_456_789.0, "123,456,789"), (0, "0"), (2.5, "2.50"), (80_000.4, "80,000")],
)
def test_numbers_of_plots_have_no_exponent(value: float, text: str) -> None:
    assert number_text(value) == text


def test_the_head_of_a_column_is_on_the_side_of_its_values(tmp_path: Path) -> None:
    (page,) = write_report(Report("Offsets", (TABLE,)), tmp_path)
    assert '<th>group</th><th class="number">lag</th>' in page.read_text(encoding="utf-8")


def test_a_number_that_names_something_is_not_grouped_by_thousands(tmp_path: Path) -> None:
    names = ("producerId", "clientPort", "epoch", "topicPartition", "offset", "maxKeySize")
    (page,) = write_report(Report("Offsets", (Table("Numbers", names, ((1234,) * 6,)),)), tmp_path)
    found = re.findall('<td class="number">([^<]*)</td>', page.read_text(encoding="utf-8"))
    assert found == ["1234", "1234", "1234", "1234", "1,234", "1,234"]


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


def test_a_long_text_is_folded_and_a_short_one_is_not(tmp_path: Path) -> None:
    table = Table("Problems", ("time", "problem"), (("2026-11-21 17:00:00", "x " * 40),))
    (page,) = write_report(Report("Offsets", (table,)), tmp_path)
    assert '<td>2026-11-21 17:00:00</td><td class="long">x x' in page.read_text(encoding="utf-8")


def test_a_table_without_rows_is_shown_as_none(tmp_path: Path) -> None:
    (page,) = write_report(Report("Offsets", (Table("Problems", ("file",), ()),)), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert '<h2>Problems</h2>\n<p class="note">none</p>' in text
    assert "<table>" not in text


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


def test_plots_without_matplotlib_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[pipeline\]'"):
        write_report(Report("Offsets", (BARS,)), tmp_path)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_times_in_tables_are_in_utc_whatever_the_zone_of_the_session(spark: SparkSession, zone: str) -> None:
    """One of the moments is, in UTC, at an hour that clocks in New York skip."""
    moments = {
        datetime(2026, 1, 2, 3, 4, 5): "2026-01-02 03:04:05",
        datetime(2026, 3, 8, 2, 30): "2026-03-08 02:30:00",
        datetime(2026, 7, 1, 23, 59, 59, 999_000): "2026-07-01 23:59:59",
        datetime(1969, 12, 31, 23, 59, 59, 999_000): "1969-12-31 23:59:59",
    }
    rows = [(round(each.replace(tzinfo=UTC).timestamp() * 1000),) for each in moments]
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        shown = (
            spark.createDataFrame([*rows, (None,), (2**63 - 1,), (-(2**63) + 1,)], "at bigint")
            .select(time_of("at"))
            .collect()
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert [row["at"] for row in shown] == [*moments.values(), None, None, None]


def test_a_run_shows_what_it_read_when_and_by_which_version(tmp_path: Path) -> None:
    job = Job(name="none", summary="Nothing.", steps=(), report=lambda _: Report("Nothing", (TABLE,)))
    outcome = run(job, {}, str(tmp_path / "out"), facts={"input": "logs", "cluster": "abc"})
    facts = dict(outcome.report.facts)
    assert facts.pop("made").endswith(" UTC")
    assert facts == {"input": "logs", "cluster": "abc", "times": "UTC", "kafka-msgs": __version__}
    assert "<dt>cluster</dt><dd>abc</dd>" in outcome.files[0].read_text(encoding="utf-8")
