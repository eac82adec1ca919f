"""The speed of pages of exchanges in a real browser: opening, filtering, scrolling, and the detail of an exchange.

    python -m tests.campaigns.page_speed [--exchanges 10000 100000]

Writes pages of generated traffic and opens each in Chromium. The exit status is 1 if a page of 10,000 exchanges needs
more than one second to open, one of 100,000 more than five, or a filter more than 100 ms.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from kafka_msgs.viewer import write_page
from tests.support.browser import Browser
from tests.viewer.traffic import many

SECONDS: Final = {10_000: 1.0, 100_000: 5.0}
FILTER_MS: Final = 100.0
_READY: Final = "document.documentElement.dataset.ready && performance.now()"
_FILTER: Final = """(() => {
    const times = [];
    for (const [id, value] of [["search", "topic-01"], ["search", "nowhere"], ["search", ""], ["api", "1"], ["api", ""],
                               ["topic", "topic-017"], ["topic", ""], ["slow", "50"], ["slow", ""]]) {
        const input = document.getElementById(id), start = performance.now();
        input.value = value;
        input.dispatchEvent(new Event("input", {bubbles: true}));
        document.getElementById("rows").getBoundingClientRect();
        times.push(performance.now() - start);
    }
    return Math.max(...times);
})()"""
_SCROLL: Final = """new Promise(done => {
    const rows = document.getElementById("rows"), frames = [];
    let last = performance.now();
    const step = () => {
        const now = performance.now();
        frames.push(now - last);
        last = now;
        rows.scrollTop += rows.scrollHeight / 120;
        frames.length < 120 ? requestAnimationFrame(step) : done(frames.sort((a, b) => a - b)[108]);
    };
    requestAnimationFrame(step);
})"""
_DETAIL: Final = """new Promise(done => {
    const start = performance.now();
    document.querySelectorAll(".row")[9].click();
    const look = () => document.querySelector(".byte") ? done(performance.now() - start) : setTimeout(look, 1);
    look();
})"""


def main() -> int:
    """Measure pages and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--exchanges", type=int, nargs="+", default=list(SECONDS))
    slow = False
    for count in parser.parse_args().exchanges:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
            page = Path(home) / "page.html"
            start = time.perf_counter()
            with page.open("w", encoding="utf-8") as file:
                write_page(many(count), file, title=f"{count} exchanges")
            written = time.perf_counter() - start
            slow |= _measure(Path(home), page, count, written)
    print(f"load average: {os.getloadavg()[0]:.1f}")
    return int(slow)


def _measure(home: Path, page: Path, count: int, written: float) -> bool:
    with Browser(home / "profile") as browser:
        opened = min(_opened(browser, page) for _ in range(3))
        filtered = min(float(browser.run(_FILTER)) for _ in range(3))
        frame = float(browser.run(_SCROLL, wait=True))
        browser.run("document.getElementById('rows').scrollTop = 0")
        detail = float(browser.run(_DETAIL, wait=True))
    megabytes = page.stat().st_size / 2**20
    print(
        f"{count} exchanges: written in {written:.1f} s, {megabytes:.1f} MB, opened in {opened:.2f} s, slowest filter "
        f"{filtered:.0f} ms, frame while scrolling (p90) {frame:.0f} ms, detail {detail:.0f} ms"
    )
    return opened > SECONDS.get(count, float("inf")) or filtered > FILTER_MS


def _opened(browser: Browser, page: Path) -> float:
    """Open a page; return the seconds from the start of the navigation until the list is shown."""
    browser.open(page, width=1400)
    while not (ready := browser.run(_READY)):
        time.sleep(0.01)
    return float(ready) / 1000


if __name__ == "__main__":
    sys.exit(main())
