"""Keys and values that schemas decode: formats, codecs, limits, unusable schemas, and hostile text in the page."""

from __future__ import annotations

import asyncio
import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from kafka_msgs import ProduceRequest
from kafka_msgs.capture import Exchange
from kafka_msgs.errors import MissingExtraError, RegistryError
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.records import BatchBuilder, BatchHeader, CompressionType
from kafka_msgs.registry import PayloadDeserializer, PayloadSerializer, RegisteredSchema, StaticSchemas
from kafka_msgs.viewer import LiveViewer, PageLimits, explain_message, explain_records, write_page
from kafka_msgs.viewer.registry_payloads import RegistryPayloads
from kafka_msgs.wire import encode_request
from tests.support.browser import Browser, browser_path
from tests.viewer.node import decode_all
from tests.viewer.test_live import _get, _in_time, _until
from tests.viewer.traffic import HOSTILE, few

AVRO = RegisteredSchema(1, "AVRO", json.dumps({"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"}, {"name": "notes", "type": {"type": "array", "items": "string"}}]}))  # fmt: skip
PROTOBUF = RegisteredSchema(2, "PROTOBUF", 'syntax = "proto3"; message Order { uint64 id = 1; string note = 2; }')
JSON = RegisteredSchema(3, "JSON", "{}")
TIME = (
    'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message Order { google.protobuf.Timestamp at = 1; }'
)
SCHEMAS = StaticSchemas(
    [AVRO, PROTOBUF, JSON, RegisteredSchema(4, "AVRO", "{"), RegisteredSchema(5, "PROTOBUF", TIME)], source="a test"
)
VALUES: dict[RegisteredSchema, Any] = {
    AVRO: {"id": 2**60, "notes": ["ü", HOSTILE]},
    PROTOBUF: {"id": "9007199254740993", "note": HOSTILE},
    JSON: {"id": 9007199254740993, "deep": {"a": [None, True, 1.5]}},
}


_ALL_LINES = """(async () => {
  const box = document.getElementById("tree");
  let text = "";
  for (let top = 0; top < box.scrollHeight; top += box.clientHeight) {
    box.scrollTop = top;
    await new Promise((done) => setTimeout(done, 50));
    text += box.innerText;
  }
  return text;
})()"""


def _payload(schema: RegisteredSchema) -> bytes:
    payload = PayloadSerializer(schema, SCHEMAS)(VALUES[schema])
    assert payload is not None
    return payload


def _batch(*values: bytes, codec: CompressionType = CompressionType.NONE, key: bytes | None = None) -> bytes:
    builder = BatchBuilder(BatchHeader(), codec=codec)
    for value in values:
        assert builder.append(key, value, timestamp=1)
    return builder.build()


def _value(tree: list[Any]) -> Any:
    """Return the texts of a tree by name; the text of a leaf is JSON."""
    _, text, *kids = tree
    return {kid[0]: _value(kid) for kid in kids[0]} if kids else json.loads(text)


def _by_name(value: Any) -> Any:
    if isinstance(value, list):
        value = {str(number): each for number, each in enumerate(value)}
    return {name: _by_name(each) for name, each in value.items()} if isinstance(value, dict) else value


def _trees(*parts: bytes, **limits: int) -> tuple[dict[str, Any], RegistryPayloads]:
    found = RegistryPayloads(PayloadDeserializer(SCHEMAS), **limits)
    found.add(parts)
    return {payload: json.loads(tree) for payload, tree in found.trees.items()}, found


