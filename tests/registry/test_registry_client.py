"""The HTTP client of a schema registry, with servers that are overloaded, redirect, or never end."""

from __future__ import annotations

import json
import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from kafka_msgs.errors import OptionError, RegisteredSchemaError, RegistryError
from kafka_msgs.registry import Reference, RegisteredSchema, SchemaRegistryClient, registry_client
from kafka_msgs.registry.schemas import resolve_references

SCHEMA = json.dumps({"schema": '"string"'}).encode()
Respond = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(respond: Respond) -> Iterator[tuple[str, list[str | None]]]:
    """Run a server; yield its address, and the credentials of each request."""
    seen: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            respond(self)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()
        thread.join()


def answer(handler: BaseHTTPRequestHandler, status: int, content: bytes = SCHEMA, **headers: str) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def good(handler: BaseHTTPRequestHandler) -> None:
    answer(handler, 200)


def test_clients_with_equal_settings_are_equal_and_share_caches() -> None:
    client = SchemaRegistryClient("http://r:1", user="u", password="p")
    copy = pickle.loads(pickle.dumps(client))
    assert copy == client == SchemaRegistryClient("http://r:1", user="u", password="p")
    assert hash(copy) == hash(client)
    assert client != SchemaRegistryClient("http://r:1", user="u", password="q")
    assert "p'" not in repr(client)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_an_overloaded_registry_is_asked_again(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "_PAUSE", 0.001)
    statuses = [status, status, 200]
    with serving(lambda handler: answer(handler, statuses.pop(0), Retry_After="0")) as (url, seen):
        assert SchemaRegistryClient(url).by_id(1).text == '"string"'
    assert len(seen) == 3


@pytest.mark.parametrize(("status", "requests"), [(500, 4), (401, 1), (404, 1)])
def test_requests_are_repeated_a_few_times_only(status: int, requests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_client, "_PAUSE", 0.001)
    with serving(lambda handler: answer(handler, status)) as (url, seen), pytest.raises((RegistryError, LookupError)):
        SchemaRegistryClient(url).by_id(1)
    assert len(seen) == requests


def redirecting(to: str) -> Respond:
    return lambda handler: answer(handler, 302, b"", Location=to)


def test_credentials_are_not_sent_to_another_address() -> None:
    with serving(good) as (other, seen_there), serving(redirecting(f"{other}/x")) as (url, seen):
        assert SchemaRegistryClient(url, token="hush").by_id(1).text == '"string"'
    assert (seen, seen_there) == (["Bearer hush"], [None])


def test_credentials_follow_a_redirect_to_the_same_address() -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        good(handler) if handler.path == "/moved" else answer(handler, 302, b"", Location="/moved")

    with serving(respond) as (url, seen):
        assert SchemaRegistryClient(url, token="t").by_id(1).text == '"string"'
    assert seen == ["Bearer t", "Bearer t"]


@pytest.mark.parametrize("to", ["ftp://127.0.0.1/x", "file:///etc/hostname"])
def test_redirects_to_other_protocols_are_refused(to: str) -> None:
    with serving(redirecting(to)) as (url, _), pytest.raises(RegistryError, match="status 302"):
        SchemaRegistryClient(url).by_id(1)


@pytest.mark.parametrize("to", ["http://h:99999/", "http://[/", "http://127.0.0.1:x/", f"http://{'a' * 400}/"])
def test_redirects_to_invalid_addresses_are_refused(to: str) -> None:
    with serving(redirecting(to)) as (url, _), pytest.raises(RegistryError, match="redirect"):
        SchemaRegistryClient(url, token="hush").by_id(1)


@pytest.mark.parametrize("url", ["http://[", "registry:8081", "file:///x", "http://r/\u00e9", ""])
def test_an_address_is_an_http_url(url: str) -> None:
    with pytest.raises(OptionError, match="not a valid URL"):
        SchemaRegistryClient(url)


@pytest.mark.parametrize("token", ["hush\nx", "hush\u0100"])
def test_invalid_credentials_are_not_shown(token: str) -> None:
    with pytest.raises(RegistryError, match="invalid address, credentials or redirect") as caught:
        SchemaRegistryClient("http://127.0.0.1:1", token=token).by_id(1)
    assert "hush" not in str(caught.value)
    with pytest.raises(RegistryError) as caught:
        SchemaRegistryClient("http://user:hush@127.0.0.1:1").by_id(1)
    assert "hush" not in str(caught.value)


def test_endless_redirects_end() -> None:
    def respond(handler: BaseHTTPRequestHandler) -> None:
        answer(handler, 302, b"", Location=f"/{len(handler.path)}{handler.path}")

    with serving(respond) as (url, seen), pytest.raises(RegistryError, match="status 302"):
        SchemaRegistryClient(url).by_id(1)
    assert len(seen) <= 6


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"])
def test_a_server_that_drips_bytes_ends_with_the_timeout(start: bytes) -> None:
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        connected, _ = listener.accept()
        with connected:
            connected.sendall(start or b"HTTP/1.1 200 OK\r\nX: ")
            for _ in range(1000):
                try:
                    connected.sendall(b"x")
                except OSError:
                    return
                time.sleep(0.02)

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    with listener, pytest.raises(RegistryError):
        SchemaRegistryClient(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_ms=300).by_id(1)
    thread.join(10)
    assert not thread.is_alive()


def test_an_endless_chain_of_references_ends() -> None:
    class Endless:
        def version(self, subject: str, version: int) -> RegisteredSchema:
            needs = (Reference("n", f"{int(subject) + 1}", 1),)
            return RegisteredSchema(int(subject), "AVRO", '"int"', needs, subject, 1)

    source: Any = Endless()
    with pytest.raises(RegisteredSchemaError, match="more than 10,000 references"):
        resolve_references(source.version("0", 1), source)
