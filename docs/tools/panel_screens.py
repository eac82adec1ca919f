"""Take the pictures of the browser panel: real clients, an embedded broker, the proxy, and Chromium.

    python docs/tools/panel_screens.py

Writes ``panel-list.png``, ``panel-bytes.png`` and ``panel-dark.png`` to ``docs/images``. Requires Chromium. Times
differ from run to run, so nothing compares the pictures.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))
from kafka_msgs import ErrorCode
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.faults import Fail, Fault
from kafka_msgs.capture import Endpoint
from kafka_msgs.client import Consumer, Producer
from kafka_msgs.errors import KafkaMsgsError
from kafka_msgs.tap import Tap
from kafka_msgs.viewer import write_page
from tests.support.browser import Browser

__all__ = ["IMAGES", "main", "record"]

IMAGES: Final = Path(__file__).parents[1] / "images"
ORDERS: Final = tuple(b'{"order": %d, "tea": "sencha", "grams": %d}' % (number, 50 * number) for number in range(1, 7))
_SELECT: Final = """(async () => {
    const wait = () => new Promise(done => setTimeout(done, 400));
    const rows = document.getElementById("rows");
    const find = (name, text) => [...document.querySelectorAll(name)]
        .find(each => !each.hidden && text.test(each.textContent));
    for (let at = 0; at < rows.scrollHeight; at += 300) {
        rows.scrollTop = at;
        await wait();
        const row = find(".row", /API.*SUMMARY/s);
        if (row) { row.click(); break; }
    }
    await wait();
    document.querySelectorAll("#sides button")[SIDE].click();
    await wait();
    const tree = document.getElementById("tree");
    tree.focus();
    for (let line = 0; line < 300; line++) {
        const field = find(".field", /FIELD/);
        if (field) { field.click(); field.dispatchEvent(new MouseEvent("mouseover", {bubbles: true})); break; }
        for (const key of ["ArrowDown", "ArrowRight"]) { tree.dispatchEvent(new KeyboardEvent("keydown", {key})); }
    }
    await wait();
})()"""


def _work(address: str) -> None:
    """Run clients of a tea shop: an owner, two tills and a report."""
    with Admin(address, client_id="owner") as admin:
        admin.create_topics([NewTopic("orders", 3), NewTopic("payments", 1)])
        with suppress(KafkaMsgsError):
            admin.create_topics([NewTopic("orders", 3)])
        admin.list_topics()
    for number, codec in enumerate(("gzip", "none")):
        with Producer(address, client_id=f"till-{number}", compression=codec) as producer:
            for order in ORDERS:
                producer.send("orders", key=b"kyoto", value=order, headers=[("trace-id", b"7f3a")])
                producer.flush()
            producer.send("payments", value=b'{"paid": true}')
    with Consumer(address, group_id="billing", client_id="report", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders", "payments"])
        count = 0
        while count < 2 * len(ORDERS):
            count += len(consumer.poll(1))
        consumer.commit()


def record() -> list[Any]:
    """Return the exchanges of the clients with a broker that fails twice."""
    seen: list[Any] = []

    async def run(broker: EmbeddedBroker) -> None:
        host, _, port = broker.bootstrap_servers.partition(",")[0].partition(":")
        async with Tap([Endpoint(host, int(port))], seen=seen.append) as tap:
            await asyncio.to_thread(_work, str(tap.address))

    with EmbeddedBroker(brokers=2) as broker:
        broker.faults.add(Fault(Fail(ErrorCode.NOT_LEADER_OR_FOLLOWER), api=0, times=2))
        asyncio.run(run(broker))
    return sorted(seen, key=lambda item: item.request.time_us if hasattr(item, "request") else item.at or 0)


def _select(api: str, summary: str, side: int, field: str) -> str:
    replaced = {"API": api, "SUMMARY": summary, "SIDE": str(side), "FIELD": field}
    script = _SELECT
    for name, value in replaced.items():
        script = script.replace(name, value)
    return script


def main(arguments: Sequence[str] = ()) -> int:
    """Take the pictures, and return the exit status."""
    pictures = (
        ("panel-list.png", 1280, False, ""),
        ("panel-bytes.png", 1440, False, _select("Produce", "1 record", 0, "clientId")),
        ("panel-dark.png", 1440, True, _select("Fetch", "record", 1, "sencha")),
    )
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        page = Path(home) / "page.html"
        with page.open("w", encoding="utf-8") as file:
            write_page(record(), file, title="shop.jsonl")
        with Browser(Path(home) / "profile") as browser:
            for name, width, dark, script in pictures:
                browser.open(page, width=width, dark=dark)
                if script:
                    browser.run(script, wait=True)
                time.sleep(1)
                (IMAGES / name).write_bytes(browser.picture())
                print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
