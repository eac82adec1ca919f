"""A report as a page, as JSON and as metrics: the same content, for any text and numbers."""

from __future__ import annotations

import html
import json
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from prometheus_client.parser import text_string_to_metric_families

from kafka_msgs.errors import MissingExtraError
from kafka_msgs.report import BarPlot, LinePlot, Metric, Report, Sample, Table, write_report
from kafka_msgs.report.cells import cell
from kafka_msgs.report.html_page import render_page
from kafka_msgs.report.json_report import to_dict, to_json
from kafka_msgs.report.model import Kind
from kafka_msgs.report.prometheus import exposition
from kafka_msgs.report.templates import environment

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "back\\slash \"quote\" 'apostrophe'",
    "line\nfeed\r\nand\ttab",
    "café ☕ \u202e\u2028",
    "]]>&amp;<!--",
    "# HELP not_a_metric\nnot_a_metric 1",
    "",
)
AT = 1_767_225_600_000
ROWS = tuple((text, number, AT, 1.5, 2048, True, [1, 2]) for number, text in enumerate(HOSTILE))
COLUMNS = ("text", "number", "at", "waits", "size", "flag", "list")
KINDS: dict[str, Kind] = {"at": "time", "waits": "seconds", "size": "bytes"}
REPORT = Report(
    "Hostile <b>texts</b>",
    (
        Table("Texts & more", COLUMNS, ROWS, 'of "all"', kinds=KINDS),
        BarPlot(title="Bars", file="bars.svg", labels=HOSTILE, series={"<lag>": range(len(HOSTILE))}, unit="records"),
        LinePlot(title="Lines", file="lines.svg", x=(AT, AT + 1000), series={"a": (1, None)}, note="<i>"),
        Table("Nothing", ("a",), ()),
    ),
    {"input": HOSTILE[0], "kafka-msgs": "1"},
    (
        Metric(
            name="kafka_msgs_lag_records",
            help="How many.\nA backslash: \\",
            samples=tuple(Sample({"group": text, "partition": "0"}, number) for number, text in enumerate(HOSTILE)),
        ),
        Metric(name="kafka_msgs_nothing", help="None.", samples=()),
    ),
)


def page() -> str:
    return render_page(REPORT, exposition(REPORT))


