"""Failing brokers: the client raises one clear error in time and releases all resources."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from kafka_msgs.client import AsyncClient, Client, ClientConfig
from kafka_msgs.errors import ConnectionFailedError, DeadlineError
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from kafka_msgs.messages.describe_cluster_response import DescribeClusterResponse
from kafka_msgs.wire import encode_response, join_frames
from tests.support.faulty_server import Behaviour, FaultyServer, answer_versions, greet, receive

Call = Callable[..., DescribeClusterResponse]

ROUNDS: Final = int(os.environ.get("ROUNDS", "20"))
"""How often the tests for leaks repeat each failure. ``make faults ROUNDS=10000`` is the long run."""

SOME_BLOCKS: Final = 500
"""Memory blocks that caches may allocate meanwhile. A leak would cost hundreds of blocks per client, in every round."""


def call_blocking(address: str, *, retry: bool = False, **settings: float) -> DescribeClusterResponse:
    """Call a server with the blocking client."""
    with Client(_config(address, settings)) as client:
        return client.call(DescribeClusterRequest(), retry=retry)


def call_async(address: str, *, retry: bool = False, **settings: float) -> DescribeClusterResponse:
    """Call a server with the asyncio client."""

    async def call() -> DescribeClusterResponse:
        async with AsyncClient(_config(address, settings)) as client:
            answer = await client.call(DescribeClusterRequest(), retry=retry)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return answer

    return asyncio.run(call())


def _config(address: str, settings: dict[str, float]) -> ClientConfig:
    return ClientConfig(bootstrap_servers=address, **{"timeout": 10.0, **settings})  # type: ignore[arg-type]


both_forms = pytest.mark.parametrize("call", [call_blocking, call_async], ids=["blocking", "asyncio"])


def _answer(connection: socket.socket) -> bytes:
    """Return the encoded response to the next request."""
    frame = receive(connection)
    response = DescribeClusterResponse(cluster_id="faulty", brokers=())
    header = frame.header
    return join_frames(encode_response(response, header.request_api_version, correlation_id=header.correlation_id))


def http(connection: socket.socket) -> None:
    """A port that does not speak Kafka's protocol."""
    connection.recv(1)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    connection.recv(1 << 16)


def killed_in_a_response(connection: socket.socket) -> None:
    """A broker that is killed while it sends a response."""
    greet(connection)
    connection.sendall(_answer(connection)[:-5])


def closes_its_side(connection: socket.socket) -> None:
    """A broker that closes its side of the connection, and continues reading."""
    greet(connection)
    receive(connection)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)


def silent(connection: socket.socket) -> None:
    """A broker that accepts connections, and never responds."""
    while connection.recv(1 << 16):
        pass


def silent_after_greeting(connection: socket.socket) -> None:
    """A broker that stops responding."""
    greet(connection)
    silent(connection)


def wrong_number(connection: socket.socket) -> None:
    """A broker that responds to a request that was never sent."""
    connection.sendall(answer_versions(receive(connection), number=77))
    silent(connection)


def negative_size(connection: socket.socket) -> None:
    """A broker whose frame has a negative size."""
    receive(connection)
    connection.sendall(b"\xff\xff\xff\xff")
    silent(connection)


def drip(connection: socket.socket) -> None:
    """A broker that sends single bytes."""
    greet(connection)
    for byte in _answer(connection):
        connection.sendall(bytes((byte,)))
        time.sleep(0.002)
    silent(connection)


BREAKS: Final[dict[str, tuple[Behaviour, str]]] = {
    "http": (http, "negotiate: .*a frame of 1213486160 bytes"),
    "killed": (killed_in_a_response, "request: (the connection was closed|.*ended)"),
    "half closed": (closes_its_side, "request: the connection was closed"),
    "wrong number": (wrong_number, "negotiate: .*correlation id 77"),
    "negative size": (negative_size, "negotiate: .*a frame of -1 bytes"),
}


@both_forms
@pytest.mark.parametrize("name", BREAKS)
def test_a_broker_that_breaks_off_is_a_clear_error_at_once(name: str, call: Call) -> None:
    behave, text = BREAKS[name]
    with FaultyServer(behave) as server, pytest.raises(ConnectionFailedError, match=text) as caught:
        call(server.address)
    assert caught.value.address == server.address


@both_forms
def test_a_broker_that_never_greets_is_given_up_in_time(call: Call) -> None:
    with FaultyServer(silent) as server, pytest.raises(ConnectionFailedError, match="negotiate: the time is over"):
        call(server.address, connect_timeout=0.3)


