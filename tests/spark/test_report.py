"""Reports as files: what a page says of its tables, and plots that are drawn."""

from __future__ import annotations

import re
import sys
from base64 import b64decode
from datetime import UTC, datetime
from pathlib import Path

import pytest
from matplotlib.dates import num2date
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from kafka_msgs import __version__
from kafka_msgs.errors import MissingExtraError
from kafka_msgs.spark.jobs.job import Job, run
from kafka_msgs.spark.report import Bars, Lines, Report, Table, time_of, write_report
from kafka_msgs.spark.report.plots import draw, number_text

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


def test_an_axis_of_whole_numbers_has_whole_ticks_and_one_point_in_time_is_near_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    at = 1_767_225_600_000
    draw(Lines(title="Commits", file="c.png", x=(at,), series={"tea": (3,)}), tmp_path / "c.png")
    draw(Bars(title="Lag", file="l.png", labels=("a", "b"), series={"lag": (80_000, None)}), tmp_path / "l.png")
    lines, bars = (figure.axes[0] for figure in drawn)
    first, last = (num2date(limit).timestamp() * 1000 for limit in lines.get_xlim())
    assert at - 3_600_000 < first < at < last < at + 3_600_000
    assert {float(tick).is_integer() for tick in lines.get_yticks()} == {True}
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
