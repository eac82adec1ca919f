"""Self-contained pages: the exchanges of a recording or capture, or one explained message, in one HTML file.

The file contains its style, its script and all data, and loads nothing. Its content security policy allows only this
style and this script, by their hashes. Payloads are compressed in chunks, which the page opens on demand.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final, TextIO

from attrs import define, field, frozen

from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.catalog import MessageCatalog, release_catalog
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import KafkaMsgsError, UnsupportedVersionError
from kafka_msgs.message import Message
from kafka_msgs.registry.schemas import SchemaResolver
from kafka_msgs.registry.serializers import PayloadDeserializer
from kafka_msgs.viewer.payload_entries import encode_entry, encode_item
from kafka_msgs.viewer.plans import embedded_messages, header_plans, internal_topics, message_plan
from kafka_msgs.viewer.registry_payloads import RegistryPayloads
from kafka_msgs.viewer.rows import Row, RowBuilder, decompressed_contents

__all__ = [
    "MODULES",
    "PageLimits",
    "asset",
    "common_facts",
    "explain_message",
    "explain_payload",
    "explain_records",
    "plans_of",
    "write_page",
]

MODULES: Final = ("decode", "records", "forms", "store", "list", "timeline", "detail", "main")
"""The JavaScript modules; each imports only modules before it."""

_CHUNK_BYTES: Final = 2**19
_IMPORT: Final = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT: Final = re.compile(r"^export ", re.MULTILINE)
_PLACE: Final = re.compile(r"<!-- (\w+) -->")


@frozen(kw_only=True)
class PageLimits:
    """The limits of a page: the number of exchanges, the bytes of their payloads, and the decompressed bytes.

    ``decoded_payloads`` and ``decoded_bytes`` limit the payloads that the schemas of a registry decode.
    """

    exchanges: int = 200_000
    payload_bytes: int = 512 * 2**20
    content_bytes: int = 128 * 2**20
    decoded_payloads: int = 10_000
    decoded_bytes: int = 16 * 2**20


def write_page(
    items: Iterable[Item],
    file: TextIO,
    *,
    title: str,
    limits: PageLimits | None = None,
    catalog: MessageCatalog | None = None,
    schemas: SchemaResolver | None = None,
) -> tuple[int, int]:
    """Write the page of exchanges and faults. Return how many it contains, and how many exceeded the limits.

    Only the rows and one chunk of payloads are in memory at a time. ``catalog`` contains the message classes, by
    default the release's. ``schemas`` decode the keys and values with the header of a schema registry; raises
    ``RegistryError`` if the registry does not respond, and ``MissingExtraError`` without the extra ``registry``.
    """
    limits = limits or PageLimits()
    table = _Table(limits, catalog or release_catalog(), registry=_registry(schemas, limits))
    before, after = _shell(title)
    file.write(before)
    for chunk in table.chunks(items):
        file.write(f'<script type="application/octet-stream" class="chunk">{chunk}</script>\n')
    file.write(f'<script type="application/json" id="data">{_json(table.facts(title))}</script>\n')
    file.write(after)
    return table.count, table.omitted


def explain_message(
    cls: type[Message], version: int, data: bytes, file: TextIO, *, schemas: SchemaResolver | None = None
) -> None:
    """Write the page that explains the bytes of a message without a header. Raises ``UnsupportedVersionError``.

    For ``schemas``, see ``write_page``.
    """
    single = {"kind": "message", "plan": message_plan(cls, version) | {"h": -1}}
    try:
        records = RowBuilder().records_of(cls.decode(data, version))
    except KafkaMsgsError:
        records = []
    _write_single(file, f"{cls.INFO.name} v{version}", data, single, records, schemas)


def explain_payload(
    cls: type[Message],
    version: int,
    data: bytes,
    file: TextIO,
    *,
    records: Iterable[Any] = (),
    schemas: SchemaResolver | None = None,
) -> None:
    """Write the page that explains a request or response payload. Raises ``UnsupportedVersionError``.

    ``records`` are the contents of its records fields, in order. For ``schemas``, see ``write_page``.
    """
    single = {"kind": cls.INFO.kind, "plan": message_plan(cls, version)}
    _write_single(file, f"{cls.INFO.name} v{version}", data, single, records, schemas)


def explain_records(
    data: bytes,
    file: TextIO,
    *,
    name: str,
    topic: str = "",
    limits: PageLimits | None = None,
    schemas: SchemaResolver | None = None,
) -> None:
    """Write the page that explains record batches or a segment. Records of the internal topic ``topic`` are opened.

    For ``schemas``, see ``write_page``.
    """
    _write_single(file, name, data, {"kind": "records", "topic": topic}, [data], schemas, limits)


def _registry(schemas: SchemaResolver | None, limits: PageLimits) -> RegistryPayloads | None:
    if schemas is None:
        return None
    most = limits.decoded_payloads, limits.decoded_bytes, limits.content_bytes
    return RegistryPayloads(PayloadDeserializer(schemas), *most)


def common_facts(topics: Iterable[str]) -> dict[str, Any]:
    """Return the facts that decoding needs besides plans: headers, nested messages, and names of errors and APIs."""
    return {
        "headers": header_plans(),
        "embedded": embedded_messages(),
        "internal": internal_topics(topics),
        "errors": {str(code.value): code.name for code in ErrorCode if code.value},
    }


def plans_of(row: Row, catalog: MessageCatalog) -> dict[str, Any]:
    """Return the plans of both sides of an exchange: ``request3.12`` and so on. Unknown messages have none."""
    found: dict[str, Any] = {}
    for kind, version in (("request", row.version), ("response", row.response_version)):
        cls = catalog.find(row.api_key, "request" if kind == "request" else "response", version)
        if cls is not None:
            try:
                found[f"{kind}{row.api_key}.{version}"] = message_plan(cls, version)
            except UnsupportedVersionError:
                continue
    return found


@cache
def asset(name: str) -> str:
    """Return the text of a file of the page."""
    return (files("kafka_msgs.viewer") / "assets" / name).read_text(encoding="utf-8")


def _write_single(
    file: TextIO,
    title: str,
    data: bytes,
    single: dict[str, Any],
    records: Iterable[Any],
    schemas: SchemaResolver | None,
    limits: PageLimits | None = None,
) -> None:
    limits, parts = limits or PageLimits(), list(records)
    before, after = _shell(title)
    facts = {"title": title, "live": False, "single": single, **common_facts((single.get("topic", ""),))}
    facts |= {"plans": {}, "topicIds": {}}
    registry = _registry(schemas, limits)
    if registry is not None:
        registry.add(parts)
        facts |= registry.facts()
    chunk = _compressed(encode_entry(data, None, decompressed_contents(parts, limits.content_bytes)))
    file.write(before)
    file.write(f'<script type="application/octet-stream" class="chunk">{chunk}</script>\n')
    file.write(f'<script type="application/json" id="data">{_json(facts)}</script>\n')
    file.write(after)


@define
class _Table:
    """The rows of a page as columns; texts are numbers in a table of strings."""

    limits: PageLimits
    catalog: MessageCatalog
    registry: RegistryPayloads | None
    count: int = 0
    omitted: int = 0
    builder: RowBuilder = field(factory=RowBuilder)
    columns: dict[str, list[Any]] = field(factory=lambda: {name: [] for name in "tcikvwqplebsog"})
    strings: dict[str, int] = field(factory=lambda: {"": 0})
    topic_sets: dict[tuple[str, ...], int] = field(factory=lambda: {(): 0})
    ends: dict[int, tuple[str, str]] = field(factory=dict)
    plans: dict[str, Any] = field(factory=dict)
    apis: dict[str, str] = field(factory=dict)
    starts: list[int] = field(factory=list)

    def chunks(self, items: Iterable[Item]) -> Iterator[str]:
        """Add the rows of all items, and yield the chunks of their payloads."""
        pending: list[bytes] = []
        size = payloads = contents_left = 0
        contents_left = self.limits.content_bytes
        for item in items:
            row, records = self.builder.read(item)
            if self.count >= self.limits.exchanges or payloads + sum(map(int, filter(None, row.sizes))) > (
                self.limits.payload_bytes
            ):
                self.omitted += 1
                continue
            contents = decompressed_contents(records, contents_left)
            contents_left -= sum(map(len, contents))
            if self.registry is not None:
                self.registry.add(records)
            if not pending:
                self.starts.append(self.count)
            self._add(row)
            pending.append(encode_item(item, contents))
            size += len(pending[-1])
            payloads += len(pending[-1])
            if size >= _CHUNK_BYTES:
                yield _compressed(b"".join(pending))
                pending, size = [], 0
        if pending:
            yield _compressed(b"".join(pending))

    def facts(self, title: str) -> dict[str, Any]:
        topics = {topic for topics in self.topic_sets for topic in topics}
        return {
            "title": title,
            "live": False,
            **common_facts(topics),
            "apis": self.apis,
            "plans": self.plans,
            "topicIds": {topic_id.hex: name for topic_id, name in self.builder.topic_ids.items()},
            "strings": list(self.strings),
            "topicSets": list(self.topic_sets),
            "ends": self.ends,
            "columns": self.columns,
            "starts": self.starts,
            "omitted": self.omitted,
            **({} if self.registry is None else self.registry.facts()),
        }

    def _add(self, row: Row) -> None:
        self.count += 1
        request, response = row.sizes
        values = (
            row.time, row.connection, self._string(row.client_id), row.api_key, row.version, row.response_version,
            request, response, row.latency, row.error, self._string(row.problem), self._string(row.summary),
            self.topic_sets.setdefault(row.topics, len(self.topic_sets)), self._string(row.group),
        )  # fmt: skip
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)
        self.ends.setdefault(row.connection, row.ends)
        if row.api_key >= 0 and f"request{row.api_key}.{row.version}" not in self.plans:
            self.plans |= plans_of(row, self.catalog)
            self.apis.setdefault(str(row.api_key), api_name(row.api_key, self.catalog))
        if f"response{row.api_key}.{row.response_version}" not in self.plans and row.api_key >= 0:
            self.plans |= plans_of(row, self.catalog)

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))


def api_name(api_key: int, catalog: MessageCatalog) -> str:
    """Return the name of an API, or its key if it is unknown."""
    cls = catalog.find(api_key, "request")
    return str(api_key) if cls is None else cls.INFO.name.removesuffix("Request")


def _compressed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 6)).decode("ascii")


def _json(value: Mapping[str, Any]) -> str:
    """Return JSON for an inline script: no text in it can end the script."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _bundle() -> str:
    """Return all modules as one script."""
    modules = (_EXPORT.sub("", _IMPORT.sub("", asset(f"{name}.js"))) for name in MODULES)
    return "\n" + "\n".join(modules)


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _shell(title: str) -> tuple[str, str]:
    """Return the page before and after its data."""
    style, script = asset("panel.css"), _bundle()
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    parts = {
        "head": f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>",
        "scripts": f'\0<script type="module">{script}</script>',
    }
    page = _PLACE.sub(lambda match: parts.get(match[1], ""), asset("panel.html"))
    before, _, after = page.partition("\0")
    return before, after
