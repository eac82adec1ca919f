"""Reports as one page with their plots."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_msgs.report import BarPlot, LinePlot, Report, Table, write_report

FILES = ("report.html", "report.json", "report.prom")
TABLE = Table(
    "Lags & more",
    ("group", "lag", "empty", "share"),
    (("<b>tea</b>", 1234567, True, None), ("café", None, None, 0.5)),
    "2 of 9",
)
BARS = BarPlot(title="Lag", file="lag.svg", labels=("tea $1$", "café"), series={"lag": (3, 4), "old": (1, 2)}, unit="x")
LINES = LinePlot(title="Commits", file="commits.svg", x=(0, 3_600_000), series={"tea": (1, None)})


def test_page_shows_values_and_never_runs_them(tmp_path: Path) -> None:
    page, *_ = write_report(Report("Offsets <1>", (TABLE,)), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert "<title>Offsets &lt;1&gt;</title>" in text
    assert "<h2>Lags &amp; more</h2>" in text
    assert (
        '<td>&lt;b&gt;tea&lt;/b&gt;</td><td class="number" data-key="1234567">1,234,567</td><td data-key="1">yes</td>'
        in text
    )
    assert '<td>café</td><td class="number"></td><td></td><td class="number" data-key="0.5">0.50</td>' in text
    assert '<p class="note">2 of 9</p>' in text
    assert "://" not in text


def test_plots_are_drawn_beside_the_page_and_the_same_figures_give_the_same_bytes(tmp_path: Path) -> None:
    drawn = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        files = write_report(Report("Offsets", (BARS, TABLE, LINES)), tmp_path / name)
        assert [file.name for file in files] == [*FILES, "lag.svg", "commits.svg"]
        drawn.append([file.read_bytes() for file in files])
    assert drawn[0] == drawn[1]
    assert all(image.startswith(b'<svg xmlns="http://www.w3.org/2000/svg"') for image in drawn[0][3:])


def test_the_page_holds_its_plots_itself(tmp_path: Path) -> None:
    page, _, _, *plots = write_report(Report("Offsets", (BARS, LINES)), tmp_path)
    shown = re.findall("<svg.*?</svg>", page.read_text(encoding="utf-8"), re.DOTALL)
    shapes = [re.findall("<(?:polyline|circle|text) .*", each) for each in shown]
    assert shapes == [re.findall("<(?:polyline|circle|text) .*", plot.read_text(encoding="utf-8")) for plot in plots]
    assert all(shapes)


def test_the_page_shows_what_was_read(tmp_path: Path) -> None:
    page, *_ = write_report(Report("Offsets", (TABLE,), {"input": "/var/<logs>", "made": "today"}), tmp_path)
    head = page.read_text(encoding="utf-8").partition("<h2>")[0]
    assert "<dt>input</dt><dd>/var/&lt;logs&gt;</dd><dt>made</dt><dd>today</dd>" in head


def test_the_head_of_a_column_is_on_the_side_of_its_values(tmp_path: Path) -> None:
    page, *_ = write_report(Report("Offsets", (TABLE,)), tmp_path)
    heads = re.findall('<th scope="col" (.*?)><button type="button">(.*?)</button>', page.read_text(encoding="utf-8"))
    assert heads == [
        ('data-kind="text"', "group"),
        ('data-kind="number" class="number"', "lag"),
        ('data-kind="flag"', "empty"),
        ('data-kind="number" class="number"', "share"),
    ]


def test_a_number_that_names_something_is_not_grouped_by_thousands(tmp_path: Path) -> None:
    names = ("producerId", "clientPort", "epoch", "topicPartition", "offset", "maxKeySize")
    page, *_ = write_report(Report("Offsets", (Table("Numbers", names, ((1234,) * 6,)),)), tmp_path)
    found = re.findall('<td class="number" data-key="1234">([^<]*)</td>', page.read_text(encoding="utf-8"))
    assert found == ["1234", "1234", "1234", "1234", "1,234", "1,234"]


def test_a_long_text_is_folded_and_a_short_one_is_not(tmp_path: Path) -> None:
    table = Table("Problems", ("time", "problem"), (("2026-11-21 17:00:00", "x " * 40),))
    page, *_ = write_report(Report("Offsets", (table,)), tmp_path)
    assert '<td>2026-11-21 17:00:00</td><td class="long">x x' in page.read_text(encoding="utf-8")


def test_a_table_without_rows_is_shown_as_none(tmp_path: Path) -> None:
    page, *_ = write_report(Report("Offsets", (Table("Problems", ("file",), ()),)), tmp_path)
    text = page.read_text(encoding="utf-8")
    assert '<h2>Problems</h2>\n<p class="note">none</p>' in text
    assert "<table>" not in text
