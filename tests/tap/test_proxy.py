"""The proxy with sockets, between a client and a broker that this module scripts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeAlias

import pytest

from kafka_msgs import HeartbeatRequest, MetadataRequest, MetadataResponse
from kafka_msgs.capture import CaptureFault, Endpoint, Exchange
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.errors import TapError
from kafka_msgs.messages.metadata_response import MetadataResponseBroker
from kafka_msgs.tap import Tap
from kafka_msgs.wire import decode_response, encode_request, encode_response, join_frames, read_correlation_id

HOST = "127.0.0.1"
SECONDS = 30

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
Serve: TypeAlias = Callable[[Reader, Writer], Awaitable[None]]


def _in_time(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS))


@asynccontextmanager
async def _broker(serve: Serve) -> AsyncIterator[Endpoint]:
    async def served(reader: Reader, writer: Writer) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(served, HOST, 0)
    async with server:
        yield Endpoint(HOST, server.sockets[0].getsockname()[1])


async def _frame(reader: Reader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


def _answering(size: int) -> Serve:
    """Run a broker that responds to each request with its correlation id and this many bytes."""

    async def serve(reader: Reader, writer: Writer) -> None:
        while True:
            request = await _frame(reader)
            writer.write(join_frames(request[4:8] + bytes(size)))
            await writer.drain()

    return serve


def _asked(number: int) -> bytes:
    return join_frames(encode_request(HeartbeatRequest(), 4, correlation_id=number))


async def _closed_port() -> Endpoint:
    async with _broker(_answering(0)) as broker:
        return broker


def test_a_full_backlog_stops_reading_until_it_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """No exchange and no wake-up is lost: each of far more exchanges than fit is forwarded and reported."""
    monkeypatch.setattr("kafka_msgs.tap.backlog._LIMIT", 200_000)
    seen: list[Item] = []
    waiting: list[int] = []

    async def work() -> None:
        def see(item: Item) -> None:
            seen.append(item)
            waiting.append(tap._backlog.held)

        async with _broker(_answering(60_000)) as broker, Tap([broker], seen=see) as tap:
            reader, writer = await asyncio.open_connection(*tap.address)

            async def send() -> None:
                for number in range(300):
                    writer.write(_asked(number))
                    await writer.drain()

            async def read() -> None:
                for number in range(300):
                    assert read_correlation_id(await _frame(reader)) == number

            await asyncio.gather(send(), read())
            writer.close()

    _in_time(work())
    assert [item.correlation_id for item in seen if isinstance(item, Exchange)] == list(range(300))
    # The data of one event loop call may exceed the limit.
    assert max(waiting) < 200_000 + 2 * 2**20


def test_a_receiver_that_raises_stops_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not raise. If it does, asyncio reports the error, and the connections continue."""
    monkeypatch.setattr("kafka_msgs.tap.backlog._LIMIT", 20_000)
    seen: list[Item] = []
    errors: list[object] = []

    def see(item: Item) -> None:
        seen.append(item)
        raise ValueError("no")

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context["exception"]))
        async with _broker(_answering(60_000)) as broker, Tap([broker], seen=see) as tap:
            reader, writer = await asyncio.open_connection(*tap.address)
            for number in range(20):
                writer.write(_asked(number))
                assert read_correlation_id(await _frame(reader)) == number
            while len(seen) < 20:
                await asyncio.sleep(0)
            writer.close()

    _in_time(work())
    assert [str(error) for error in errors] == ["no"] * 20


def test_a_client_that_does_not_read_stops_the_broker() -> None:
    """The proxy buffers at most the limit for one direction, plus a frame; then the client receives every byte."""

    async def work() -> None:
        sent = 0

        async def flood(reader: Reader, writer: Writer) -> None:
            nonlocal sent
            await _frame(reader)
            while sent < 200 * 2**20:
                writer.write(join_frames(bytes(2**18)))
                sent += 2**18 + 4
                await writer.drain()

        async with _broker(flood) as broker, Tap([broker], seen=lambda item: None) as tap:
            reader, writer = await asyncio.open_connection(*tap.address, limit=2**16)
            writer.write(_asked(1))
            before = -1
            while not sent or before != sent:
                before = sent
                await asyncio.sleep(0.3)
            (pair,) = tap._pairs
            assert pair.client is not None
            assert 0 < sent < 200 * 2**20
            assert pair.client.transport.get_write_buffer_size() < 2 * 2**20
            received = 0
            while received < 200 * 2**20:
                received += len(await reader.read(2**20))
            writer.close()

    _in_time(work())