@both_forms
def test_the_deadline_ends_every_state(call: Call) -> None:
    with FaultyServer(silent) as server, pytest.raises(DeadlineError, match="a connection to"):
        call(server.address, timeout=0.3)
    with FaultyServer(silent_after_greeting) as server, pytest.raises(DeadlineError, match="the answer to DescribeC"):
        call(server.address, timeout=0.5)


@both_forms
def test_a_broker_that_stops_answering_is_given_up_in_time(call: Call) -> None:
    with FaultyServer(silent_after_greeting) as server, pytest.raises(ConnectionFailedError, match=r"within 0\.4 s"):
        call(server.address, request_timeout=0.4)


@both_forms
def test_an_answer_that_drips_is_read(call: Call) -> None:
    with FaultyServer(drip) as server:
        assert call(server.address).cluster_id == "faulty"


@both_forms
def test_a_host_name_that_does_not_resolve_is_an_error_at_once(call: Call) -> None:
    with pytest.raises(ConnectionFailedError, match=r"no-such-host\.invalid:9092: resolve: "):
        call("no-such-host.invalid:9092", retry=True)


@both_forms
def test_a_port_without_a_server_is_tried_until_the_deadline(call: Call) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(DeadlineError, match="connect: Connection refused"):
        call(f"127.0.0.1:{port}", retry=True, timeout=0.5)
    with pytest.raises(ConnectionFailedError, match="connect: Connection refused"):
        call(f"127.0.0.1:{port}")


@both_forms
def test_a_broken_connection_is_replaced_within_the_same_call(call: Call) -> None:
    behaviours: Iterator[Behaviour] = iter([killed_in_a_response, closes_its_side, drip])
    with FaultyServer(lambda connection: next(behaviours)(connection)) as server:
        assert call(server.address, retry=True).cluster_id == "faulty"
        assert server.served == 3


def _files() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


def _blocks() -> int:
    """Return the number of memory blocks in use.

    Blocks are counted, not bytes: a table of the interpreter that grows once is one block, whatever its size.
    """
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted through /proc")
@both_forms
@pytest.mark.parametrize("name", BREAKS)
def test_failures_leave_no_socket_and_no_memory(name: str, call: Call, caplog: pytest.LogCaptureFixture) -> None:
    behave, _ = BREAKS[name]
    caplog.set_level(logging.CRITICAL, "kafka_msgs.client")  # pytest keeps log records

    def fail(times: int) -> None:
        for _ in range(times):
            with pytest.raises(ConnectionFailedError):
                call(server.address)

    with FaultyServer(behave) as server:
        fail(20)
        files = _files()
        before = _blocks()
        fail(ROUNDS)
        after = _blocks()
        assert _files() <= files
        assert after - before < ROUNDS // 2 + SOME_BLOCKS


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files are counted through /proc")
def test_cancelled_calls_leave_no_task_and_no_socket() -> None:
    async def run() -> None:
        with FaultyServer(silent_after_greeting) as server:
            files = len(os.listdir("/proc/self/fd"))
            for _ in range(max(5, ROUNDS // 5)):
                async with AsyncClient(server.address) as client:
                    calls = [asyncio.create_task(client.call(DescribeClusterRequest())) for _ in range(5)]
                    await asyncio.sleep(0.01)
                    for each in calls:
                        each.cancel()
                    ended = await asyncio.gather(*calls, return_exceptions=True)
                    assert all(isinstance(each, asyncio.CancelledError) for each in ended)
                assert asyncio.all_tasks() == {asyncio.current_task()}
                assert client.network.open_connections == 0
            async with asyncio.timeout(60):
                while len(os.listdir("/proc/self/fd")) > files + 1:
                    await asyncio.sleep(0.01)

    asyncio.run(run())


def test_one_call_that_is_cancelled_does_not_disturb_the_others() -> None:
    def serve(connection: socket.socket) -> None:
        greet(connection)
        while True:
            answer = _answer(connection)
            time.sleep(0.01)
            connection.sendall(answer)

    async def run() -> None:
        with FaultyServer(serve) as server:
            async with AsyncClient(server.address) as client:
                calls = [asyncio.create_task(client.call(DescribeClusterRequest())) for _ in range(10)]
                await asyncio.sleep(0.03)
                for each in calls[::2]:
                    each.cancel()
                answers = await asyncio.gather(*calls, return_exceptions=True)
                kept = [each for each in answers if isinstance(each, DescribeClusterResponse)]
                assert len(kept) >= 5
                assert (await client.call(DescribeClusterRequest())).cluster_id == "faulty"
                assert server.served == 1

    asyncio.run(run())
