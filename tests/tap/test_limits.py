"""The memory and the sockets of a proxy: closed connections leave nothing, and every limit is enforced and reported."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kafka_msgs import MetadataRequest, MetadataResponse
from kafka_msgs.capture import CaptureFault, Endpoint, Exchange, FaultKind
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.messages.metadata_response import MetadataResponseBroker
from kafka_msgs.tap import ListenerLimits, Tap
from kafka_msgs.tap.frame_forwarder import FrameForwarder
from kafka_msgs.tap.listeners import Listeners, is_usable
from kafka_msgs.wire import decode_response, encode_request, encode_response, join_frames, read_request_prefix

HOST = "127.0.0.1"
SECONDS = 30
LARGE = 2**22


def _in_time(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS))


async def _frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


def _naming(*brokers: tuple[str, int]) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """Run a broker that responds to Metadata with these addresses."""
    named = tuple(MetadataResponseBroker(node_id=n, host=host, port=port) for n, (host, port) in enumerate(brokers))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                number = read_request_prefix(await _frame(reader)).correlation_id
                writer.write(join_frames(encode_response(MetadataResponse(brokers=named), 12, correlation_id=number)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    return serve


async def _named(address: Endpoint) -> list[tuple[str, int]]:
    """Return the addresses in a Metadata response."""
    reader, writer = await asyncio.open_connection(*address)
    writer.write(join_frames(encode_request(MetadataRequest(), 12, correlation_id=1)))
    message = decode_response(await _frame(reader), 3, 12).message
    assert isinstance(message, MetadataResponse)
    writer.close()
    return [(each.host, each.port) for each in message.brokers]


def _faults(seen: list[Item]) -> list[str]:
    return [item.reason for item in seen if isinstance(item, CaptureFault) and item.kind is FaultKind.PROXY]


def test_closed_connections_free_their_buffers_without_the_garbage_collector() -> None:
    forwarders: list[weakref.ref[FrameForwarder]] = []

    async def work() -> None:
        seen: list[Item] = []
        server = await asyncio.start_server(_naming(), HOST, 0)
        async with server, Tap([Endpoint(HOST, server.sockets[0].getsockname()[1])], seen=seen.append) as tap:
            clients = [await asyncio.open_connection(*tap.address) for _ in range(8)]
            for _, writer in clients:
                writer.write((2 * LARGE).to_bytes(4, "big") + bytes(LARGE))
                await writer.drain()
            held = tap._rules.held
            while held.total < len(clients) * LARGE:
                await asyncio.sleep(0.01)
            for pair in tap._pairs:
                assert pair._tap is not None
                forwarders.extend(weakref.ref(each) for each in (pair._tap.requests, pair._tap.responses))
            for _, writer in clients:
                writer.close()
            while tap._pairs:
                await asyncio.sleep(0.01)
            assert held.total == 0
            await asyncio.sleep(0.05)
            assert [each() for each in forwarders] == [None] * len(forwarders)

    gc.disable()
    try:
        _in_time(work())
    finally:
        gc.enable()


def test_a_connection_that_exceeds_the_memory_of_all_is_closed_and_reported() -> None:
    async def work() -> None:
        seen: list[Item] = []
        server = await asyncio.start_server(_naming(), HOST, 0)
        broker = Endpoint(HOST, server.sockets[0].getsockname()[1])
        async with server, Tap([broker], seen=seen.append, max_bytes=LARGE) as tap:
            small, large = [await asyncio.open_connection(*tap.address) for _ in range(2)]
            large[1].write((4 * LARGE).to_bytes(4, "big") + bytes(2 * LARGE))
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                await large[0].readexactly(1)
            small[1].write(join_frames(encode_request(MetadataRequest(), 12, correlation_id=7)))
            assert len(await _frame(small[0])) > 4
            small[1].close()
        (reason,) = _faults(seen)
        assert f"the limit is {LARGE}" in reason
        assert any(isinstance(item, Exchange) for item in seen)

    _in_time(work())


def test_connections_above_the_limit_are_closed_and_reported_together() -> None:
    async def work() -> None:
        seen: list[Item] = []
        server = await asyncio.start_server(_naming(), HOST, 0)
        broker = Endpoint(HOST, server.sockets[0].getsockname()[1])
        async with server, Tap([broker], seen=seen.append, max_connections=2) as tap:
            clients = [await asyncio.open_connection(*tap.address)]
            clients.append(await asyncio.open_connection(*tap.address))
            while len(tap._pairs) < 2:
                await asyncio.sleep(0)
            for _ in range(5):
                reader, writer = await asyncio.open_connection(*tap.address)
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                    await reader.readexactly(1)
                writer.close()
            for _, writer in clients:
                writer.close()
        assert _faults(seen) == ["5 connections were refused: the limit of 2 is reached"]

    _in_time(work())


UNUSABLE = [("a..b", 9092), ("nul\0host", 9092), ("broker", 70_000), ("x" * 300, 9092), ("broker", 0)]


def test_unusable_addresses_get_no_listener_and_are_reported_once() -> None:
    """Clients receive them unchanged, and see the mistake of the broker's configuration."""

    async def work() -> None:
        seen: list[Item] = []
        server = await asyncio.start_server(_naming(*UNUSABLE, ("broker.example", 9092)), HOST, 0)
        async with server, Tap([Endpoint(HOST, server.sockets[0].getsockname()[1])], seen=seen.append) as tap:
            for _ in range(2):
                *same, proxied = await _named(tap.address)
                assert same == UNUSABLE
                assert proxied[0] == HOST
        assert len(_faults(seen)) == len(UNUSABLE)
        assert all("no client can connect to it" in reason for reason in _faults(seen))

    _in_time(work())