def test_clients_are_led_to_the_listener_of_each_broker() -> None:
    """The proxy listens for each broker in a response only at the address that the client received."""
    reached: list[str] = []

    async def work() -> None:
        async def other(reader: Reader, writer: Writer) -> None:
            reached.append("other")
            await _answering(1)(reader, writer)

        async with _broker(other) as second:

            async def serve(reader: Reader, writer: Writer) -> None:
                reached.append("bootstrap")
                brokers = (MetadataResponseBroker(node_id=2, host=second.host, port=second.port),)
                answer = encode_response(MetadataResponse(brokers=brokers), 12, correlation_id=1)
                await _frame(reader)
                writer.write(join_frames(answer))
                await writer.drain()

            async with _broker(serve) as first, Tap([first], seen=lambda item: None) as tap:
                reader, writer = await asyncio.open_connection(*tap.address)
                writer.write(join_frames(encode_request(MetadataRequest(), 12, correlation_id=1)))
                message = decode_response(await _frame(reader), 3, 12).message
                writer.close()
                assert isinstance(message, MetadataResponse)
                (named,) = message.brokers
                assert named.port not in (first.port, second.port, tap.address.port)
                reader, writer = await asyncio.open_connection(named.host, named.port)
                writer.write(_asked(9))
                assert await _frame(reader) == bytes((0, 0, 0, 9, 0))
                writer.close()

    _in_time(work())
    assert reached == ["bootstrap", "other"]


def test_the_next_bootstrap_server_is_tried() -> None:
    """A server that refuses the connection is skipped."""

    async def work() -> None:
        dead = await _closed_port()
        async with _broker(_answering(5)) as broker, Tap([dead, broker], seen=lambda item: None) as tap:
            reader, writer = await asyncio.open_connection(*tap.address)
            writer.write(_asked(3))
            assert len(await _frame(reader)) == 9
            writer.close()

    _in_time(work())


def test_no_broker_at_all_closes_the_connection_and_is_reported() -> None:
    """The fault lists the brokers that were tried."""
    seen: list[Item] = []

    async def work() -> None:
        dead = await _closed_port()
        async with Tap([dead], seen=seen.append) as tap:
            reader, writer = await asyncio.open_connection(*tap.address)
            writer.write(_asked(3))
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await _frame(reader)
            writer.close()

    _in_time(work())
    (fault,) = seen
    assert isinstance(fault, CaptureFault)
    assert "cannot connect to a broker: 127.0.0.1:" in fault.reason


def test_a_client_that_ends_its_side_still_gets_its_responses() -> None:
    """The proxy forwards the end of one direction, and the other direction continues."""

    async def work() -> None:
        async def serve(reader: Reader, writer: Writer) -> None:
            request = await _frame(reader)
            assert await reader.read() == b""
            writer.write(join_frames(request[4:8]))
            await writer.drain()

        async with _broker(serve) as broker, Tap([broker], seen=lambda item: None) as tap:
            reader, writer = await asyncio.open_connection(*tap.address)
            writer.write(_asked(4))
            writer.write_eof()
            assert await _frame(reader) == bytes((0, 0, 0, 4))
            assert await reader.read() == b""
            writer.close()

    _in_time(work())


def test_an_end_in_the_middle_of_a_response_reaches_the_client() -> None:
    """The request is reported as unanswered, and the remaining bytes as a fault. All tasks and sockets end."""
    seen: list[Item] = []

    async def work() -> None:
        async def serve(reader: Reader, writer: Writer) -> None:
            await _frame(reader)
            writer.write(join_frames(bytes(100))[:50])
            await writer.drain()

        async with _broker(serve) as broker, Tap([broker], seen=seen.append) as tap:
            for number in range(20):
                reader, writer = await asyncio.open_connection(*tap.address)
                writer.write(_asked(number))
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await _frame(reader)
                writer.close()
                await asyncio.sleep(0)
            while tap._pairs:
                await asyncio.sleep(0.01)
            assert len(asyncio.all_tasks()) <= 3

    _in_time(work())
    unanswered = [item for item in seen if isinstance(item, Exchange)]
    assert [item.response for item in unanswered] == [None] * 20
    assert len(seen) == 40


@contextmanager
def _neighbours() -> Iterator[int]:
    """Yield a port reserved for a proxy. The next port is in use."""
    while True:
        with socket.socket() as first, socket.socket() as taken:
            first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # reserves the port against other programs only
            first.bind((HOST, 0))
            port: int = first.getsockname()[1]
            try:
                taken.bind((HOST, port + 1))
            except (OSError, OverflowError):  # another program uses it, or it would be 65536
                continue
            taken.listen()
            yield port
            return


def test_ports_follow_the_first_and_those_in_use_are_left_out() -> None:
    """The bootstrap servers get the requested address; if it is in use, that is an error."""

    async def work() -> None:
        with _neighbours() as port:
            broker = Endpoint("kafka.example", 9092)
            async with Tap([broker], seen=lambda item: None, listen=Endpoint(HOST, port), advertised="proxy") as tap:
                assert tap.address == ("proxy", port)
                b, c = (tap._listeners.translate(name, 1) for name in "bc")
                assert (b[0], c[0]) == ("proxy", "proxy")
                assert port + 1 < b[1] < c[1], "other programs may have taken ports, too"
                assert tap._listeners.translate("b", 1) == b
                with pytest.raises(TapError, match=f"{HOST}:{port}: "):
                    async with Tap([broker], seen=lambda item: None, listen=Endpoint(HOST, port)):
                        pass

    _in_time(work())


def test_without_brokers_there_is_nothing_to_do() -> None:
    """An empty list is rejected."""
    with pytest.raises(TapError, match="no bootstrap servers"):
        Tap([], seen=lambda item: None)
