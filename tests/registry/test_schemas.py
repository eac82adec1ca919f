"""Schema sources: a file, a registry's topic, and its REST interface, compared with Confluent's own client."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from kafka_msgs.errors import OptionError, RegistryError, UnknownSchemaError
from kafka_msgs.records import BatchBuilder, BatchHeader
from kafka_msgs.registry import Reference, RegisteredSchema, StaticSchemas
from kafka_msgs.registry import SchemaRegistryClient as RegistryApi
from kafka_msgs.registry.schemas import resolve_references
from tests.registry.confluent import SchemaRegistryClient

LINE = {"subject": "line", "version": 1, "id": 1, "schema": '"string"'}
USES = [{"name": "n", "subject": "line", "version": 1}]
FIRST = {"subject": "o/v 1", "version": 1, "id": 2, "schema": '"int"', "references": USES}
SECOND = {"subject": "o/v 1", "version": 2, "id": 3, "schema": "{}", "schemaType": "JSON"}
GONE = {"subject": "o/v 1", "version": 3, "id": 4, "schema": "{}", "schemaType": "JSON", "deleted": True}
ALL: list[dict[str, Any]] = [LINE, FIRST, SECOND, GONE]
OURS = [
    RegisteredSchema(1, "AVRO", '"string"', (), "line", 1),
    RegisteredSchema(2, "AVRO", '"int"', (Reference("n", "line", 1),), "o/v 1", 1),
    RegisteredSchema(3, "JSON", "{}", (), "o/v 1", 2),
    RegisteredSchema(4, "JSON", "{}", (), "o/v 1", 3),
]


def check(schemas: Any) -> None:
    """Check the results of a source of these schemas."""
    assert [schemas.version(each.subject, each.version) for each in OURS] == OURS
    assert schemas.latest("o/v 1") == OURS[2]
    assert [schemas.by_id(each.id).text for each in OURS] == [each.text for each in OURS]
    assert resolve_references(OURS[1], schemas) == [("n", OURS[0])]
    with pytest.raises(UnknownSchemaError, match="has no schema 9"):
        schemas.by_id(9)
    with pytest.raises(UnknownSchemaError, match="has no subject 'none'"):
        schemas.latest("none")
    with pytest.raises(UnknownSchemaError, match="has no version 9 of subject 'line'"):
        schemas.version("line", 9)


def test_a_list_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "schemas.json"
    path.write_text(json.dumps(ALL))
    schemas = StaticSchemas.from_file(path)
    check(schemas)
    check(pickle.loads(pickle.dumps(schemas)))
    assert list(schemas) == OURS


NO_SCHEMAS = [
    "{",
    "{}",
    "[5]",
    '[{"id": 1}]',
    '[{"id": "1", "schema": ""}]',
    '[{"id": 1, "schema": "", "schemaType": "XML"}]',
]


@pytest.mark.parametrize("content", NO_SCHEMAS)
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "schemas.json"
    path.write_text(content)
    with pytest.raises(RegistryError, match=r"schemas\.json: "):
        StaticSchemas.from_file(path)


def entry(kind: str, body: dict[str, Any] | None, **key: object) -> tuple[bytes, bytes | None]:
    value = None if body is None else json.dumps(body).encode()
    return json.dumps({"keytype": kind, "magic": 1, **key}).encode(), value


def version(body: dict[str, Any], *, gone: bool = False) -> tuple[bytes, bytes | None]:
    return entry("SCHEMA", None if gone else body, subject=body["subject"], version=body["version"])


def topic(folder: Path, *entries: tuple[bytes | None, bytes | None]) -> Path:
    """Write the log of a registry's topic, in two batches."""
    partition = folder / "_schemas-0"
    partition.mkdir()
    half = len(entries) // 2
    content = b""
    for start, part in ((0, entries[:half]), (half, entries[half:])):
        builder = BatchBuilder(BatchHeader(base_offset=start))
        for key, value in part:
            builder.append(key, value, timestamp=0)
        content += builder.build()
    (partition / f"{0:020}.log").write_bytes(content)
    return partition


def test_the_topic_of_a_registry(tmp_path: Path) -> None:
    other = {"subject": "left", "version": 1, "id": 8, "schema": '"int"'}
    again = {"subject": "back", "version": 2, "id": 8, "schema": '"int"'}
    path = topic(
        tmp_path,
        entry("NOOP", None),
        entry("CONFIG", {"compatibilityLevel": "NONE"}, subject=None),
        *(version(each) for each in ALL),
        version(other),
        version({**other, "version": 2}),
        version({**other, "version": 2}, gone=True),
        entry("DELETE_SUBJECT", {"subject": "left", "version": 1}, subject="left"),
        version({**again, "version": 1}),
        entry("DELETE_SUBJECT", {"subject": "back", "version": 1}, subject="back"),
        version(again),
    )
    schemas = StaticSchemas.from_log(path)
    check(schemas)
    assert schemas.latest("back").version == 2
    assert schemas.version("left", 1).id == 8
    with pytest.raises(UnknownSchemaError):
        schemas.latest("left")
    with pytest.raises(UnknownSchemaError):
        schemas.version("left", 2)


