"""Reports in a real browser: sorted by mouse and keyboard, wide and narrow, without network requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.report import BarPlot, Report, Table, write_report
from tests.support.browser import Browser, browser_path

HOSTILE = "</td><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
LAGS = Table(
    "Lags",
    ("group", "lag", "last", "note"),
    (
        ("tea10", 9, 86_400_000, "x" * 200),
        ("tea9", 100, 1, ""),
        (HOSTILE, None, None, "a " * 100),
        ("café", -20, 2 * 86_400_000, ""),
    ),
    kinds={"last": "time"},
)
WIDE = Table("Wide", tuple(f"aLongColumn{number}" for number in range(30)), (tuple(range(30)),))
BARS = BarPlot(title="Bars", file="bars.svg", labels=("tea",), series={"lag": (1,)})


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return write_report(Report("Lags", (LAGS, BARS, WIDE)), tmp_path)[0]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    if browser_path() is None:
        pytest.skip("NOT RUN: chromium not found")
    with Browser(tmp_path / "profile") as found:
        yield found


def column(browser: Browser, number: int) -> list[str]:
    rows = "document.querySelector('tbody').rows"
    shown: list[str] = browser.run(f"Array.from({rows}, row => row.cells[{number}].textContent)")
    return shown


def click(browser: Browser, number: int) -> Any:
    browser.run(f"document.querySelectorAll('th button')[{number}].click()")
    return browser.run(f"document.querySelectorAll('th')[{number}].ariaSort")


def test_a_report_in_a_browser(browser: Browser, page: Path) -> None:
    browser.open(page, width=1400)
    assert click(browser, 1) == "descending"
    assert column(browser, 1) == ["100", "9", "-20", ""]
    assert click(browser, 1) == "ascending"
    assert column(browser, 1) == ["-20", "9", "100", ""]
    click(browser, 2)
    assert column(browser, 2) == ["1970-01-03 00:00:00", "1970-01-02 00:00:00", "1970-01-01 00:00:00", ""]
    browser.run("document.querySelectorAll('th button')[2].focus()")
    browser.run("document.querySelector('.wide').focus()")
    browser.press("Tab")
    browser.press("Enter", text="\r")
    assert column(browser, 0)[1:] == ["café", "tea9", "tea10"]
    assert browser.run("document.title") == "Lags"
    for width, dark, back in ((390, True, "rgb(20, 24, 28)"), (1400, False, "rgb(255, 255, 255)")):
        browser.open(page, width=width, dark=dark)
        assert browser.run("document.documentElement.scrollWidth") <= width
        assert browser.run("getComputedStyle(document.body).backgroundColor") == back
    assert {address for address in browser.requests if not address.startswith("data:")} == {page.as_uri()}
    assert browser.complaints == []