@pytest.mark.parametrize("codec", CompressionType)
def test_keys_and_values_of_all_formats_and_codecs(codec: CompressionType) -> None:
    trees, found = _trees(_batch(*map(_payload, VALUES), b"text", codec=codec, key=_payload(JSON)))
    assert {payload: _value(tree) for payload, tree in trees.items()} == {
        _payload(schema).hex(): _by_name(value) for schema, value in VALUES.items()
    }
    assert not found.is_limited


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"\0\0\0\0\x01\xff", "schema 1"),
        (b"\0\0\0\0\x03{", "schema 3"),
        (b"\0\0\0\0\x04x", "schema 4"),
        (b"\0\0\0\0\x05\0\x0a\x0a\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "Timestamp"),
        (b"\0\0\0\0\x09x", "a test has no schema 9"),
        (b"\0\0\0\0\x03" + b"[" * 100_000, "recursion"),
    ],
)
def test_a_payload_that_cannot_be_decoded_has_the_reason(payload: bytes, reason: str) -> None:
    trees, _ = _trees(_batch(payload, payload + b"1", codec=CompressionType.GZIP))
    assert reason.lower() in trees[payload.hex()].lower()
    assert len(trees) == 2


def test_deep_values_are_text_below_a_depth() -> None:
    payload = b"\0\0\0\0\x03" + b"[" * 100 + b"]" * 100
    tree = _trees(_batch(payload))[0][payload.hex()]
    depth = 0
    while len(tree) == 3:
        tree, depth = tree[2][0], depth + 1
    assert (depth, tree[1]) == (64, "[" * 36 + "]" * 36)


def test_the_limits_are_reported() -> None:
    payloads = [b"\0\0\0\0\x03" + b'"%d"' % number for number in range(9)]
    batch = _batch(*payloads, *payloads)
    assert [len(_trees(batch, max_payloads=most)[0]) for most in (9, 8)] == [9, 8]
    assert not _trees(batch, max_payloads=9)[1].is_limited
    for limits in ({"max_payloads": 8}, {"max_bytes": 200}, {"max_content_bytes": 100}):
        assert "above the limits" in _trees(batch, **limits)[1].facts()["undecoded"]
    assert _trees(batch[:-1], batch[:20], b"")[0] == {}


def test_a_missing_extra_and_a_silent_registry_end_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent(StaticSchemas):
        def by_id(self, schema_id: int) -> RegisteredSchema:
            raise RegistryError(source="a test", reason="gone")

    batch = _batch(_payload(AVRO))
    with pytest.raises(RegistryError, match="gone"):
        explain_records(batch, StringIO(), name="x", schemas=Silent([], source="a test"))
    error = MissingExtraError(feature="Avro", extra="registry", package="fastavro")
    monkeypatch.setattr("kafka_msgs.registry.serializers.import_module", lambda name: (_ for _ in ()).throw(error))
    with pytest.raises(MissingExtraError, match="registry"):
        explain_records(batch, StringIO(), name="x", schemas=SCHEMAS)


def test_pages_without_schemas_contain_nothing_of_them() -> None:
    for write in (
        lambda file, **more: explain_records(_batch(_payload(AVRO)), file, name="x", **more),
        lambda file, **more: write_page(few(), file, title="x", **more),
    ):
        without, with_schemas = StringIO(), StringIO()
        write(without)
        write(with_schemas, schemas=SCHEMAS)
        assert '"undecoded":' not in without.getvalue()
        assert '"undecoded":"not decoded"' in with_schemas.getvalue()


def test_the_page_adds_the_tree_below_the_payload(tmp_path: Path) -> None:
    """The trees have no bytes, so each byte still belongs to one leaf."""
    good, bad, missing = _payload(JSON), b"\0\0\0\0\x03{", b"\0\0\0\0\x03[]"
    registry = _trees(_batch(good, bad))[1]
    data = _batch(good, bad, missing)
    question = {"plan": {"records": True}, "bytes": data.hex(), "facts": registry.facts()}
    plain, decoded = decode_all(tmp_path, [question | {"facts": {}}, question])
    assert plain["leaves"] == decoded["leaves"]
    assert plain["trees"] == []
    texts = ["decoded", "id", "deep", "a", "0", "1", "2"]
    assert [name for name, _, _ in decoded["trees"]] == [*texts, "decoded", "decoded"]
    assert decoded["trees"][1][1] == "9007199254740993"
    assert "schema 3" in decoded["trees"][-2][2]
    assert decoded["trees"][-1][2] == "not decoded"


