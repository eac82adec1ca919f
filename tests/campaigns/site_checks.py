"""The site in a real browser: the accessibility of every kind of page, and the speed of the search.

    mkdocs build && python -m tests.campaigns.site_checks [--site DIRECTORY]

Opens a page of each kind, wide and narrow, in the light and the dark scheme, and lists what axe-core finds. Then opens
pages and types queries as soon as they are loaded: the first query waits for the index. Requires Chromium and npm,
which downloads axe-core. The exit status is 1 if axe-core finds anything, if a page requests anything from another
server, or if a query after the first takes more than a second.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from tests.support.browser import Browser

AXE: Final = "axe-core@4.14.1"
PAGES: Final = (
    "index.html", "pages.html", "compare.html", "performance.html", "first-hour.html", "404.html",
    "tutorial/first-message.html", "tutorial/lag-of-an-empty-group.html", "how-to/clients.html",
    "how-to/asyncio-proxy.html", "reference/cli-cluster.html", "reference/troubleshooting.html",
    "reference/connections.html", "reference/jobs.html", "reference/admin.html", "design/overview.html",
    "design/group-coordinator.html", "messages/index.html", "messages/by-key.html", "messages/by-error.html",
    "messages/by-kip.html", "messages/FetchRequest.html", "messages/OffsetFetchResponse.html", "api/index.html",
    "api/kafka_msgs.client.html", "api/kafka_msgs.drafts.kip_88.describe_groups_request.html",
    "examples/word-count/index.html",
)  # fmt: skip
"""Pages of each kind."""

WIDTHS: Final = (1400, 360)
QUERIES: Final = ("OffsetFetchRequest", "lag", "kafka_broker", "leader epoch", "NOT_LEADER_OR_FOLLOWER")
SECONDS: Final = 1.0
_RUN_AXE: Final = """axe.run().then(found => JSON.stringify(found.violations.map(rule =>
    [rule.id, rule.impact, rule.nodes.length, rule.nodes[0].target.join(" "), rule.nodes[0].html.slice(0, 160)])))"""
_SEARCH: Final = """new Promise(done => {
    const input = document.querySelector(".md-search__input"), list = document.querySelector(".md-search-result__list");
    list.replaceChildren();
    const start = performance.now();
    const observer = new MutationObserver(() => {
        const hit = list.querySelector("li a");
        if (hit) { observer.disconnect(); done(JSON.stringify([performance.now() - start, hit.pathname])); }
    });
    observer.observe(list, {childList: true, subtree: true});
    input.focus();
    input.value = QUERY;
    input.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}));
    input.dispatchEvent(new Event("input", {bubbles: true}));
    setTimeout(() => done(JSON.stringify([60000, "no hit"])), 55000);
})"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing for a request."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a directory on loopback; yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def axe_source(directory: Path) -> str:
    """Download axe-core and return its script."""
    command = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(directory), AXE)
    subprocess.run(command, check=True, timeout=300)
    return (directory / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def accessibility(browser: Browser, address: str, axe: str) -> int:
    """Print the findings of axe-core on every page, at every width, in both schemes; return their number."""
    findings = 0
    for page in PAGES:
        for width in WIDTHS:
            for dark in (False, True):
                browser.open(f"{address}/{page}", width=width, dark=dark)
                browser.run(axe)
                for violation in json.loads(browser.run(_RUN_AXE, wait=True)):
                    findings += 1
                    print(page, width, "dark" if dark else "light", *violation, sep="  ")
    print(f"{len(PAGES)} pages, {len(WIDTHS)} widths, two schemes: {findings} findings")
    return findings


def search(browser: Browser, address: str) -> bool:
    """Print the seconds of queries, right after a page is loaded; return whether a later one takes too long."""
    slow = False
    for page in PAGES[:3]:
        browser.open(f"{address}/{page}", width=WIDTHS[0])
        for number, query in enumerate(QUERIES):
            milliseconds, hit = json.loads(browser.run(_SEARCH.replace("QUERY", json.dumps(query)), wait=True))
            slow |= number > 0 and milliseconds > SECONDS * 1000
            print(f"{page}  {query}: {milliseconds / 1000:.2f} s  {hit}")
    print(f"load average: {os.getloadavg()[0]:.1f}")
    return slow


def main() -> int:
    """Check the site and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--site", type=Path, default=Path("build/site"))
    site = parser.parse_args().site
    if missing := [page for page in PAGES if not (site / page).is_file()]:
        parser.error(f"{site} has no {', '.join(missing)}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home, served(site) as address:
        axe = axe_source(Path(home))
        with Browser(Path(home) / "profile") as browser:
            findings = accessibility(browser, address, axe)
            foreign = {request for request in browser.requests if not request.startswith((address, "data:", "blob:"))}
        with Browser(Path(home) / "search") as browser:
            slow = search(browser, address)
    print(f"requests to other servers: {sorted(foreign) or 'none'}")
    return int(bool(findings or foreign or slow))


if __name__ == "__main__":
    sys.exit(main())
