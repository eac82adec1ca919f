"""The proxy with TLS on either side, between a client and a broker that this module scripts."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

from kafka_msgs import HeartbeatRequest
from kafka_msgs.capture import CaptureFault, Endpoint, Exchange
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.client.tls import server_tls_context, tls_context
from kafka_msgs.errors import OptionError
from kafka_msgs.tap import Tap
from kafka_msgs.wire import encode_request, join_frames

trustme = pytest.importorskip("trustme")

HOST = "127.0.0.1"
SECONDS = 60
ANSWER = bytes((0, 0, 0, 1)) + bytes(40_000)


Serve: TypeAlias = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Contexts(NamedTuple):
    """TLS contexts for a server and its clients."""

    server: ssl.SSLContext
    client: ssl.SSLContext
    stranger: ssl.SSLContext
    """A client context that trusts another authority."""


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> Contexts:
    """A certificate and its key in two files, as the options expect."""
    home: Path = tmp_path_factory.mktemp("tls")
    authority, other = trustme.CA(), trustme.CA()
    issued = authority.issue_cert(HOST)
    paths = {name: home / f"{name}.pem" for name in ("authority", "other", "certificate", "key")}
    authority.cert_pem.write_to_path(paths["authority"])
    other.cert_pem.write_to_path(paths["other"])
    issued.cert_chain_pems[0].write_to_path(paths["certificate"])
    issued.private_key_pem.write_to_path(paths["key"])
    return Contexts(
        server_tls_context(certificate=paths["certificate"], key=paths["key"]),
        tls_context(authorities=paths["authority"]),
        tls_context(authorities=paths["other"]),
    )


def _in_time(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, SECONDS))


async def _answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the same response to each request."""
    while True:
        await _frame(reader)
        writer.write(join_frames(ANSWER))
        await writer.drain()


@asynccontextmanager
async def _broker(tls: ssl.SSLContext | None, serve: Serve = _answering) -> AsyncIterator[Endpoint]:
    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(served, HOST, 0, ssl=tls)
    async with server:
        yield Endpoint(HOST, server.sockets[0].getsockname()[1])


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


async def _ask(address: Endpoint, tls: ssl.SSLContext | None) -> bytes:
    reader, writer = await asyncio.open_connection(*address, ssl=tls)
    try:
        writer.write(join_frames(encode_request(HeartbeatRequest(), 4, correlation_id=1)))
        return await _frame(reader)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def _ended(tap: Tap) -> None:
    while tap._pairs:
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("to_broker", [False, True], ids=["plain broker", "TLS broker"])
@pytest.mark.parametrize("to_client", [False, True], ids=["plain client", "TLS client"])
def test_either_side_may_be_encrypted(contexts: Contexts, *, to_client: bool, to_broker: bool) -> None:
    """The reported exchanges are equal; after the client disconnects, all connections close."""
    seen: list[Item] = []

    async def work() -> None:
        ours = contexts.server if to_client else None
        theirs = contexts.client if to_broker else None
        async with (
            _broker(contexts.server if to_broker else None) as broker,
            Tap([broker], seen=seen.append, client_tls=ours, broker_tls=theirs) as tap,
        ):
            for _ in range(3):
                assert await _ask(tap.address, contexts.client if to_client else None) == ANSWER
            await _ended(tap)

    _in_time(work())
    assert [isinstance(item, Exchange) and item.api for item in seen] == ["Heartbeat"] * 3


@pytest.mark.parametrize("to_broker", [False, True], ids=["plain broker", "TLS broker"])
@pytest.mark.parametrize("to_client", [False, True], ids=["plain client", "TLS client"])
def test_a_client_that_reads_late_gets_every_byte(contexts: Contexts, *, to_client: bool, to_broker: bool) -> None:
    """The proxy pauses reading from the broker while the client is behind, then resumes until the connection ends."""

    async def work() -> None:
        enough = asyncio.Event()
        sent = 0

        async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal sent
            await _frame(reader)
            while not enough.is_set():
                writer.write(join_frames(ANSWER))
                sent += 4 + len(ANSWER)
                await writer.drain()

        async with (
            _broker(contexts.server if to_broker else None, flood) as broker,
            Tap(
                [broker],
                seen=None,
                client_tls=contexts.server if to_client else None,
                broker_tls=contexts.client if to_broker else None,
            ) as tap,
        ):
            client = contexts.client if to_client else None
            reader, writer = await asyncio.open_connection(*tap.address, ssl=client, limit=2**16)
            writer.write(join_frames(encode_request(HeartbeatRequest(), 4, correlation_id=1)))
            while not any(pair.broker and "writing" in pair.broker.holds for pair in tap._pairs):
                await asyncio.sleep(0.01)
            enough.set()
            received = await reader.read()
            assert received == join_frames(ANSWER) * (len(received) // (4 + len(ANSWER)))
            assert len(received) == sent > 2**20
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            await _ended(tap)

    _in_time(work())


def test_clients_that_agree_on_nothing_stop_no_other(contexts: Contexts) -> None:
    """The proxy closes a plaintext client, and one that does not trust the certificate."""
    seen: list[Item] = []

    async def work() -> None:
        async with _broker(None) as broker, Tap([broker], seen=seen.append, client_tls=contexts.server) as tap:
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await _ask(tap.address, None)
            with pytest.raises(ssl.SSLCertVerificationError):
                await _ask(tap.address, contexts.stranger)
            assert await _ask(tap.address, contexts.client) == ANSWER
            await _ended(tap)

    _in_time(work())
    assert len(seen) == 1


def test_a_broker_that_is_not_trusted_is_reported(contexts: Contexts) -> None:
    """The proxy closes the client, and the fault reports the reason."""
    seen: list[Item] = []

    async def work() -> None:
        async with (
            _broker(contexts.server) as broker,
            Tap([broker], seen=seen.append, broker_tls=contexts.stranger) as tap,
        ):
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await _ask(tap.address, None)
            await _ended(tap)

    _in_time(work())
    (fault,) = seen
    assert isinstance(fault, CaptureFault)
    assert f"cannot connect to a broker: {HOST}:" in fault.reason
    assert "CERTIFICATE_VERIFY_FAILED" in fault.reason


def test_the_end_closes_connections_that_are_open(contexts: Contexts) -> None:
    """The proxy closes the remaining clients."""

    async def work() -> None:
        async with _broker(contexts.server) as broker:
            async with Tap(
                [broker], seen=lambda item: None, client_tls=contexts.server, broker_tls=contexts.client
            ) as tap:
                reader, writer = await asyncio.open_connection(*tap.address, ssl=contexts.client)
                writer.write(join_frames(encode_request(HeartbeatRequest(), 4, correlation_id=1)))
                assert await _frame(reader) == ANSWER
            assert not tap._pairs
            writer.close()

    _in_time(work())


def test_files_without_a_certificate_are_refused(tmp_path: Path) -> None:
    """The error names the option."""
    path = tmp_path / "empty.pem"
    with pytest.raises(OptionError, match=r"certificate: .*No such file"):
        server_tls_context(certificate=path)
    path.write_text("")
    with pytest.raises(OptionError, match="certificate"):
        server_tls_context(certificate=path)