@pytest.mark.parametrize(("host", "port"), UNUSABLE[:4])
def test_a_client_of_an_unusable_bootstrap_server_is_closed(host: str, port: int) -> None:
    async def work() -> None:
        seen: list[Item] = []
        async with Tap([Endpoint(host, port)], seen=seen.append) as tap:
            reader, writer = await asyncio.open_connection(*tap.address)
            assert await reader.read() == b""
            writer.close()
            while tap._pairs:
                await asyncio.sleep(0)
        (fault,) = seen
        assert isinstance(fault, CaptureFault)
        assert "cannot connect to a broker" in fault.reason

    _in_time(work())


@pytest.mark.parametrize(
    ("host", "port", "usable"),
    [
        ("localhost", 1, True),
        ("10.0.0.1", 65_535, True),
        ("::1", 9092, True),
        ("bücher.example", 9092, True),
        ("kafka_1", 9092, True),
        ("", 9092, False),
        (".", 9092, False),
        ("a\udcff", 9092, False),
        ("x" * 64, 9092, False),
    ],
)
def test_usable_addresses(host: str, port: int, *, usable: bool) -> None:
    assert is_usable(Endpoint(host, port)) is usable


class _Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_addresses_are_limited_and_expire() -> None:
    """A named or used broker keeps its listener; the place of a forgotten one is free again."""
    clock, opened, faults = _Clock(), list[socket.socket](), list[str]()
    limits = ListenerLimits(addresses=2, seconds=100)
    listeners = Listeners(
        Endpoint(HOST, 0),
        advertised=None,
        opened=lambda listening, broker: opened.append(listening),
        on_fault=faults.append,
        limits=limits,
        clock=clock,
    )
    try:
        first, second = (listeners.translate(name, 9092) for name in ("a", "b"))
        assert listeners.translate("c", 9092) == listeners.translate("c", 9092) == ("c", 9092)
        assert faults == [
            "no listener for the broker address 'c', port 9092: the limit of 2 addresses is reached; clients receive "
            "the address unchanged"
        ]
        clock.now = 60
        assert listeners.translate("b", 9092) == second
        clock.now = 120
        assert listeners.expire(lambda broker: broker.host == "a") == []
        (expired,) = listeners.expire(lambda broker: False)
        assert expired.getsockname()[1] == first[1]
        assert listeners.translate("c", 9092)[0] == HOST
        assert len(listeners) == 2
    finally:
        for each in opened:
            each.close()


def test_without_free_sockets_clients_receive_the_original_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lack of file descriptors is reported at once, and not tried on every port."""
    faults, tried = list[str](), list[int]()
    opened: list[socket.socket] = []
    listeners = Listeners(
        Endpoint(HOST, 0), advertised=None, opened=lambda each, broker: opened.append(each), on_fault=faults.append
    )

    def refuse(host: str, port: int) -> socket.socket:
        tried.append(port)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("kafka_msgs.tap.listeners._bind", refuse)
    assert listeners.translate("a", 9092) == ("a", 9092)
    assert len(tried) == 1
    assert "Too many open files" in faults[0]
    opened[0].close()
