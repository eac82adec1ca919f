"""The asyncio driver: one protocol object per connection. Flows use no asyncio tasks or streams.

All requests of one event loop iteration are sent in one write. A cancelled flow is closed, so it cleans up as it does
after an error. A network belongs to the event loop that is running when it is created.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from collections.abc import Callable
from functools import partial
from math import inf, nextafter
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_msgs.client.driver import Driver
from kafka_msgs.client.flow import Flow, Future
from kafka_msgs.client.helper_threads import call_in_thread
from kafka_msgs.client.network import Endpoint, Transport, TransportReceiver, boot_time, connection_failure
from kafka_msgs.client.scheduler import Task
from kafka_msgs.errors import ClientClosedError, ConnectionFailedError, ForkedError

if TYPE_CHECKING:
    import ssl

__all__ = ["AsyncNetwork"]

T = TypeVar("T")


class AsyncNetwork(Driver):
    """Connections on asyncio. ``await run(...)`` runs a flow; many flows can run concurrently.

    The event loop advances the flows in turns: when a future that a flow waits for is done, and at the earliest
    deadline of a flow. One timer serves all flows.
    """

    def __init__(self) -> None:
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._held: float | None = None
        self._looking = False
        self._connections: set[_Connection] = set()
        self._awaited: set[asyncio.Task[None]] = set()
        self._turn_comes = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = inf
        self._closed = False
        self._pid = os.getpid()
        self._foreground: set[Task[Any]] = set()

    uptime = staticmethod(boot_time)

    def monotonic(self) -> float:
        """Return the time in seconds of the event loop's clock."""
        return self._loop.time()

    def now(self) -> float:
        """Return the time of the event loop's clock in seconds; inside a flow, the time of the current turn."""
        return self._loop.time() if self._held is None else self._held

    def offload(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call a blocking function in a helper thread."""
        return call_in_thread(function, arguments, self._loop.call_soon_threadsafe)

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> Transport:
        """Start to connect to one address of a host. A closed network makes no connections."""
        connection = _Connection(self._loop, endpoint, stream, self._connections)
        if self._closed:
            refusal = ConnectionFailedError(
                address=str(endpoint.address), step="connect", reason="the client was closed"
            )
            self._loop.call_soon(stream.connection_lost, refusal)
        else:
            connection.start(tls)
        return connection

    async def run(self, flow: Flow[T]) -> T:
        """Run a flow to its end and return its value. Raises the exceptions of the flow."""
        if self._closed or self._pid != os.getpid():
            flow.close()
            raise ClientClosedError() if self._closed else ForkedError()
        task = self._start(flow)
        if not task.done:
            ended = self._loop.create_future()
            task.add_done_callback(partial(_end, ended))
            self._foreground.add(task)
            try:
                await ended
            finally:
                self._foreground.discard(task)
                task.cancel()
        return task.result()

    async def close(self) -> None:
        """Cancel all tasks and callbacks, close every connection, and refuse new ones."""
        self._closed = True
        self._stop_background(ClientClosedError())
        for running in tuple(self._foreground):
            running.cancel(ClientClosedError())
        awaited = self._awaited - {asyncio.current_task()}
        for task in awaited:
            task.cancel()
        await asyncio.gather(*awaited, return_exceptions=True)
        connections = tuple(self._connections)
        making = [each.connect_task for each in connections if each.connect_task is not None]
        for connection in connections:
            connection.end(ClientClosedError())
        await asyncio.gather(*making, return_exceptions=True)
        await asyncio.sleep(0)
        if self._timer is not None and self._schedule.next_deadline is None:
            self._timer.cancel()

    def dispose(self, flow: Flow[None] | None, *, ends: bool) -> None:
        """End an unclosed facade without waiting. Its event loop may have ended already."""
        if flow is not None:
            flow.close()
        if ends and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._abort)

    def _abort(self) -> None:
        self._closed = True
        self._stop_background(ClientClosedError())
        for connection in tuple(self._connections):
            connection.end(ClientClosedError())

    @property
    def is_started(self) -> bool:
        """Whether the network has tasks, callbacks or connections to close."""
        return bool(self._connections or self._background) and not self._closed

    @property
    def open_connections(self) -> int:
        """The number of connections that are open or being opened."""
        return len(self._connections)

    def _start(self, flow: Flow[T]) -> Task[T]:
        task = super()._start(flow)
        self._set_timer()
        return task

    def _result(self, value: Any) -> Future[Any]:
        """Return the result of a user callback. A coroutine function resolves it later."""
        if not inspect.isawaitable(value):
            return super()._result(value)
        pending: Future[Any] = Future()
        task = self._loop.create_task(_resolve_from_awaitable(pending, value))
        self._awaited.add(task)
        task.add_done_callback(self._awaited.discard)
        return pending

    def _on_ready(self) -> None:
        """Schedule one turn for all ready flows."""
        if not self._turn_comes:
            self._turn_comes = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        moment, first = self._loop.time(), self._schedule.next_deadline
        if first is not None and first <= moment:
            # The loop may have stalled: it first reads the sockets, in two iterations, before any deadline counts.
            if not self._looking:
                self._looking = True
                self._loop.call_soon(self._loop.call_soon, self._pass, moment)
            moment = nextafter(first, -inf)
        self._advance(moment)

    def _pass(self, moment: float) -> None:
        self._looking = False
        self._advance(moment)

    def _advance(self, moment: float) -> None:
        self._turn_comes, self._held = True, moment
        try:
            self._schedule.advance(moment)
        finally:
            self._turn_comes, self._held = False, None
        if not self._looking:
            self._set_timer()

    def _set_timer(self) -> None:
        """Schedule a turn for the next deadline. An earlier timer stays set, because most waits end early."""
        moment = self._schedule.next_deadline
        if moment is not None and moment < self._timer_at:
            if self._timer is not None:
                self._timer.cancel()
            self._timer, self._timer_at = self._loop.call_at(moment, self._on_timer), moment

    def _on_timer(self) -> None:
        self._timer, self._timer_at = None, inf
        self._turn()


class _Connection(asyncio.Protocol):
    """One connection: an ``asyncio.Protocol`` that serves a ``TransportReceiver``."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        endpoint: Endpoint,
        stream: TransportReceiver,
        connections: set[_Connection],
    ) -> None:
        self._loop = loop
        self._endpoint = endpoint
        self._stream = stream
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self.connect_task: asyncio.Task[None] | None = None
        self._out: list[bytes] = []
        self._flushing = False
        self._step = "connect"

    def start(self, tls: ssl.SSLContext | None) -> None:
        """Start to connect."""
        self._connections.add(self)
        self.connect_task = self._loop.create_task(self._make(tls))

    def write(self, data: bytes) -> None:
        """Queue bytes. They are sent at the end of this event loop iteration."""
        self._out.append(data)
        if not self._flushing and self._transport is not None:
            self._flush_later()

    def close(self) -> None:
        """End the connection at once."""
        self._connections.discard(self)
        if self.connect_task is not None:
            self.connect_task.cancel()
        if self._transport is not None:
            transport, self._transport = self._transport, None
            transport.abort()
        self._out.clear()

    def end(self, error: Exception) -> None:
        """End the connection, and report the error to the receiver."""
        self.close()
        self._stream.connection_lost(error)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._stream.connection_made()
        if self._out:
            self._flush_later()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._transport is not None:
            self._stream.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        if self._transport is not None:
            self._transport = None
            self._end(None if exc is None else self._failed(exc))

    async def _make(self, tls: ssl.SSLContext | None) -> None:
        address = self._endpoint.address
        try:
            connected = await self._connect()
            self._step = "connect" if tls is None else "tls"
            options: dict[str, Any] = {} if tls is None else {"ssl": tls, "server_hostname": address.host}
            await self._loop.create_connection(lambda: self, sock=connected, **options)
            self._step = "request"
        except Exception as error:
            self._end(self._failed(error))
        finally:
            self.connect_task = None

    async def _connect(self) -> socket.socket:
        if self._endpoint.connected is not None:
            self._endpoint.connected.setblocking(False)
            return self._endpoint.connected
        made = socket.socket(self._endpoint.family, socket.SOCK_STREAM)
        try:
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.sock_connect(made, self._endpoint.sockaddr)
        except BaseException:
            made.close()
            raise
        return made

    def _flush_later(self) -> None:
        self._flushing = True
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None and self._out:
            out, self._out = self._out, []
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))
            self._stream.data_sent()

    def _failed(self, error: Exception) -> ConnectionFailedError:
        return connection_failure(self._endpoint.address, self._step, error)

    def _end(self, error: Exception | None) -> None:
        if self in self._connections:
            self._connections.discard(self)
            self._stream.connection_lost(error)


def _end(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)


async def _resolve_from_awaitable(pending: Future[Any], value: Any) -> None:
    """Await an awaitable of the user, and resolve the future with its result."""
    try:
        pending.resolve(await value)
    except Exception as error:
        pending.fail(error)
    except asyncio.CancelledError:
        pending.fail(ClientClosedError())
        raise
