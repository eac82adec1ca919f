"""The live view of a proxy: a small HTTP server on loopback, whose address contains a random token.

It serves the page, its modules, new rows and payloads, and loads nothing from elsewhere. It keeps a bounded window
of the latest exchanges. Requests without the token, with another host, or of another method are refused.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections import deque
from html import escape
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from attrs import evolve

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.errors import KafkaMsgsError, TapError
from kafka_msgs.registry.schemas import SchemaResolver
from kafka_msgs.registry.serializers import PayloadDeserializer
from kafka_msgs.viewer.pages import MODULES, api_name, asset, common_facts, plans_of
from kafka_msgs.viewer.payload_entries import encode_item
from kafka_msgs.viewer.registry_payloads import RegistryPayloads
from kafka_msgs.viewer.rows import Row, RowBuilder, decompressed_contents

__all__ = ["LiveViewer"]

_HOST: Final = "127.0.0.1"
_TOKEN_BYTES: Final = 24
_HEAD_BYTES: Final = 8192
_SECONDS: Final = 10
_MAX_CLIENTS: Final = 32
_ROWS_AT_ONCE: Final = 2000
_CONTENT_BYTES: Final = 16 * 2**20
_ROW_BYTES: Final = 1000
_MAX_NAMES: Final = 10_000
_REQUEST: Final = re.compile(rb"GET (/[!-~]*) HTTP/1\.[01]\r\n")
_HOST_HEADER: Final = re.compile(rb"\r\nhost:[ \t]*([^\r\n]*?)[ \t]*\r\n", re.IGNORECASE)
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_REASONS: Final = {200: "OK", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 503: "Service Unavailable"}


class _Kept(NamedTuple):
    """An item in the window without its decoded messages, which are larger than its bytes, and its size in bytes."""

    row: Row
    item: Item
    size: int


class LiveViewer:
    """A server for the live view, inside an ``async with`` block. ``add`` receives each item of a proxy.

    The window contains the latest items: at most ``max_items``, and at most ``max_bytes`` of payloads. ``port`` 0 is a
    free port. ``schemas`` decode the keys and values with the header of a schema registry when an exchange is opened.
    Raises ``TapError`` if it cannot listen.
    """

    def __init__(
        self,
        *,
        title: str,
        port: int = 0,
        max_items: int = 10_000,
        max_bytes: int = 64 * 2**20,
        catalog: MessageCatalog | None = None,
        schemas: SchemaResolver | None = None,
    ) -> None:
        self.token = secrets.token_urlsafe(_TOKEN_BYTES)
        self._title = title
        self._port = port
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._catalog = catalog or release_catalog()
        self._deserialize = None if schemas is None else PayloadDeserializer(schemas)
        self._builder = RowBuilder()
        self._kept: deque[_Kept] = deque()
        self._first = 0
        self._held = 0
        self._clients: set[asyncio.Task[Any]] = set()

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"http://{_HOST}:{self._port}/{self.token}/"

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._accepted, _HOST, self._port, limit=_HEAD_BYTES)
        except OSError as error:
            address = str(Endpoint(_HOST, self._port))
            raise TapError(address=address, reason=error.strerror or str(error)) from None
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._server.close()
        for client in tuple(self._clients):
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)

    def add(self, item: Item) -> None:
        """Add an exchange or a fault, and drop the oldest ones above the limits."""
        row, _ = self._builder.read(item)
        size = _ROW_BYTES + row.sizes[0] + (row.sizes[1] or 0)
        self._kept.append(_Kept(row, evolve(item), size))
        self._held += size
        while len(self._kept) > 1 and (len(self._kept) > self._max_items or self._held > self._max_bytes):
            self._held -= self._kept.popleft().size
            self._first += 1
        if len(self._builder.topic_ids) > _MAX_NAMES:
            self._builder.topic_ids.clear()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            async with asyncio.timeout(_SECONDS):
                status, kind, body = await self._respond(reader)
                writer.write(_response(status, kind, body))
                await writer.drain()
        except (OSError, EOFError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            self._clients.discard(task)
            writer.close()

    async def _respond(self, reader: asyncio.StreamReader) -> tuple[int, str, bytes]:
        if len(self._clients) > _MAX_CLIENTS:
            return 503, "text/plain", b"too many connections"
        head = await reader.readuntil(b"\r\n\r\n")
        request, host = _REQUEST.match(head), _HOST_HEADER.search(head)
        if request is None or host is None:
            return 400, "text/plain", b"only GET requests are answered"
        token, _, path = request[1].decode("ascii")[1:].partition("/")
        is_local = host[1].decode("latin-1").lower() in (f"{_HOST}:{self._port}", f"localhost:{self._port}")
        if not is_local or not secrets.compare_digest(token, self.token):
            return 403, "text/plain", b"the address needs its token"
        if self._deserialize is not None and path.startswith("decoded/"):
            kept = self._find(_number(path.partition("/")[2]))
            if kept is not None:
                return 200, "application/json", json.dumps(await _decoded(kept.item, self._deserialize)).encode()
        return self._content(path)

    def _content(self, path: str) -> tuple[int, str, bytes]:
        name, _, argument = path.partition("/")
        if not path:
            return 200, "text/html; charset=utf-8", self._page().encode()
        if name == "panel.css":
            return 200, "text/css; charset=utf-8", asset(name).encode()
        if name.removesuffix(".js") in MODULES and name.endswith(".js"):
            return 200, "text/javascript; charset=utf-8", asset(name).encode()
        number = _number(argument)
        if name == "rows" and number is not None:
            return 200, "application/json", self._rows(number)
        kept = self._find(number)
        if name == "payload" and kept is not None:
            _, records = RowBuilder().read(evolve(kept.item))
            contents = decompressed_contents(records, _CONTENT_BYTES)
            return 200, "application/octet-stream", encode_item(kept.item, contents)
        return 404, "text/plain", b"not found"

    def _find(self, number: int | None) -> _Kept | None:
        is_kept = number is not None and self._first <= number < self._first + len(self._kept)
        return self._kept[number - self._first] if number is not None and is_kept else None

    def _page(self) -> str:
        head = f'<title>{escape(self._title)}</title>\n<link rel="stylesheet" href="panel.css">'
        facts = {"title": self._title, "live": True, **common_facts(()), "maxItems": self._max_items}
        if self._deserialize is not None:
            facts |= RegistryPayloads(self._deserialize).facts()
        data = json.dumps({**facts, "plans": {}, "topicIds": {}, "apis": {}}).replace("<", "\\u003c")
        scripts = (
            f'<script type="application/json" id="data">{data}</script>\n<script type="module" src="main.js"></script>'
        )
        return asset("panel.html").replace("<!-- head -->", head).replace("<!-- scripts -->", scripts)

    def _rows(self, after: int) -> bytes:
        """Return the rows from a number on, with the plans and names that they need."""
        start = max(after, self._first)
        kept = [self._kept[n] for n in range(start - self._first, len(self._kept))][:_ROWS_AT_ONCE]
        plans: dict[str, Any] = {}
        apis: dict[str, str] = {}
        for each in kept:
            if each.row.api_key >= 0 and f"request{each.row.api_key}.{each.row.version}" not in plans:
                plans |= plans_of(each.row, self._catalog)
                apis[str(each.row.api_key)] = api_name(each.row.api_key, self._catalog)
        return json.dumps({
            "first": self._first,
            "start": start,
            "rows": [_row(each.row) for each in kept],
            "plans": plans,
            "apis": apis,
            "internal": common_facts({topic for each in kept for topic in each.row.topics})["internal"],
            "topicIds": {topic_id.hex: name for topic_id, name in self._builder.topic_ids.items()},
        }).encode()  # fmt: skip


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


async def _decoded(item: Item, deserialize: PayloadDeserializer) -> dict[str, Any]:
    """Return the facts of the decoded payloads of an exchange, with the reason if the registry does not respond.

    A cancellation ends the thread at the next payload.
    """
    found = RegistryPayloads(deserialize)
    try:
        await asyncio.to_thread(lambda: found.add(RowBuilder().read(evolve(item))[1]))
    except KafkaMsgsError as error:
        return {**found.facts(), "undecoded": f"not decoded: {error}"}
    except asyncio.CancelledError:
        found.is_limited = True
        raise
    return found.facts()


def _row(row: Row) -> list[Any]:
    """Return the values of a row in the order of the page's columns, with texts, and the ends of its connection."""
    return [
        row.time, row.connection, row.client_id, row.api_key, row.version, row.response_version, *row.sizes,
        row.latency, row.error, row.problem, row.summary, row.topics, row.group, row.ends,
    ]  # fmt: skip


def _response(status: int, kind: str, body: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
        f"Content-Security-Policy: {_POLICY}\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
        "Cache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
