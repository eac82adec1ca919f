"""The driver for asyncio: one protocol object per connection, no task and no stream of its own.

Requests that are sent in one turn of the event loop leave in one write. A piece of logic that is cancelled is closed,
so it cleans up as it does after an error. A network belongs to the event loop that is running when it is made.
"""

from __future__ import annotations

import asyncio
import inspect
import socket
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_msgs.client.network import Address, Stream, Transport, reason_of
from kafka_msgs.client.waiting import Pending, Steps, Task, any_done
from kafka_msgs.errors import ConnectionFailedError

if TYPE_CHECKING:
    import ssl

__all__ = ["AsyncNetwork"]

T = TypeVar("T")

_TICK: Final = 0.005
"""The least time in seconds between two looks at the deadlines of all waits."""


class AsyncNetwork:
    """Connections over asyncio. ``await run(...)`` drives a piece of logic; many of them run at the same time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.now: Callable[[], float] = self._loop.time
        """The time in seconds of the event loop's clock."""
        self._connections: set[_Connection] = set()
        self._alarm = _Alarm(self._loop)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def connect(self, address: Address, stream: Stream, tls: ssl.SSLContext | None = None) -> Transport:
        """Begin to make a connection. asyncio resolves host names in its own threads. A closed network makes none."""
        connection = _Connection(self._loop, address, stream, self._connections)
        if self._closed:
            refusal = ConnectionFailedError(address=str(address), step="connect", reason="the client was closed")
            self._loop.call_soon(stream.closed, refusal)
        else:
            connection.start(tls)
        return connection

    def spawn(self, steps: Steps[T]) -> Task[T]:
        """Run a piece of logic by itself, as a task of the event loop."""
        running = self._loop.create_task(self.run(steps))
        task: Task[T] = Task(running.cancel)
        self._keep(running)
        running.add_done_callback(lambda done: _hand_over(done, task))
        return task

    def perform(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function; return its result. The result of a coroutine function comes later."""
        try:
            value = function(*arguments)
        except Exception as error:
            return Pending.failed(error)
        if not inspect.isawaitable(value):
            return Pending.of(value)
        pending: Pending[Any] = Pending()
        self._keep(self._loop.create_task(_into(pending, value)))
        return pending

    async def run(self, steps: Steps[T]) -> T:
        """Run a piece of logic to its end and return its value. Raises what it raises."""
        try:
            pending, deadline = next(steps)
            while True:
                if not any_done(pending):
                    await self._until(pending, deadline)
                pending, deadline = steps.send(self.now())
        except StopIteration as stop:
            value: T = stop.value
            return value
        finally:
            steps.close()

    async def close(self) -> None:
        """End every task that ``spawn`` or ``perform`` began, and close every connection. There are no new ones."""
        self._closed = True
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        connections = tuple(self._connections)
        making = [each.making for each in connections if each.making is not None]
        for connection in connections:
            connection.close()
        self._alarm.close()
        await asyncio.gather(*making, return_exceptions=True)
        await asyncio.sleep(0)

    @property
    def open_connections(self) -> int:
        """How many connections are open or being made."""
        return len(self._connections)

    def _keep(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _until(self, pending: Sequence[Pending[Any]], deadline: float | None) -> None:
        """Wait until a pending value is there, or the deadline."""
        future = self._loop.create_future()
        wake = partial(_wake, future)
        for each in pending:
            if each.wakers is None:
                each.wakers = [wake]
            else:
                each.wakers.append(wake)
        if deadline is not None:
            self._alarm.set(future, deadline)
        try:
            await future
        finally:
            self._alarm.unset(future)
            for each in pending:
                if each.wakers is not None:
                    each.wakers.remove(wake)


class _Alarm:
    """Wakes up what waits when its deadline is reached, with one timer for all.

    Most waits end long before their deadlines, so a timer for each would be wasted work. A wait may end up to
    ``_TICK`` seconds late; so the work of looking through all waits is bounded by the time that passes.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._deadlines: dict[asyncio.Future[None], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._next = inf

    def set(self, future: asyncio.Future[None], deadline: float) -> None:
        """Wake up a future at its deadline."""
        self._deadlines[future] = deadline
        if deadline < self._next:
            self._schedule(deadline)

    def unset(self, future: asyncio.Future[None]) -> None:
        """Forget a future."""
        self._deadlines.pop(future, None)

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self, moment: float) -> None:
        self.close()
        self._next = moment
        self._timer = self._loop.call_at(moment, self._ring)

    def _ring(self) -> None:
        now = self._loop.time()
        self._next = inf
        for future, deadline in self._deadlines.items():
            if deadline <= now:
                _wake(future)
        left = min((each for each in self._deadlines.values() if each > now), default=None)
        if left is not None:
            self._schedule(max(left, now + _TICK))


class _Connection(asyncio.Protocol):
    """One connection: the protocol of asyncio on one side, the stream of the logic on the other."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, address: Address, stream: Stream, connections: set[_Connection]
    ) -> None:
        self._loop = loop
        self._address = address
        self._stream = stream
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self.making: asyncio.Task[None] | None = None
        self._out: list[bytes] = []
        self._flushing = False
        self._step = "resolve"

    def start(self, tls: ssl.SSLContext | None) -> None:
        """Begin to resolve and to connect."""
        self._connections.add(self)
        self.making = self._loop.create_task(self._make(tls))

    def write(self, data: bytes) -> None:
        """Queue bytes. They leave at the end of this turn of the event loop."""
        self._out.append(data)
        if not self._flushing and self._transport is not None:
            self._flush_later()

    def close(self) -> None:
        """End the connection at once."""
        self._connections.discard(self)
        if self.making is not None:
            self.making.cancel()
        if self._transport is not None:
            transport, self._transport = self._transport, None
            transport.abort()
        self._out.clear()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._stream.opened()
        if self._out:
            self._flush_later()

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._transport is not None:
            self._stream.received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by asyncio."""
        if self._transport is not None:
            self._transport = None
            self._end(None if exc is None else self._failed(exc))

    async def _make(self, tls: ssl.SSLContext | None) -> None:
        host, port = self._address
        try:
            places = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            self._step = "connect"
            connected = await self._connect(places)
            self._step = "connect" if tls is None else "tls"
            options: dict[str, Any] = {} if tls is None else {"ssl": tls, "server_hostname": host}
            await self._loop.create_connection(lambda: self, sock=connected, **options)
            self._step = "request"
        except Exception as error:
            self._end(self._failed(error))
        finally:
            self.making = None

    async def _connect(self, places: Sequence[Any]) -> socket.socket:
        """Try the addresses of the host one after the other; return the socket of the first that answers."""
        failure: OSError = OSError("the host name has no address")
        for family, kind, protocol, _, place in places:
            made = socket.socket(family, kind, protocol)
            made.setblocking(False)
            try:
                made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                await self._loop.sock_connect(made, place)
            except OSError as error:
                made.close()
                failure = error
            except BaseException:
                made.close()
                raise
            else:
                return made
        raise failure

    def _flush_later(self) -> None:
        self._flushing = True
        self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self._transport is not None and self._out:
            out, self._out = self._out, []
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _failed(self, error: Exception) -> ConnectionFailedError:
        return ConnectionFailedError(address=str(self._address), step=self._step, reason=reason_of(error))

    def _end(self, error: Exception | None) -> None:
        if self in self._connections:
            self._connections.discard(self)
            self._stream.closed(error)


def _hand_over(done: asyncio.Task[T], task: Task[T]) -> None:
    """Give the value of a task of asyncio to whoever waits for it."""
    if done.cancelled():
        task.cancel()
    elif (error := done.exception()) is None:
        task.resolve(done.result())
    elif isinstance(error, Exception):
        task.fail(error)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _into(pending: Pending[Any], value: Any) -> None:
    """Await a value of the user, and resolve the pending value with it."""
    try:
        pending.resolve(await value)
    except Exception as error:
        pending.fail(error)
    except asyncio.CancelledError:
        pending.fail(ConnectionAbortedError("the client was closed"))
        raise
