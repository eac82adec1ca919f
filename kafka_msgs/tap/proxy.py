"""The proxy: it listens with asyncio, and creates a relay for each client connection.

Bytes are forwarded first and reported to ``seen`` afterwards; without ``seen``, faults are logged. Each side is read
only as fast as the other side accepts the bytes. If too many items wait for ``seen``, reading pauses until it has
caught up.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.capture.faults import CaptureFault, FaultKind
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.errors import TapError
from kafka_msgs.tap.addons import Addon
from kafka_msgs.tap.backlog import Backlog
from kafka_msgs.tap.connection import TapConfig
from kafka_msgs.tap.listeners import ListenerLimits, Listeners
from kafka_msgs.tap.relay import ClientSide, HeldBytes, RefusedSide, Relay, RelayConfig
from kafka_msgs.wire import MAX_FRAME_SIZE

if TYPE_CHECKING:
    import ssl

__all__ = ["Tap"]

_END_ROUNDS: Final = 4
"""The number of event loop iterations until an aborted connection has ended; TLS adds a second layer."""

_LOG: Final = logging.getLogger("kafka_msgs.tap")
_TIDY_SECONDS: Final = 60.0
"""The time between searches for expired addresses."""
_REFUSED_SECONDS: Final = 1.0
"""The time for which refused connections are counted before they are reported together."""

LOOPBACK: Final = Endpoint("127.0.0.1", 0)
"""The default listening address: ports that the system chooses, on this machine only."""


class Tap:
    """A proxy between clients and the brokers of one cluster. It runs inside an ``async with`` block.

    Clients connect to ``address``. Each broker in a response gets a separate listener, whose address replaces the
    broker's address. ``bootstrap_servers`` are tried in order. ``seen`` receives each exchange and each fault, and must
    not raise. If it is None, the proxy parses only the responses that it has to change, and is faster. ``listen`` and
    ``advertised`` are ``first`` and ``advertised`` of ``Listeners``. ``client_tls`` is the TLS context for client
    connections, and ``broker_tls`` for broker connections; None disables TLS. The proxy closes connections above
    ``max_connections``, and a connection whose data would let all buffers together exceed ``max_bytes``.
    ``address_limits`` limits the listeners. Each limit that is reached is reported as a fault. The remaining arguments
    are attributes of ``TapConfig``. Raises ``TapError`` if it cannot listen.
    """

    def __init__(
        self,
        bootstrap_servers: Sequence[Endpoint],
        *,
        seen: Callable[[Item], None] | None,
        listen: Endpoint = LOOPBACK,
        advertised: str | None = None,
        client_tls: ssl.SSLContext | None = None,
        broker_tls: ssl.SSLContext | None = None,
        cap_versions: bool = False,
        frame_limit: int = MAX_FRAME_SIZE,
        catalog: MessageCatalog | None = None,
        addons: Sequence[Addon] = (),
        max_connections: int = 1000,
        max_bytes: int = 2**30,
        address_limits: ListenerLimits | None = None,
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
        self._seen = seen
        self._pairs: set[Relay] = set()
        self._servers: dict[socket.socket, asyncio.Server] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened = 0
        self._addons = tuple(addons)
        self._max_connections = max_connections
        self._max_bytes = max_bytes
        self._address_limits = address_limits
        self._refused = 0
        self._tidying: asyncio.TimerHandle | None = None

    @property
    def address(self) -> Endpoint:
        """The address for clients."""
        return self._listeners.bootstrap

    async def __aenter__(self) -> Tap:
        self._backlog = Backlog(self._seen or _log_fault, on_full=self._pause, on_drained=self._resume)
        self._listeners = Listeners(
            self._listen,
            advertised=self._advertised,
            opened=self._serve,
            on_fault=self._report,
            limits=self._address_limits,
        )
        tap = TapConfig(
            translate=self._listeners.translate,
            cap_versions=self._cap_versions,
            frame_limit=self._frame_limit,
            catalog=self._catalog,
            exchanges=self._seen is not None,
            addons=self._addons,
        )
        held = HeldBytes(self._max_bytes)
        self._rules = RelayConfig(tap=tap, backlog=self._backlog, pairs=self._pairs, tls=self._broker_tls, held=held)
        self._tidying = asyncio.get_running_loop().call_later(_TIDY_SECONDS, self._tidy)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._tidying is not None:
            self._tidying.cancel()
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self._servers.values():
            server.close()
        for pair in tuple(self._pairs):
            pair.end()
        await asyncio.sleep(0)
        for pair in tuple(self._pairs):
            pair.abort()
        for _ in range(_END_ROUNDS):
            await asyncio.sleep(0)
        self._report_refused()
        self._backlog.finish()

    def _serve(self, listening: socket.socket, broker: Endpoint | None) -> None:
        """Accept connections on a socket. It has a backlog, so clients can connect already."""
        self._start(self._accept(listening, (broker,) if broker else self._bootstrap))

    async def _accept(self, listening: socket.socket, brokers: tuple[Endpoint, ...]) -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: self._protocol(brokers), sock=listening, **self._client_tls)
        self._servers[listening] = server

    def _protocol(self, brokers: tuple[Endpoint, ...]) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection from a client."""
        if len(self._pairs) < self._max_connections:
            self._opened += 1
            return ClientSide(Relay(self._opened, brokers, self._rules))
        if not self._refused:
            asyncio.get_running_loop().call_later(_REFUSED_SECONDS, self._report_refused)
        self._refused += 1
        return RefusedSide()

    def _report_refused(self) -> None:
        if self._refused:
            limit = f"the limit of {self._max_connections} is reached"
            self._report(f"{self._refused} connections were refused: {limit}")
            self._refused = 0

    def _report(self, reason: str) -> None:
        fault = CaptureFault(kind=FaultKind.PROXY, reason=reason, size=0, at=time.time_ns() // 1000)
        self._backlog.add([fault])

    def _tidy(self) -> None:
        """Close the listeners of brokers that were not named for a long time and have no connections."""
        in_use = {broker for pair in self._pairs for broker in pair.brokers}
        for listening in self._listeners.expire(in_use.__contains__):
            self._servers.pop(listening).close()
        self._tidying = asyncio.get_running_loop().call_later(_TIDY_SECONDS, self._tidy)

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _pause(self) -> None:
        """Pause reading on all connections."""
        for pair in self._pairs:
            pair.wait_for_backlog()

    def _resume(self) -> None:
        """Resume reading."""
        for pair in self._pairs:
            pair.go_on()


def _tls_options(context: ssl.SSLContext | None) -> dict[str, Any]:
    """Return the asyncio options for TLS connections.

    A closing connection has 30 seconds, asyncio's default, to send its pending bytes and the TLS close notification.
    """
    return {} if context is None else {"ssl": context}


def _log_fault(item: Item) -> None:
    """Log a fault, if no receiver is given. Exchanges are not observed then."""
    if isinstance(item, CaptureFault):
        _LOG.warning("%s", item)
