"""The proxy: it listens with asyncio, and creates a relay for each client connection.

Bytes are forwarded first and reported to ``seen`` afterwards. Each side is read only as fast as the other side accepts
the bytes. If too many items wait for ``seen``, reading pauses until it has caught up.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.capture.connections import Endpoint
from kafka_msgs.capture.exchange_builder import Item
from kafka_msgs.catalog import MessageCatalog
from kafka_msgs.errors import TapError
from kafka_msgs.tap.backlog import Backlog
from kafka_msgs.tap.connection import TapConfig
from kafka_msgs.tap.listeners import Listeners
from kafka_msgs.tap.relay import ClientSide, Relay, RelayConfig
from kafka_msgs.wire import MAX_FRAME_SIZE

if TYPE_CHECKING:
    import ssl

__all__ = ["Tap"]

_END_ROUNDS: Final = 4
"""The number of event loop iterations until an aborted connection has ended; TLS adds a second layer."""

LOOPBACK: Final = Endpoint("127.0.0.1", 0)
"""The default listening address: ports that the system chooses, on this machine only."""


class Tap:
    """A proxy between clients and the brokers of one cluster. It runs inside an ``async with`` block.

    Clients connect to ``address``. Each broker in a response gets a separate listener, whose address replaces the
    broker's address. ``bootstrap_servers`` are tried in order. ``seen`` receives each exchange and each fault, and must
    not raise. If it is None, the proxy parses only the responses that it has to change, and is faster. ``listen`` and
    ``advertised`` are ``first`` and ``advertised`` of ``Listeners``. ``client_tls`` is the TLS context for client
    connections, and ``broker_tls`` for broker connections; None disables TLS. The remaining arguments are attributes of
    ``TapConfig``. Raises ``TapError`` if it cannot listen.
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
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._opened = 0

    @property
    def address(self) -> Endpoint:
        """The address for clients."""
        return self._listeners.bootstrap

    async def __aenter__(self) -> Tap:
        self._listeners = Listeners(self._listen, advertised=self._advertised, opened=self._serve)
        tap = TapConfig(
            translate=self._listeners.translate,
            cap_versions=self._cap_versions,
            frame_limit=self._frame_limit,
            catalog=self._catalog,
            exchanges=self._seen is not None,
        )
        self._backlog = Backlog(self._seen or _nothing, on_full=self._pause, on_drained=self._resume)
        self._rules = RelayConfig(tap=tap, backlog=self._backlog, pairs=self._pairs, tls=self._broker_tls)
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
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
        server = await loop.create_server(lambda: ClientSide(self._pair(brokers)), sock=listening, **self._client_tls)
        self._servers.append(server)

    def _pair(self, brokers: tuple[Endpoint, ...]) -> Relay:
        self._opened += 1
        return Relay(self._opened, brokers, self._rules)

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


def _nothing(item: Item) -> None:
    """Ignore an item, if no receiver is given."""
