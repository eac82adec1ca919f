"""The proxy itself: sockets with asyncio, around connections that do no input or output.

Bytes go on first. What was seen is given to ``seen`` after that, one exchange in each round of the event loop, so that
a slow receiver delays no bytes by more than one exchange. Each side is read only as fast as the other side takes what
was read. If too much waits for ``seen``, nothing is read until it has caught up.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.capture.connections import Connection, Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.errors import TapError
from kafka_msgs.lookup import MessageCatalog
from kafka_msgs.tap.connection import TapConnection, TapRules
from kafka_msgs.tap.listeners import Listeners
from kafka_msgs.wire import MAX_FRAME_SIZE

if TYPE_CHECKING:
    import ssl

__all__ = ["Tap"]

_WRITE_LIMIT: Final = 2**20
"""How many bytes may wait for one side before the other is not read any more."""
_BACKLOG_LIMIT: Final = 64 * 2**20
_ITEM_BYTES: Final = 2_000
_CONNECT_SECONDS: Final = 30
_END_ROUNDS: Final = 4
"""After how many rounds of the event loop a connection that was aborted has ended; with TLS there are two layers."""
_TLS_END_SECONDS: Final = 5
"""How long an encrypted connection waits for the other side to say that it ends, too."""

LOOPBACK: Final = Endpoint("127.0.0.1", 0)
"""Where a proxy listens if nothing else is given: ports that the system chooses, for this machine only."""


class Tap:
    """A proxy between clients and the brokers of one cluster, alive inside an ``async with`` block.

    Clients connect to ``address``. Each broker that a response names gets a listener of its own, and clients are given
    its address. ``bootstrap_servers`` are tried in order. ``seen`` gets each exchange and each fault. It must not
    raise. ``listen`` and ``advertised`` are ``first`` and ``advertised`` of ``Listeners``. ``client_tls`` is the
    context of connections with clients, and ``broker_tls`` that of connections with brokers; None is for plain ones.
    The others are those of ``TapRules``. Raises ``TapError`` if it cannot listen.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[Endpoint],
        *,
        seen: Callable[[Item], None],
        listen: Endpoint = LOOPBACK,
        advertised: str | None = None,
        client_tls: ssl.SSLContext | None = None,
        broker_tls: ssl.SSLContext | None = None,
        cap_versions: bool = False,
        frame_limit: int = MAX_FRAME_SIZE,
        catalog: MessageCatalog | None = None,
    ) -> None:
        if not bootstrap_servers:
            raise TapError(address="", reason="no bootstrap servers")
        self._bootstrap = tuple(bootstrap_servers)
        self._listen = listen
        self._advertised = advertised
        self._client_tls = _tls_options(client_tls)
        self._broker_tls = _tls_options(broker_tls)
        self._cap_versions = cap_versions
        self._frame_limit = frame_limit
        self._catalog = catalog
        self._backlog = _Backlog(seen, self)
        self._pairs: set[_Pair] = set()
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened = 0

    @property
    def address(self) -> Endpoint:
        """Where clients connect first."""
        return self._listeners.bootstrap

    async def __aenter__(self) -> Tap:
        self._listeners = Listeners(self._listen, advertised=self._advertised, opened=self._serve)
        self._rules = TapRules(
            translate=self._listeners.translate,
            cap_versions=self._cap_versions,
            frame_limit=self._frame_limit,
            catalog=self._catalog,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers:
            server.close()
        for pair in tuple(self._pairs):
            pair.end()
        await asyncio.sleep(0)
        for pair in tuple(self._pairs):
            pair.abort()
        for _ in range(_END_ROUNDS):
            await asyncio.sleep(0)
        self._backlog.finish()

    def _serve(self, listening: socket.socket, broker: Endpoint | None) -> None:
        """Accept connections on a socket. It has a backlog, so clients can connect already."""
        self._start(self._accept(listening, (broker,) if broker else self._bootstrap))

    async def _accept(self, listening: socket.socket, brokers: tuple[Endpoint, ...]) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _ClientSide(self._pair(brokers)), sock=listening, **self._client_tls)
        self._servers.append(server)

    def _pair(self, brokers: tuple[Endpoint, ...]) -> _Pair:
        self._opened += 1
        return _Pair(self._opened, brokers, self._rules, self._backlog, self._pairs, self._broker_tls)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def pause(self) -> None:
        """Read nothing, of any connection."""
        for pair in self._pairs:
            pair.wait_for_backlog()

    def resume(self) -> None:
        """Read again."""
        for pair in self._pairs:
            pair.go_on()