@pytest.mark.parametrize("key", [b"{", b"[]", b'{"keytype": "SCHEMA"}'])
def test_a_record_that_no_registry_wrote_is_named_by_its_offset(tmp_path: Path, key: bytes) -> None:
    path = topic(tmp_path, entry("NOOP", None), (key, b"{}"))
    with pytest.raises(RegistryError, match="at offset 1: not a record of a schema registry"):
        StaticSchemas.from_log(path)


def test_references_come_before_those_that_need_them_and_end_where_they_turn_in_a_circle() -> None:
    def schema(number: int, *needs: int) -> RegisteredSchema:
        references = tuple(Reference(f"n{each}", f"s{each}", 1) for each in needs)
        return RegisteredSchema(number, "AVRO", "", references, f"s{number}", 1)

    chain = [schema(number, number + 1) for number in range(100, 5000)]
    several = [schema(0, 4, 2, 1), schema(1, 3), schema(2, 3, 4), schema(3, 0, 5), schema(4, 5), schema(5)]
    source = StaticSchemas([*several, *chain, schema(5000)], source="a test")
    found = [each.id for _, each in resolve_references(several[0], source)]
    assert sorted(found) == [0, 1, 2, 3, 4, 5]
    assert found.index(5) < found.index(4) < found.index(2)
    assert found.index(3) < found.index(2)
    assert len(resolve_references(chain[0], source)) == len(chain)


class _Handler(BaseHTTPRequestHandler):
    """Responds like a registry to its readers' requests; the interface is Confluent's."""

    def do_GET(self) -> None:
        self.server.seen.append(self.headers.get("Authorization"))  # type: ignore[attr-defined]
        status, body = self._answer([unquote(each) for each in urlsplit(self.path).path.strip("/").split("/")])
        content = json.dumps(body).encode() if not isinstance(body, bytes) else body
        self.send_response(status)
        self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, parts: list[str]) -> tuple[int, Any]:
        match parts:
            case ["schemas", "ids", number]:
                found = [_without_place(each) for each in ALL if each["id"] == int(number)]
            case ["subjects", subject, "versions", "latest"]:
                found = [each for each in ALL if each["subject"] == subject and not each.get("deleted")][-1:]
            case ["subjects", subject, "versions", number]:
                found = [each for each in ALL if each["subject"] == subject and each["version"] == int(number)]
            case ["broken", *_]:
                return 500, {"error_code": 50001, "message": "broken"}
            case _:
                return 200, b"<html>"
        return (200, found[0]) if found else (404, {"error_code": 40403, "message": "not found"})

    def log_message(self, *_: object) -> None:
        pass


def _without_place(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: schema[name] for name in ("schema", "schemaType", "references") if name in schema}


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as made:
        made.seen = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_port}"


def test_the_interface_of_a_registry(server: ThreadingHTTPServer) -> None:
    api = RegistryApi(address(server))
    check(api)
    asked = len(server.seen)  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(api)).by_id(2) == api.by_id(2)
    assert len(server.seen) == asked  # type: ignore[attr-defined]


def test_confluents_client_reads_the_same_from_it(server: ThreadingHTTPServer) -> None:
    theirs = SchemaRegistryClient({"url": address(server)})
    assert theirs.get_schema(2).schema_str == RegistryApi(address(server)).by_id(2).text
    latest = theirs.get_latest_version("o/v 1")
    assert (latest.schema_id, latest.version, latest.schema.schema_type) == (3, 2, "JSON")


@pytest.mark.parametrize(
    ("options", "sent"),
    [({}, None), ({"user": "u", "password": "p:"}, "Basic dTpwOg=="), ({"token": "t"}, "Bearer t")],
)
def test_credentials(server: ThreadingHTTPServer, options: dict[str, str], sent: str | None) -> None:
    api = RegistryApi(address(server), **options)  # type: ignore[arg-type]
    api.by_id(1)
    assert server.seen == [sent]  # type: ignore[attr-defined]
    assert "password" not in repr(api)


def test_a_registry_that_does_not_answer_is_not_one_without_the_schema(server: ThreadingHTTPServer) -> None:
    for path, reason in (("/broken", "status 500: Internal Server Error"), ("/page", "is not JSON")):
        with pytest.raises(RegistryError, match=reason):
            RegistryApi(address(server) + path).by_id(1)
    with pytest.raises(RegistryError, match="refused"):
        RegistryApi("http://127.0.0.1:1").by_id(1)
    with pytest.raises(OptionError, match="it starts with neither"):
        RegistryApi("file:///etc")


@pytest.mark.parametrize(
    "change",
    [
        {"id": -1},
        {"id": 2**32},
        {"version": "1"},
        {"version": 1.5},
        {"subject": ["a"]},
        {"references": [{"name": "a", "subject": "b", "version": float("inf")}]},
        {"schema": None, "deleted": True},
    ],
)
def test_entries_that_are_not_schemas_are_refused(change: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "schemas.json"
    path.write_text(json.dumps([{"id": 1, "schema": '"int"', "subject": "s", "version": 1} | change]))
    with pytest.raises(RegistryError, match="not a registered schema"):
        StaticSchemas.from_file(path)


@pytest.mark.parametrize("text", ["[" * 100_000, '[{"deleted": true}]'])
def test_files_without_schemas_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "schemas.json"
    path.write_text(text)
    with pytest.raises(RegistryError):
        StaticSchemas.from_file(path)