def parsed(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


class Tags(HTMLParser):
    """Collects the tags of a page, and their attribute names."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_no_text_of_a_report_becomes_markup() -> None:
    text = page()
    assert [html.unescape(each) for each in re.findall("<tr><td>(.*?)</td><td", text, re.DOTALL)] == list(HOSTILE)
    found, harmless = Tags(), Tags()
    found.feed(text)
    tame = Table("Texts", COLUMNS, (("a", *ROWS[0][1:]),), "note", kinds=KINDS)
    rest = evolve(REPORT, title="a", sections=(tame, *REPORT.sections[1:]), facts={"a": "b"}, metrics=())
    harmless.feed(render_page(rest, "a"))
    assert found.tags == harmless.tags
    assert found.attributes == harmless.attributes


def test_a_page_fetches_nothing_and_runs_only_its_own_script() -> None:
    text = page()
    assert re.findall(r"""(?:src|href)="(?!#section-[0-9]+")""", text) == []
    assert "@import" not in text
    assert "url(" not in text
    assert "default-src &#39;none&#39;" in text or "default-src 'none'" in text


def test_columns_say_how_they_are_sorted_and_a_keyboard_reaches_them() -> None:
    text = page()
    kinds = re.findall('<th scope="col" data-kind="([a-z]+)"[^>]*><button type="button">([a-z]+)</button></th>', text)
    wanted = ("text", "number", "time", "seconds", "bytes", "flag", "text")
    assert kinds == list(zip(wanted, COLUMNS, strict=True))
    first = text.partition("<tbody>")[2].partition("</tr>")[0]
    assert re.findall('data-key="([^"]*)"', first) == ["0", str(AT), "1.5", "2048", "1"]
    assert f"{datetime.fromtimestamp(AT / 1000, UTC):%Y-%m-%d %H:%M:%S}" in first
    assert 'title="2,048">2.00 KiB</td>' in first


def test_json_holds_all_of_the_report() -> None:
    data = json.loads(to_json(REPORT))
    assert data == to_dict(REPORT)
    assert (data["schema"], data["version"], data["title"]) == ("kafka-msgs-report", 1, REPORT.title)
    assert data["facts"] == REPORT.facts
    table, bars, lines, nothing = data["sections"]
    assert [column["name"] for column in table["columns"]] == list(COLUMNS)
    assert [tuple(row) for row in table["rows"]] == list(ROWS)
    assert (table["title"], table["note"]) == ("Texts & more", 'of "all"')
    assert (bars["labels"], bars["series"]) == (list(HOSTILE), {"<lag>": list(range(len(HOSTILE)))})
    assert (lines["times"], lines["series"], lines["note"]) == ([AT, AT + 1000], {"a": [1, None]}, "<i>")
    assert nothing["rows"] == []
    (lag, _) = data["metrics"]
    assert [each["labels"]["group"] for each in lag["samples"]] == list(HOSTILE)


def test_the_parser_of_prometheus_reads_the_metrics() -> None:
    families = parsed(exposition(REPORT))
    assert set(families) == {"kafka_msgs_report_info", "kafka_msgs_report_rows", "kafka_msgs_lag_records"}
    lag = families["kafka_msgs_lag_records"]
    assert (lag.type, lag.documentation) == ("gauge", "How many.\nA backslash: \\")
    assert [(each.labels["group"], each.value) for each in lag.samples] == [
        (text, number) for number, text in enumerate(HOSTILE)
    ]
    (info,) = families["kafka_msgs_report_info"].samples
    assert info.labels == {"title": REPORT.title, "input": HOSTILE[0], "kafka_msgs": "1"}
    rows = {each.labels["table"]: each.value for each in families["kafka_msgs_report_rows"].samples}
    assert rows == {"Texts & more": len(HOSTILE), "Nothing": 0}


def test_a_collector_can_read_two_reports_with_tables_of_the_same_name() -> None:
    """Prometheus rejects a scrape that repeats a name with the same labels."""
    one, another = (
        {tuple(each.labels.items()) for each in parsed(exposition(report))["kafka_msgs_report_rows"].samples}
        for report in (REPORT, evolve(REPORT, title="Another"))
    )
    assert (len(one), len(another), len(one | another)) == (2, 2, 4)


def test_the_page_has_every_row_and_every_metric_too() -> None:
    text = page()
    bodies = re.findall("(?s)<tbody>(.*?)</tbody>", text)
    assert bodies[0].count("<tr>") == len(ROWS)
    (metrics,) = re.findall("(?s)<pre>(.*?)</pre>", text)
    assert html.unescape(metrics) == exposition(REPORT)
    assert 'Nothing</h2>\n<p class="note">none</p>' in text


@pytest.mark.parametrize(("value", "text"), [(float("inf"), "+Inf"), (float("-inf"), "-Inf"), (float("nan"), "NaN")])
def test_numbers_that_json_lacks_are_written_all_the_same(value: float, text: str) -> None:
    metric = Metric(name="kafka_msgs_x", help="X.", samples=(Sample({}, value),))
    report = Report("X", (Table("X", ("x",), ((value,),)),), metrics=(metric,))
    assert json.loads(to_json(report))["sections"][0]["rows"] == [[str(value)]]
    assert f"kafka_msgs_x{{}} {text}\n" in exposition(report)
    (sample,) = parsed(exposition(report))["kafka_msgs_x"].samples
    assert repr(sample.value) == repr(value)


def test_text_that_is_not_unicode_can_be_written(tmp_path: Path) -> None:
    report = Report("Bytes", (Table("Bytes", ("name", "key"), (("a\udcff", b"\0\xff"),)),), {"input": "\udcff"})
    page_file, data, prom = write_report(report, tmp_path)
    assert "a\\udcff" in page_file.read_text(encoding="utf-8")
    assert json.loads(data.read_bytes())["sections"][0]["rows"] == [["a\udcff", "00ff"]]
    assert "kafka_msgs_report_info" in parsed(prom.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (0, "bytes", "0 B"),
        (1023, "bytes", "1023 B"),
        (1024, "bytes", "1.00 KiB"),
        (5 * 1024**3, "bytes", "5.00 GiB"),
        (-2048, "bytes", "-2.00 KiB"),
        (0, "seconds", "0 s"),
        (0.25, "seconds", "250 ms"),
        (0.000012, "seconds", "0.012 ms"),
        (12.345, "seconds", "12.35 s"),
        (61, "seconds", "1 min 1 s"),
        (7260, "seconds", "2 h 1 min"),
        (1_000_000, "seconds", "11 d 13 h"),
        (-61, "seconds", "-1 min 1 s"),
        (0, "time", "1970-01-01 00:00:00"),
        (2**62, "time", "4611686018427387904 ms"),
        (12345, "name", "12345"),
        (12345, "number", "12,345"),
        (None, "bytes", ""),
    ],
)
def test_values_are_written_by_their_kind(value: float | None, kind: Kind, text: str) -> None:
    assert cell(value, kind) == text


def test_a_report_without_jinja2_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    environment.cache_clear()
    with pytest.raises(MissingExtraError, match=r"pip install 'kafka-msgs\[report\]'"):
        write_report(Report("X", ()), tmp_path)