class _Backlog:
    """What was seen and is not reported yet."""

    def __init__(self, seen: Callable[[Item], None], tap: Tap) -> None:
        self.is_full = False
        self._seen = seen
        self._tap = tap
        self._items: deque[tuple[Item, int]] = deque()
        self._held = 0
        self._scheduled = False

    def add(self, items: Sequence[Item]) -> None:
        for item in items:
            size = _ITEM_BYTES + _bytes_of(item)
            self._items.append((item, size))
            self._held += size
        if self._items and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._report_one)
        if self._held > _BACKLOG_LIMIT and not self.is_full:
            self.is_full = True
            self._tap.pause()

    def finish(self) -> None:
        while self._items:
            self._take()

    def _report_one(self) -> None:
        """Report one item. If ``seen`` raises, the others still follow, so that no connection waits for ever."""
        try:
            if self._items:
                self._take()
        finally:
            self._scheduled = bool(self._items)
            if self._scheduled:
                asyncio.get_running_loop().call_soon(self._report_one)
            if self.is_full and self._held < _BACKLOG_LIMIT // 2:
                self.is_full = False
                self._tap.resume()

    def _take(self) -> None:
        item, size = self._items.popleft()
        self._held -= size
        self._seen(item)


def _bytes_of(item: Item) -> int:
    if isinstance(item, CaptureFault):
        return 0
    return item.request.size + (item.response.size if item.response else 0)


class _Pair:
    """A connection of a client, and the one to a broker that belongs to it."""

    def __init__(
        self,
        number: int,
        brokers: tuple[Endpoint, ...],
        rules: TapRules,
        backlog: _Backlog,
        pairs: set[_Pair],
        tls: dict[str, Any],
    ) -> None:
        self._number = number
        self._brokers = brokers
        self._rules = rules
        self._backlog = backlog
        self._pairs = pairs
        self._tls = tls
        self._open: set[_Side] = set()
        self._tap: TapConnection | None = None
        self._client: _Side | None = None
        self._broker: _Side | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._client_ended = False

    def opened(self, side: _Side) -> None:
        """A connection of this pair is there."""
        self._open.add(side)
        self._pairs.add(self)

    def lost(self, side: _Side) -> None:
        """A connection of this pair is gone; so the other one ends, too."""
        self._open.discard(side)
        self.end()
        if not self._open:
            self._pairs.discard(self)

    def accepted(self, side: _Side) -> None:
        """Connect to a broker. Until that is done, the client is not read."""
        self._client = side
        side.hold("connect")
        if self._backlog.is_full:
            side.hold("backlog")
        self._connecting = asyncio.get_running_loop().create_task(self._connect(side.peer))

    async def _connect(self, client: Endpoint) -> None:
        loop = asyncio.get_running_loop()
        reasons = []
        for broker in self._brokers:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    _, side = await loop.create_connection(
                        lambda: _BrokerSide(self), broker.host, broker.port, **self._tls
                    )
            except OSError as error:  # This includes TimeoutError.
                reasons.append(f"{broker}: {_reason(error)}")
                continue
            self._joined(side, Connection(self._number, client, broker))
            return
        connection = Connection(self._number, client, self._brokers[0])
        reason = "cannot connect to a broker: " + "; ".join(reasons)
        self._backlog.add([CaptureFault(kind=FaultKind.GAP, reason=reason, size=0, at=_now(), connection=connection)])
        self.end()

    def _joined(self, broker: _Side, connection: Connection) -> None:
        assert self._client is not None
        self._broker = broker
        self._tap = TapConnection(connection, self._rules)
        self._client.other, broker.other = broker, self._client
        for name in self._client.holds - {"connect"}:
            broker.hold(name)
        self._client.release("connect")

    def from_client(self, data: bytes) -> None:
        if self._tap is None:  # Encrypted connections give what they still had when they were closed.
            return
        assert self._broker is not None
        assert self._client is not None
        self._broker.transport.write(data)
        self._backlog.add(self._tap.client_sent(data, _now()))
        if self._tap.full:
            self._client.hold("in flight")

    def from_broker(self, data: bytes) -> None:
        if self._tap is None or self._client is None:  # Brokers do not speak first; what is not Kafka may.
            return
        out, items = self._tap.broker_sent(data, _now())
        for piece in out:
            self._client.transport.write(piece)
        self._backlog.add(items)
        if not self._tap.full:
            self._client.release("in flight")

    def wait_for_backlog(self) -> None:
        for side in (self._client, self._broker):
            if side is not None:
                side.hold("backlog")

    def go_on(self) -> None:
        for side in (self._client, self._broker):
            if side is not None:
                side.release("backlog")

    def end(self) -> None:
        """Close both connections; what still waits to be sent is sent."""
        if self._connecting is not None:
            self._connecting.cancel()
        for side in self._open:
            if not side.transport.is_closing():  # A second close of an encrypted transport makes abort do nothing.
                side.transport.close()
        if self._tap is not None:
            self._backlog.add(self._tap.close(_now()))
            self._tap = None

    def abort(self) -> None:
        """Close what has not ended yet; what waits to be sent is lost."""
        for side in self._open:
            side.transport.abort()


