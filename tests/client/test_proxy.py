"""Connections through a SOCKS5 proxy on loopback, in both forms (RFC 1928, RFC 1929)."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from contextlib import suppress
from typing import Any

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import AsyncClient, Client, ClientConfig
from kafka_msgs.errors import ConnectionFailedError, OptionError
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from tests.support.faulty_server import FaultyServer

SECRET = "s3cret"


def ask_blocking(config: ClientConfig) -> int:
    with Client(config) as client:
        return len(client.call(DescribeClusterRequest(), retry=False).brokers)


def ask_async(config: ClientConfig) -> int:
    async def ask() -> int:
        async with AsyncClient(config) as client:
            return len((await client.call(DescribeClusterRequest(), retry=False)).brokers)

    return asyncio.run(ask())


both_forms = pytest.mark.parametrize("ask", [ask_blocking, ask_async], ids=["blocking", "asyncio"])


class Socks5:
    """A proxy that requires a name and a password, and resolves ``*.test`` names to loopback."""

    def __init__(self, password: str = SECRET) -> None:
        self.password = password
        self.names: list[str] = []

    def __call__(self, client: socket.socket) -> None:
        _, count = client.recv(2)
        methods = client.recv(count)
        client.sendall(b"\5\2" if 2 in methods else b"\5\xff")
        assert client.recv(1) == b"\1"
        name = client.recv(client.recv(1)[0])
        password = client.recv(client.recv(1)[0])
        good = (name, password) == (b"me", self.password.encode())
        client.sendall(b"\1" + bytes([not good]))
        if not good:
            return
        assert client.recv(4) == b"\5\1\0\3"
        host = client.recv(client.recv(1)[0]).decode()
        (port,) = struct.unpack(">H", client.recv(2))
        self.names.append(host)
        with socket.create_connection(("127.0.0.1", port)) as broker:
            client.sendall(b"\5\0\0\1\x7f\0\0\1" + struct.pack(">H", port))
            thread = threading.Thread(target=_pump, args=(broker, client), daemon=True)
            thread.start()
            _pump(client, broker)
            thread.join(10)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)


@both_forms
def test_a_proxy_resolves_names_and_carries_connections(ask: Any) -> None:
    proxy = Socks5()
    with EmbeddedBroker() as broker, FaultyServer(proxy) as server:
        port = broker.bootstrap_servers.rpartition(":")[2]
        config = ClientConfig(bootstrap_servers=f"kafka.test:{port}", proxy=f"socks5://me:{SECRET}@{server.address}")
        assert ask(config) == 1
        assert SECRET not in repr(config)
    assert proxy.names == ["kafka.test"]


@both_forms
def test_a_proxy_that_refuses_is_named_without_its_password(ask: Any) -> None:
    with FaultyServer(Socks5("other")) as server:
        config = ClientConfig(bootstrap_servers="kafka.test:9092", proxy=f"socks5://me:{SECRET}@{server.address}")
        with pytest.raises(ConnectionFailedError, match=r"kafka\.test:9092: connect: the proxy refuses") as caught:
            ask(config)
    assert SECRET not in f"{caught.value!r} {vars(caught.value)}"


@both_forms
def test_a_proxy_that_is_not_there_is_named(ask: Any) -> None:
    config = ClientConfig(bootstrap_servers="kafka.test:9092", proxy=f"socks5://me:{SECRET}@127.0.0.1:1")
    with pytest.raises(ConnectionFailedError, match="the proxy") as caught:
        ask(config)
    assert SECRET not in f"{caught.value!r} {vars(caught.value)}"


@pytest.mark.parametrize("url", ["127.0.0.1:1080", "ftp://host:1", "socks5://host", f"socks5://me:{SECRET}@host:x"])
def test_another_url_is_refused_without_showing_it(url: str) -> None:
    with pytest.raises(OptionError, match="expected SCHEME") as caught:
        ClientConfig(bootstrap_servers="b:9092", proxy=url)
    assert SECRET not in f"{caught.value!r} {vars(caught.value)}"
