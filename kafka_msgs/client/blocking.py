"""The event loop over non-blocking sockets: one ``poll`` for all connections of a client.

While it waits, it reads and writes on every connection, so a large request and a large response cannot block each
other. ``BlockingNetwork`` runs in the calling thread (``threadless=True``); ``io_thread`` runs the same loop in a
dedicated thread.
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
    """Connections over sockets. ``run`` runs a flow in the calling thread, and blocks until it ends.

    The network is idle between calls. An exception from outside the flows, such as ``KeyboardInterrupt`` or the
    exception of a signal handler, may have interrupted any flow. So all flows end with ``ClientBrokenError``, and all
    connections are closed. The next call starts with new ones.
    """

    monotonic = staticmethod(time.monotonic)
    uptime = staticmethod(boot_time)

    def __init__(self, failure: type[Exception] = KafkaMsgsError) -> None:
        super().__init__(failure)
        self._poll = select.poll()
        self._transports: dict[int, SocketTransport] = {}
        self._made: WeakSet[SocketTransport] = WeakSet()
        """All transports, including any that an interruption left unwatched."""
        self._unsent: list[SocketTransport] = []
        self._closed = False
        self._forked = False
        _live.add(self)

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> Transport:
        """Start to connect to one address of a host.

        With ``tls`` the connection is encrypted, and the context verifies the certificate. An immediate failure reaches
        the receiver before this function returns.
        """
        transport = (
            SocketTransport(self, endpoint, stream) if tls is None else TlsTransport(self, endpoint, stream, tls)
        )
        self._made.add(transport)
        transport.start()
        return transport

    def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end and return its value. Raises the exceptions of the flow."""
        try:
            self._check_usable()
            return super().run(flow)
        except KafkaMsgsError:
            raise
        except BaseException as error:
            self._interrupt(error)
            raise

    def turn(self) -> None:
        """Advance the flows, write and read, without waiting."""
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
        """Close every connection, and cancel every task."""
        if not self._forked:
            self._closed = True
            self._end_all(ClientClosedError())

    def dispose(self, flow: Flow[None] | None, *, ends: bool) -> None:
        """End an unclosed facade, as far as possible without waiting."""
        if flow is not None:
            flow.close()
        if ends:
            self.close()

    @property
    def is_forked(self) -> bool:
        """Whether the network belongs to the parent process."""
        return self._forked

    @property
    def is_started(self) -> bool:
        """Whether the network has tasks or connections to close."""
        return bool(self._transports or self._background) and not (self._closed or self._forked)

    @property
    def open_connections(self) -> int:
        """The number of open sockets."""
        return len(self._transports)

    def watch(self, descriptor: int, transport: SocketTransport, events: int) -> None:
        """Call ``ready`` of a transport on any of these socket events. For transports."""
        self._transports[descriptor] = transport
        self._poll.register(descriptor, events)

    def forget(self, descriptor: int) -> None:
        """Stop watching a socket. For transports."""
        if self._transports.pop(descriptor, None) is not None:
            self._poll.unregister(descriptor)

    def flush_later(self, transport: SocketTransport) -> None:
        """Call ``flush`` of a transport before the driver waits next. For transports."""
        self._unsent.append(transport)

    def leave_to_parent(self) -> None:
        """Close the inherited descriptors in a child process, without sending anything to the brokers."""
        self._forked = True
        for transport in tuple(self._made):
            transport.abandon()
        self._transports.clear()
        self.events.fork()

    def _check_usable(self) -> None:
        """Raise if the network is closed or belongs to the parent process."""
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
        """Write pending data on all connections."""
        unsent, self._unsent = self._unsent, []
        for transport in unsent:
            transport.flush()

    def _wait(self, moment: float | None) -> None:
        """Wait for the sockets, and read and write on the ready ones."""
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
