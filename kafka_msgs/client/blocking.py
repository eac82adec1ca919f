"""The driver for programs that block: non-blocking sockets, and one ``poll`` for all connections of a client.

While it waits, it reads and writes on every connection: a broker that writes a large answer while the client writes a
large request stops neither of them. There is no thread. A network belongs to the thread that uses it.
"""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Final

from kafka_msgs.client.driver import WaitingDriver
from kafka_msgs.client.network import Endpoint, Stream, Transport
from kafka_msgs.client.sockets import SocketTransport, TlsTransport

if TYPE_CHECKING:
    import ssl

__all__ = ["BlockingNetwork"]

_LONGEST_POLL_MS: Final = 1 << 30


class BlockingNetwork(WaitingDriver):
    """Connections over sockets. ``run`` drives a piece of logic and blocks until it ends."""

    def __init__(self) -> None:
        super().__init__()
        self._poll = select.poll()
        self._transports: dict[int, SocketTransport] = {}
        self._unsent: list[SocketTransport] = []

    def now(self) -> float:
        """Return the time in seconds of the system's monotonic clock."""
        return time.monotonic()

    def connect(self, endpoint: Endpoint, stream: Stream, tls: ssl.SSLContext | None = None) -> Transport:
        """Begin to make a connection to one address of a host.

        With ``tls`` the connection is encrypted, and the certificate must be valid as the context says. A failure that
        is known at once reaches the stream before this function returns.
        """
        transport = (
            SocketTransport(self, endpoint, stream) if tls is None else TlsTransport(self, endpoint, stream, tls)
        )
        transport.start()
        return transport

    def turn(self) -> None:
        """Do what can be done now, without waiting: let logic go on, write and read."""
        now = self.now()
        self._schedule.advance(now)
        self._send()
        self._wait(now)

    def close(self) -> None:
        """Close every connection, and every piece of logic that runs by itself."""
        self._stop_background()
        for transport in tuple(self._transports.values()):
            transport.close()

    @property
    def open_connections(self) -> int:
        """How many sockets are open."""
        return len(self._transports)

    def watch(self, descriptor: int, transport: SocketTransport, events: int) -> None:
        """Call ``ready`` of a transport when its socket has one of the events. For transports."""
        self._transports[descriptor] = transport
        self._poll.register(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Stop watching a socket. For transports."""
        if self._transports.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def flush_later(self, transport: SocketTransport) -> None:
        """Call ``flush`` of a transport when the driver waits next. For transports."""
        self._unsent.append(transport)

    def _send(self) -> None:
        """Write what is there to write."""
        unsent, self._unsent = self._unsent, []
        for transport in unsent:
            transport.flush()

    def _wait(self, moment: float | None) -> None:
        """Wait for the sockets, and read and write on those that are ready."""
        limit = None if moment is None else min(max(0.0, moment - self.now()) * 1000, _LONGEST_POLL_MS)
        for descriptor, events in self._poll.poll(limit):
            if descriptor in self._transports:
                self._transports[descriptor].ready(events)