def test_a_message_is_shown_with_hostile_values_as_text(tmp_path: Path) -> None:
    if browser_path() is None:
        pytest.skip("NOT RUN: chromium not found")
    values = [_payload(AVRO), _payload(PROTOBUF)]
    data = PartitionProduceData(index=0, records=_batch(*values, codec=CompressionType.GZIP))
    message = ProduceRequest(acks=-1, topic_data=(TopicProduceData(name="orders", partition_data=(data,)),))
    path = tmp_path / "page.html"
    with path.open("w", encoding="utf-8") as file:
        explain_message(ProduceRequest, 9, message.encode(9), file, schemas=SCHEMAS)
    with Browser(tmp_path / "profile") as browser:
        browser.open(path, width=1400)
        _until(browser, "document.documentElement.dataset.ready")
        tree = browser.run(_ALL_LINES, wait=True)
        assert "RequestHeader" not in tree, "the message has no header"
        assert "decoded" in tree
        assert str(2**60) in tree
        assert "<img src=x" in tree
        assert browser.run("document.querySelectorAll('img').length") == 0
        assert browser.run("document.title") == "ProduceRequest v9"
        assert browser.complaints == []


def _produce(*values: bytes) -> Exchange:
    """Return an exchange whose request contains the values."""
    data = PartitionProduceData(index=0, records=_batch(*values, codec=CompressionType.GZIP))
    request = ProduceRequest(acks=-1, topic_data=(TopicProduceData(name="orders", partition_data=(data,)),))
    sent = encode_request(request, 9, correlation_id=7, client_id="till")
    exchange = next(item for item in few() if isinstance(item, Exchange) and item.api_key == 0)
    return evolve(exchange, request=exchange.request._replace(payload=sent, size=len(sent)))


def test_the_live_view_decodes_an_exchange_on_demand() -> None:
    class Silent(StaticSchemas):
        def by_id(self, schema_id: int) -> RegisteredSchema:
            raise RegistryError(source="a test", reason="gone")

    async def work() -> None:
        silent = Silent([], source="a test")
        async with (
            LiveViewer(title="t", schemas=SCHEMAS) as viewer,
            LiveViewer(title="t", schemas=silent) as failing,
            LiveViewer(title="t") as without,
        ):
            for each in (viewer, failing, without):
                each.add(_produce(_payload(AVRO)))
            assert b'"undecoded":' in (await _get(viewer, ""))[2]
            assert b'"undecoded":' not in (await _get(without, ""))[2]
            found = json.loads((await _get(viewer, "decoded/0"))[2])
            assert list(found["decoded"]) == [_payload(AVRO).hex()]
            found = json.loads((await _get(failing, "decoded/0"))[2])
            assert found == {"decoded": {}, "undecoded": "not decoded: a test: gone"}
            for each, path in ((viewer, "decoded/99"), (viewer, "decoded/x"), (without, "decoded/0")):
                assert (await _get(each, path))[0] == 404

    _in_time(work())


def test_the_live_page_shows_the_decoded_value(tmp_path: Path) -> None:
    if browser_path() is None:
        pytest.skip("NOT RUN: chromium not found")

    def browse(viewer: LiveViewer) -> None:
        with Browser(tmp_path / "profile") as browser:
            browser.open(viewer.address, width=1400)
            _until(browser, "document.querySelectorAll('.row').length > 0")
            browser.run("document.querySelector('.row').click()")
            _until(browser, "document.getElementById('tree').innerText.includes('batch 0')")
            assert str(2**60) in browser.run(_ALL_LINES, wait=True)
            assert browser.complaints == []

    async def work() -> None:
        async with LiveViewer(title="t", schemas=SCHEMAS) as viewer:
            viewer.add(_produce(_payload(AVRO)))
            await asyncio.to_thread(browse, viewer)

    _in_time(work())


def test_limits_of_a_page_apply() -> None:
    page = StringIO()
    batch = _batch(_payload(AVRO), _payload(JSON))
    explain_records(batch, page, name="x", schemas=SCHEMAS, limits=PageLimits(decoded_payloads=1))
    assert "above the limits" in page.getvalue()
