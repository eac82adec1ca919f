"""The proxy itself: it listens with asyncio, and makes a pair of connections for each client.

Bytes go on first. What was seen is given to ``seen`` after that. Each side is read only as fast as the other side takes
what was read. If too much waits for ``seen``, nothing is read until it has caught up.
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
"""After how many rounds of the event loop a connection that was aborted has ended; with TLS there are two layers."""

LOOPBACK: Final = Endpoint("127.0.0.1", 0)
"""Where a proxy listens if nothing else is given: ports that the system chooses, for this machine only."""


class Tap:
    """A proxy between clients and the brokers of one cluster, alive inside an ``async with`` block.

    Clients connect to ``address``. Each broker that a response names gets a listener of its own, and clients are given
    its address. ``bootstrap_servers`` are tried in order. ``seen`` gets each exchange and each fault. It must not
    raise. If it is None, only what has to change is looked at, and the proxy is faster. ``listen`` and ``advertised``
    are ``first`` and ``advertised`` of ``Listeners``. ``client_tls`` is the context of connections with clients, and
    ``broker_tls`` that of connections with brokers; None is for plain ones. The others are those of ``TapConfig``.
    Raises ``TapError`` if it cannot listen.
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
        """Where clients connect first."""
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
        """Read nothing, of any connection."""
        for pair in self._pairs:
            pair.wait_for_backlog()

    def _resume(self) -> None:
        """Read again."""
        for pair in self._pairs:
            pair.go_on()


def _tls_options(context: ssl.SSLContext | None) -> dict[str, Any]:
    """How asyncio is asked for encrypted connections.

    One that ends has 30 seconds, asyncio's default, to take what still waits for it and to say that it ends, too.
    """
    return {} if context is None else {"ssl": context}


def _nothing(item: Item) -> None:
    """Stand for a receiver where nobody asks to see."""
