"""The page in a real browser: filters, highlighting both ways, keyboard, schemes, narrow screens and hostile names."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import FetchResponse, MetadataRequest
from kafka_msgs.capture import Exchange
from kafka_msgs.viewer import PageLimits, explain_records, write_page
from kafka_msgs.viewer.pages import MODULES, _bundle, asset
from kafka_msgs.wire import decode_request
from tests.support.browser import Browser, browser_path
from tests.viewer.traffic import HOSTILE, few

SECONDS = 20


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "traffic.html"
    with path.open("w", encoding="utf-8") as file:
        assert write_page(few(), file, title=f"traffic {HOSTILE}") == (41, 0)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if browser_path() is None:
        pytest.skip("NOT RUN: chromium not found")
    with Browser(tmp_path_factory.mktemp("browser") / "profile") as found:
        yield found


def _until(browser: Browser, script: str) -> Any:
    """Wait until an expression is true, and return its value."""
    deadline = time.monotonic() + SECONDS
    while not (value := browser.run(script)):
        assert time.monotonic() < deadline, script
    return value


def _open(browser: Browser, page: Path, width: int = 1440, *, dark: bool = False) -> None:
    browser.open(page, width=width, dark=dark)
    _until(browser, "document.documentElement.dataset.ready")


def _rows(browser: Browser) -> list[str]:
    found: list[str] = browser.run(
        "[...document.querySelectorAll('.row')].filter(row => !row.hidden).map(row => row.innerText)"
    )
    return found


def _set(browser: Browser, name: str, value: str) -> str:
    """Set a filter, and return the text of the counter."""
    browser.run(
        f"(() => {{ const input = document.getElementById({name!r}); input.value = {json.dumps(value)};"
        " input.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    return str(browser.run("document.getElementById('counts').textContent"))


def _select(browser: Browser, number: int, side: int = 0) -> None:
    browser.run(f"document.querySelectorAll('.row')[{number}].click()")
    _until(browser, f"document.querySelectorAll('#sides button').length > {side}")
    browser.run(f"document.querySelectorAll('#sides button')[{side}].click()")


def test_filters_and_search(browser: Browser, page: Path) -> None:
    _open(browser, page)
    assert browser.run("document.getElementById('counts').textContent") == "40 exchanges, 1 fault"
    assert _set(browser, "api", "1").startswith("10 of")
    assert all("Fetch" in row for row in _rows(browser))
    _set(browser, "api", "")
    assert _set(browser, "topic", "payments").startswith("14 of")
    _set(browser, "topic", "")
    assert _set(browser, "group", "billing").startswith("10 of")
    _set(browser, "group", "")
    assert _set(browser, "client", "till").startswith("14 of")
    _set(browser, "client", "")
    assert _set(browser, "slow", "30").startswith("10 of")
    _set(browser, "slow", "")
    for text, count in (("NOT_LEADER", 10), ("offsetfetch", 10), ("payments", 14), ("nowhere", 0)):
        assert _set(browser, "search", text).startswith(f"{count} of"), text
    assert browser.run("document.getElementById('empty').hidden") is False
    browser.run("document.getElementById('reset').click()")
    _until(browser, "document.getElementById('counts').textContent.startsWith('40 exchanges')")
    browser.run("document.getElementById('errors').click()")
    assert browser.run("document.getElementById('counts').textContent").startswith("11 of")


def test_fields_and_bytes_light_up_each_other(browser: Browser, page: Path) -> None:
    _open(browser, page)
    _select(browser, 1)
    over = "dispatchEvent(new MouseEvent('mouseover', {bubbles: true}))"
    browser.run(f"[...document.querySelectorAll('.field')].find(row => row.innerText.includes('acks')).{over}")
    lit = "[...document.querySelectorAll('.byte.on')].map(byte => byte.textContent).join('')"
    assert browser.run(lit) == "ffff"
    assert "acks" in browser.run("document.getElementById('pointed').textContent")
    browser.run(f"document.querySelectorAll('.byte')[9].{over}")
    on = "[...document.querySelectorAll('.field.on')].map(row => row.querySelector('.name').textContent).join()"
    assert browser.run(on) == "clientId"
    assert bytes.fromhex(browser.run(lit))[2:] == b"shop"
    browser.run("document.getElementById('tree').dispatchEvent(new MouseEvent('mouseleave'))")
    assert browser.run(lit) == ""


def test_batches_are_opened_also_compressed_ones(browser: Browser, page: Path) -> None:
    _open(browser, page)
    _select(browser, 2, side=1)
    browser.run("document.getElementById('tree').focus()")
    names = "[...document.querySelectorAll('.field')].filter(row => !row.hidden).map(row => row.innerText)"
    for _ in range(60):
        browser.press("ArrowDown")
        browser.press("ArrowRight")
        if any("compressed with gzip" in name for name in browser.run(names)):
            break
    for _ in range(80):
        browser.press("ArrowDown")
        browser.press("ArrowRight")
        if any("card" in name for name in browser.run(names)):
            break
    else:
        pytest.fail("no decompressed record")
    assert "decompressed" in browser.run("(document.querySelector('#hex').focus(), document.getElementById('tree')"
                                         ".dispatchEvent(new MouseEvent('mouseleave')), 'decompressed')")  # fmt: skip


def test_the_keyboard_suffices(browser: Browser, page: Path) -> None:
    _open(browser, page)
    browser.run("document.getElementById('rows').focus()")
    for _ in range(3):
        browser.press("ArrowDown")
    selected = "document.querySelector('.row[aria-selected=true] .name')?.textContent"
    assert browser.run(selected) == "Fetch"
    browser.press("End")
    assert browser.run(selected) == "gap"
    assert "5 bytes were not captured" in _until(browser, "document.getElementById('problem').textContent")
    browser.press("Home")
    assert browser.run(selected) == "Metadata"
    browser.press("/")
    assert browser.run("document.activeElement.id") == "search"
    browser.press("Escape")
    assert browser.run("document.activeElement.id") == "rows"


def test_copies(browser: Browser, page: Path) -> None:
    """As JSON, as a command, and as Python that encodes to the same bytes."""
    _open(browser, page)
    _select(browser, 0)

    def copied(what: str) -> str:
        browser.run("delete document.documentElement.dataset.copied")
        browser.run(f"document.getElementById('copy-{what}').click()")
        return str(_until(browser, "document.documentElement.dataset.copied"))

    request = MetadataRequest.from_json(json.loads(copied("json")), 12)
    assert request.topics is not None
    assert [topic.name for topic in request.topics] == ["orders"]
    assert copied("call").startswith("kafka-msgs call Metadata --version 12 '{")
    scope: dict[str, Any] = {}
    exec(copied("python"), scope)
    first = next(iter(few()))
    assert isinstance(first, Exchange)
    assert scope["message"] == decode_request(first.request.payload).message


def test_a_range_of_time_and_a_bar_are_selected(browser: Browser, page: Path) -> None:
    _open(browser, page)
    drag = (
        "(() => { const canvas = document.getElementById('waterfall'), box = canvas.getBoundingClientRect();"
        "const send = (type, x, y) => canvas.dispatchEvent(new PointerEvent(type, {clientX: box.left + x,"
        " clientY: box.top + y, pointerId: 1, bubbles: true})); canvas.setPointerCapture = () => {};"
        "send('pointerdown', 170, 30); send('pointermove', 500, 30); send('pointerup', %d, 30); })()"
    )
    browser.run(drag % 500)
    count = int(browser.run("parseInt(document.getElementById('counts').textContent)"))
    assert 0 < count < 40
    browser.run("document.getElementById('waterfall').focus()")
    browser.press("Escape")
    _until(browser, "document.getElementById('counts').textContent.startsWith('40 exchanges')")
    browser.run(drag % 171)
    assert _until(browser, "document.querySelector('.row[aria-selected=true] .name')?.textContent")


@pytest.mark.parametrize("width", [1440, 900, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_every_width_and_scheme(browser: Browser, page: Path, width: int, *, dark: bool) -> None:
    """The page fits; on a narrow screen the detail covers the list, and leads back."""
    _open(browser, page, width, dark=dark)
    back = browser.run("getComputedStyle(document.body).backgroundColor")
    assert back == ("rgb(14, 19, 28)" if dark else "rgb(255, 255, 255)")
    assert browser.run("document.documentElement.scrollWidth") <= width
    _select(browser, 1)
    assert browser.run("document.documentElement.scrollWidth") <= width
    _until(browser, "document.getElementById('detail').getBoundingClientRect().left < innerWidth - 100")
    if width == 390:
        browser.run("document.getElementById('back').click()")
        _until(browser, "getComputedStyle(document.getElementById('detail')).visibility === 'hidden'")


def test_hostile_names_stay_text_and_nothing_is_loaded(browser: Browser, page: Path) -> None:
    browser.requests.clear()
    browser.complaints.clear()
    _open(browser, page)
    assert HOSTILE in "".join(_rows(browser))
    _select(browser, 20)
    _until(browser, "document.getElementById('tree').innerText.includes('onerror')")
    assert browser.run("document.title").endswith(HOSTILE)
    assert browser.run("document.querySelectorAll('img').length") == 0
    assert set(browser.requests) == {page.as_uri()}
    assert browser.complaints == []
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
    )
    assert browser.run("window.ran ?? 0") == 0, "the policy forbids other scripts"


def test_a_segment_is_explained(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "segment.html"
    fetch = list(few())[2]
    assert isinstance(fetch, Exchange)
    assert isinstance(fetch.response_message, FetchResponse)
    batch = fetch.response_message.responses[0].partitions[0].records
    assert batch is not None
    with path.open("w", encoding="utf-8") as file:
        explain_records(bytes(batch), file, name="segment.log")
    _open(browser, path)
    assert browser.run("document.getElementById('title').textContent") == "segment.log"
    assert "5 records, gzip" in browser.run("document.getElementById('tree').innerText")


def test_exchanges_above_the_limits_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    with path.open("w", encoding="utf-8") as file:
        assert write_page(few(), file, title="t", limits=PageLimits(exchanges=5)) == (5, 36)
    assert '"omitted":36' in path.read_text(encoding="utf-8")


def test_modules_import_only_modules_before_them_and_share_no_names(tmp_path: Path) -> None:
    """The page joins the modules to one script."""
    for number, name in enumerate(MODULES):
        imported = re.findall(r'from "\./(\w+)\.js"', asset(f"{name}.js"))
        assert set(imported) <= set(MODULES[:number])
    if shutil.which("node") is None:
        pytest.skip("NOT RUN: node not found")
    path = tmp_path / "bundle.mjs"
    path.write_text(_bundle(), encoding="utf-8")
    done = subprocess.run(["node", "--check", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
