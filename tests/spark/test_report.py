"""Reports as files: what a page says of its tables, and plots that are drawn."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.spark.report import Bars, Lines, Report, Table, write_report

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


def test_plots_without_matplotlib_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[pipeline\]'"):
        write_report(Report("Offsets", (BARS,)), tmp_path)
