"""Malicious clients of a broker process: random requests with and without permissions, and bytes that are no requests.

The memory of the process stays bounded, it serves other clients meanwhile, and it reports no problem.
"""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final, Self
from uuid import UUID

import pytest

from kafka_msgs import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    UnregisterBrokerRequest,
)
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.catalog import message_class
from kafka_msgs.client import Producer
from kafka_msgs.message import Request
from kafka_msgs.wire import decode_response, encode_request
from tests.support.hostile_requests import TOPIC, hostile_request
from tests.support.skip_reasons import not_run

pytestmark = pytest.mark.slow

CONNECTIONS: Final = 20
REQUESTS: Final = 2500
WAIT: Final = 30
MIB: Final = 2**20
OPTIONS: Final = (
    *("--brokers", "2", "--json", "--authorizer", "--super-user", "User:ANONYMOUS", "--sasl-user", "alice=secret"),
    *("--listener", "PLAINTEXT=127.0.0.1:0", "--listener", "SASL:SASL_PLAINTEXT=127.0.0.1:0"),
)


class Server:
    """A broker process with a listener for everybody, who may do everything, and one for a user without permissions."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.listeners: Mapping[str, str] = json.loads(process.stdout.readline())["listeners"]

    def address(self, listener: str) -> tuple[str, int]:
        host, port = self.listeners[listener].split(",")[0].rsplit(":", 1)
        return host, int(port)

    def memory(self, name: str) -> int:
        """Return a size from the status of the process in bytes: ``VmRSS``, or its maximum, ``VmHWM``."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            not_run("the memory of a process is read from /proc")
        (line,) = (each for each in status.read_text().splitlines() if each.startswith(name))
        return int(line.split()[1]) * 1024


@contextmanager
def served() -> Iterator[Server]:
    """Run the process. In the end it still serves an ordinary client, and it reports no problem."""
    command = [sys.executable, "-m", "kafka_msgs", "broker", *OPTIONS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            server = Server(process)
            with Admin(server.listeners["PLAINTEXT"]) as admin:
                admin.create_topics([NewTopic(TOPIC, 2, 1), NewTopic("untouched", 1, 1)]).all()
            yield server
            with Producer(server.listeners["PLAINTEXT"]) as producer:
                assert producer.send_and_wait("untouched", b"value").offset == 0
        finally:
            process.terminate()
            _, problems = process.communicate(timeout=WAIT)
    assert problems == ""


class Attacker:
    """Connections to one listener, which are opened again when the broker closes them."""

    def __init__(self, server: Server, listener: str, *, login: bool) -> None:
        self._address, self._login = server.address(listener), login
        self._open = [self._connect() for _ in range(CONNECTIONS)]

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(self._address, timeout=WAIT)
        if self._login:
            for request, version in (
                (SaslHandshakeRequest(mechanism="PLAIN"), 1),
                (SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2),
            ):
                exchange(connection, request, version)
        return connection

    def send(self, data: bytes, pick: Random) -> None:
        """Send bytes on one of the connections, without waiting for a response to them."""
        at = pick.randrange(CONNECTIONS)
        connection, is_open = self._open[at], True
        try:
            connection.settimeout(1)
            connection.sendall(data)
            while is_open and select.select([connection], [], [], 0)[0]:
                is_open = connection.recv(2**20) != b""
        except OSError:
            is_open = False
        if not is_open:
            connection.close()
            self._open[at] = self._connect()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for each in self._open:
            each.close()


def exchange(connection: socket.socket, request: Request[Any], version: int) -> bytes:
    """Send a request and return the bytes of its response."""
    frame = encode_request(request, version, correlation_id=1, client_id="hostile")
    connection.sendall(len(frame).to_bytes(4, "big") + frame)
    with connection.makefile("rb") as stream:
        return stream.read(int.from_bytes(stream.read(4), "big"))


def offered(server: Server) -> Mapping[type[Request[Any]], tuple[int, int]]:
    """Return the requests that the broker offers to clients, with their versions.

    Without UnregisterBroker, which ends a broker on purpose.
    """
    request = ApiVersionsRequest(client_software_name="hostile", client_software_version="1")
    with socket.create_connection(server.address("PLAINTEXT"), timeout=WAIT) as connection:
        answer = decode_response(exchange(connection, request, 3), 18, 3).message
    assert isinstance(answer, ApiVersionsResponse)
    classes = {message_class(each.api_key, "request"): each for each in answer.api_keys}
    del classes[UnregisterBrokerRequest]
    return {
        found: (max(each.min_version, found.INFO.versions.lowest), each.max_version) for found, each in classes.items()
    }


def frames(server: Server, pick: Random, count: int) -> Iterator[bytes]:
    """Yield framed requests."""
    apis = offered(server)
    for number in range(count):
        request, version = hostile_request(apis, [UUID(int=1)], pick)
        frame = encode_request(request, version, correlation_id=number, client_id="hostile")
        yield len(frame).to_bytes(4, "big") + frame


def garbage(pick: Random, count: int) -> Iterator[bytes]:
    """Yield bytes that are no requests: random ones, and the start of a large frame of each API."""
    for _ in range(count):
        size = pick.choice((0, 1, 7, 100, 2**18, 2**19, 2**24, 2**31 - 1, -1))
        head = size.to_bytes(4, "big", signed=True) + pick.randrange(80).to_bytes(2, "big")
        yield head + pick.randbytes(pick.choice((0, 4, 1000, 2**18)))


@pytest.mark.parametrize(
    ("listener", "login", "growth"),
    [("PLAINTEXT", False, 150), ("SASL", True, 30), ("SASL", False, 30)],
    ids=["all permissions", "no permissions", "no login"],
)
def test_random_requests_leave_the_memory_of_the_process_bounded(listener: str, login: bool, growth: int) -> None:
    """``growth`` is in MiB. A client with all permissions creates topics, groups and sessions that stay."""
    pick = Random(23)
    with served() as server, Attacker(server, listener, login=login) as attacker:
        for data in frames(server, pick, REQUESTS // 5):
            attacker.send(data, pick)
        before = server.memory("VmRSS")
        for data in frames(server, pick, REQUESTS):
            attacker.send(data, pick)
        assert server.memory("VmHWM") - before < growth * MIB


@pytest.mark.parametrize(("listener", "login"), [("PLAINTEXT", False), ("SASL", True), ("SASL", False)])
def test_bytes_that_are_no_requests_leave_the_memory_of_the_process_bounded(listener: str, login: bool) -> None:
    pick = Random(7)
    with served() as server, Attacker(server, listener, login=login) as attacker:
        before = server.memory("VmRSS")
        for data in garbage(pick, 300):
            attacker.send(data, pick)
        assert server.memory("VmHWM") - before < 64 * MIB
