"""The loop on non-blocking sockets: one ``poll`` for all connections of a client.

While it waits, it reads and writes on every connection: a broker that writes a large answer while the client writes a
large request stops neither of them. ``BlockingNetwork`` runs in the thread that calls it (``threadless=True``);
``io_thread`` runs the same loop in a thread of its own.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, Final, TypeVar
from weakref import WeakSet

from kafka_msgs.client.driver import BlockingDriver
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.network import Endpoint, Transport, TransportReceiver, boot_time
from kafka_msgs.client.sockets import SocketTransport, TlsTransport
from kafka_msgs.errors import ClientBrokenError, ClientClosedError, ForkedError, KafkaMsgsError

if TYPE_CHECKING:
    import ssl

__all__ = ["BlockingNetwork"]

T = TypeVar("T")

_LONGEST_POLL_MS: Final = 1 << 30
_live: Final[WeakSet[BlockingNetwork]] = WeakSet()


class BlockingNetwork(BlockingDriver):
    """Connections over sockets. ``run`` drives a piece of logic in the calling thread, and blocks until it ends.

    Nothing happens between the calls. An exception that is not of the logic, such as ``KeyboardInterrupt`` or that of
    a signal handler, may have interrupted any piece of it. So all pieces end with ``ClientBrokenError``, and all
    connections are closed. The next call starts anew.
    """

    monotonic = staticmethod(time.monotonic)
    uptime = staticmethod(boot_time)

    def __init__(self, failure: type[Exception] = KafkaMsgsError) -> None:
        super().__init__(failure)
        self._poll = select.poll()
        self._transports: dict[int, SocketTransport] = {}
        self._made: WeakSet[SocketTransport] = WeakSet()
        """All transports: an interruption may leave one that is not watched yet."""
        self._unsent: list[SocketTransport] = []
        self._closed = False
        self._forked = False
        _live.add(self)

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> Transport:
        """Begin to make a connection to one address of a host.

        With ``tls`` the connection is encrypted, and the certificate must be valid as the context says. A failure that
        is known at once reaches the stream before this function returns.
        """
        transport = (
            SocketTransport(self, endpoint, stream) if tls is None else TlsTransport(self, endpoint, stream, tls)
        )
        self._made.add(transport)
        transport.start()
        return transport

    def run(self, flow: Flow[T]) -> T:
        """Run a piece of logic to its end and return its value. Raises what it raises."""
        try:
            self._check_usable()
            return super().run(flow)
        except KafkaMsgsError:
            raise
        except BaseException as error:
            self._interrupt(error)
            raise

    def turn(self) -> None:
        """Do what can be done now, without waiting: let logic go on, write and read."""
        if self._closed or self._forked:
            return
        try:
            self._turn_time = self.monotonic()
            self._advance()
            self._wait(self._turn_time)
        except BaseException as error:
            self._interrupt(error)
            raise
        finally:
            self._turn_time = None

    def close(self) -> None:
        """Close every connection, and every piece of logic that runs by itself."""
        if not self._forked:
            self._closed = True
            self._end_all(ClientClosedError())

    def dispose(self, flow: Flow[None] | None, *, ends: bool) -> None:
        """End what a program forgot to close, as far as that is possible without waiting."""
        if flow is not None:
            flow.close()
        if ends:
            self.close()

    @property
    def is_forked(self) -> bool:
        """Whether it belongs to the parent process."""
        return self._forked

    @property
    def is_started(self) -> bool:
        """Whether there is something that ``close`` ends."""
        return bool(self._transports or self._background) and not (self._closed or self._forked)

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

    def leave_to_parent(self) -> None:
        """In a child process: close the descriptors that were inherited, without a word to the brokers."""
        self._forked = True
        for transport in tuple(self._made):
            transport.abandon()
        self._transports.clear()
        self.events.fork()

    def _check_usable(self) -> None:
        """Raise if the network was closed, or belongs to the parent process."""
        if self._forked or self._closed:
            raise ForkedError() if self._forked else ClientClosedError()

    def _interrupt(self, cause: BaseException) -> None:
        error = ClientBrokenError(cause=cause)
        self._end_all(error)
        self._renew_schedule()
        self.events.interrupt(error)

    def _end_all(self, error: Exception) -> None:
        self._stop_background(error)
        for task in self._foreground:
            task.cancel(error)
        for transport in tuple(self._made):
            transport.end(error)

    def _send(self) -> None:
        """Write what is there to write."""
        unsent, self._unsent = self._unsent, []
        for transport in unsent:
            transport.flush()

    def _wait(self, moment: float | None) -> None:
        """Wait for the sockets, and read and write on those that are ready."""
        self._handle(self._poll.poll(self._poll_limit(moment)))

    def _poll_limit(self, moment: float | None) -> float | None:
        """Return how long ``poll`` may wait, in milliseconds."""
        return None if moment is None else min(max(0.0, moment - self.monotonic()) * 1000, _LONGEST_POLL_MS)

    def _handle(self, events: list[tuple[int, int]]) -> None:
        for descriptor, event in events:
            if descriptor in self._transports:
                self._transports[descriptor].ready(event)


def _after_fork() -> None:
    for network in tuple(_live):
        network.leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)