class _Side(asyncio.Protocol):
    """One of the two connections of a pair. It is read while nothing holds it."""

    transport: asyncio.Transport
    other: _Side | None

    def __init__(self, pair: _Pair) -> None:
        self.holds: set[str] = set()
        self.other = None
        self._pair = pair

    @property
    def peer(self) -> Endpoint:
        address = self.transport.get_extra_info("peername") or ("", 0)
        return Endpoint(address[0], address[1])

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=_WRITE_LIMIT)
        self._pair.opened(self)

    def hold(self, why: str) -> None:
        """Do not read for a reason."""
        if not self.holds and not self.transport.is_closing():
            self.transport.pause_reading()
        self.holds.add(why)

    def release(self, why: str) -> None:
        """Take a reason away; read if no other is left."""
        if why in self.holds:
            self.holds.remove(why)
            if not self.holds and not self.transport.is_closing():
                self.transport.resume_reading()

    def pause_writing(self) -> None:
        if self.other is not None:
            self.other.hold("writing")

    def resume_writing(self) -> None:
        if self.other is not None:
            self.other.release("writing")

    def eof_received(self) -> bool:
        """Pass on that this side sends no more; it may still receive. With TLS an end is that of both directions."""
        if self.other is None or self.other.transport.is_closing():
            return False
        if not (self.transport.can_write_eof() and self.other.transport.can_write_eof()):
            return False
        self.other.transport.write_eof()
        return True

    def connection_lost(self, error: Exception | None) -> None:
        self._pair.lost(self)


class _ClientSide(_Side):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._pair.accepted(self)

    def data_received(self, data: bytes) -> None:
        self._pair.from_client(data)


class _BrokerSide(_Side):
    def data_received(self, data: bytes) -> None:
        self._pair.from_broker(data)

    def eof_received(self) -> bool:
        """A broker that sends no more is gone: what was sent reaches the client, then both connections end."""
        return False


def _tls_options(context: ssl.SSLContext | None) -> dict[str, Any]:
    """How asyncio is asked for encrypted connections."""
    return {} if context is None else {"ssl": context, "ssl_shutdown_timeout": _TLS_END_SECONDS}


def _reason(error: OSError) -> str:
    """Why no connection was made. Some errors of asyncio have no text."""
    silent = "no answer in time" if isinstance(error, TimeoutError) else "the connection was closed"
    return error.strerror or str(error) or silent


def _now() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000
