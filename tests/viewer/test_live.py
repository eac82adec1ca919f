"""The live view: only requests with the token are answered, the window is bounded, and the page follows the proxy."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs.errors import TapError
from kafka_msgs.viewer import LiveViewer
from kafka_msgs.viewer.pages import MODULES
from tests.support.browser import Browser, browser_path
from tests.viewer.traffic import few, many


def _in_time(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


async def _get(
    viewer: LiveViewer, path: str, *, host: str | None = None, method: str = "GET"
) -> tuple[int, str, bytes]:
    """Return the status, the head and the body of a response; ``path`` is without the token if it starts with /."""
    port = int(viewer.address.split(":")[2].split("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    full = path if path.startswith("/") else f"/{viewer.token}/{path}"
    writer.write(f"{method} {full} HTTP/1.1\r\nHost: {host or f'127.0.0.1:{port}'}\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split()[1]), head.decode(), body


def test_only_the_address_with_the_token_is_answered() -> None:
    async def work() -> None:
        async with LiveViewer(title="<b>tap") as viewer:
            status, head, page = await _get(viewer, "")
            assert status == 200
            assert "default-src 'none'; script-src 'self'; style-src 'self'" in head
            assert b"&lt;b&gt;tap" in page
            assert b"<b>tap" not in page
            for name in (*(f"{module}.js" for module in MODULES), "panel.css"):
                assert (await _get(viewer, name))[0] == 200
            for path in ("/", "/rows/0", f"/{viewer.token[:-1]}/", f"/{viewer.token}x/"):
                assert (await _get(viewer, path))[0] == 403
            assert (await _get(viewer, "", host="attacker.example"))[0] == 403
            assert (await _get(viewer, "", method="POST"))[0] == 400
            for path in (
                "../pages.py",
                "panel.html",
                "rows/x",
                "rows/-1",
                "payload/0",
                "payload/99999999999999999999",
                "x",
            ):
                assert (await _get(viewer, path))[0] == 404
            assert len(viewer.token) >= 32

    _in_time(work())


def test_damaged_requests_and_slow_clients_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_msgs.viewer.live._SECONDS", 0.2)

    async def work() -> None:
        async with LiveViewer(title="t") as viewer:
            port = int(viewer.address.split(":")[2].split("/")[0])
            for data in (b"", b"GET", b"x" * 20_000, b"GET / HTTP/1.1\r\n"):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(data)
                assert await _end(reader) == b""
                writer.close()
            with pytest.raises(TapError, match=r"(?i)address already in use"):
                async with LiveViewer(title="t", port=port):
                    pass

    _in_time(work())


async def _end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""


def test_the_window_is_bounded() -> None:
    async def work() -> None:
        async with LiveViewer(title="t", max_items=100, max_bytes=50_000) as viewer:
            for item in many(1000):
                viewer.add(item)
            found = json.loads((await _get(viewer, "rows/0"))[2])
            assert found["start"] == found["first"] >= 900
            assert found["first"] + len(found["rows"]) == 1000
            assert viewer._held <= 50_000
            assert (await _get(viewer, f"payload/{found['first']}"))[0] == 200
            assert (await _get(viewer, f"payload/{found['first'] - 1}"))[0] == 404
            assert json.loads((await _get(viewer, "rows/1000"))[2])["rows"] == []

    _in_time(work())


def test_the_page_follows_the_proxy(tmp_path: Path) -> None:
    """New rows appear, their bytes come from the proxy, and old rows leave the page."""
    if browser_path() is None:
        pytest.skip("NOT RUN: chromium not found")

    def browse(viewer: LiveViewer, loop: asyncio.AbstractEventLoop) -> None:
        with Browser(tmp_path / "profile") as browser:
            browser.open(viewer.address, width=1400)
            counts = "document.getElementById('counts').textContent"
            _until(browser, f"{counts}.startsWith('40 exchanges')")
            browser.run("[...document.querySelectorAll('.row')].find(row => /Produce/.test(row.innerText)).click()")
            _until(browser, "document.getElementById('tree').innerText.includes('batch 0')")
            for item in many(300):
                loop.call_soon_threadsafe(viewer.add, item)
            _until(browser, f"{counts}.startsWith('200 exchanges')")
            assert browser.run("document.getElementById('live').textContent") == "live"
            assert {request.split("/")[2] for request in browser.requests if request.startswith("http")} == {
                viewer.address.split("/")[2]
            }
            assert browser.complaints == []

    async def work() -> None:
        async with LiveViewer(title="t", max_items=200) as viewer:
            for item in few():
                viewer.add(item)
            await asyncio.to_thread(browse, viewer, asyncio.get_running_loop())

    _in_time(work())


def _until(browser: Browser, script: str) -> None:
    deadline = time.monotonic() + 20
    while not browser.run(script):
        assert time.monotonic() < deadline, script
