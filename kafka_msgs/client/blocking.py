"""The driver for programs that block: non-blocking sockets, and one ``poll`` for all connections of a client.

While it waits, it reads and writes on every connection: a broker that writes a large answer while the client writes a
large request stops neither of them. There is no thread. A network belongs to the thread that uses it.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_msgs.client.network import Address, Stream, Transport
from kafka_msgs.client.sockets import SocketTransport, TlsTransport
from kafka_msgs.client.waiting import Pending, Steps, Task, Wait, any_done

if TYPE_CHECKING:
    import ssl

__all__ = ["BlockingNetwork"]

T = TypeVar("T")

_GONE: Final[tuple[Task[Any], Wait]] = (Task(lambda: None), Wait((), None))
"""Stands for a piece of logic that ended in the meantime: nothing lets it go on."""

_LONGEST_POLL_MS: Final = 1 << 30


class BlockingNetwork:
    """Connections over sockets. ``run`` drives a piece of logic and blocks until it ends."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._transports: dict[int, SocketTransport] = {}
        self._unsent: list[SocketTransport] = []
        self._tasks: dict[Steps[Any], tuple[Task[Any], Wait]] = {}

    def now(self) -> float:
        """Return the time in seconds of the system's monotonic clock."""
        return time.monotonic()

    def connect(self, address: Address, stream: Stream, tls: ssl.SSLContext | None = None) -> Transport:
        """Begin to make a connection. Resolving a host name blocks: the system offers no other way.

        With ``tls`` the connection is encrypted, and the certificate must be valid as the context says. A failure that
        is known at once reaches the stream before this function returns.
        """
        transport = SocketTransport(self, address, stream) if tls is None else TlsTransport(self, address, stream, tls)
        transport.start()
        return transport

    def spawn(self, steps: Steps[T]) -> Task[T]:
        """Run a piece of logic by itself: up to its first wait now, and on whenever the driver waits."""

        def stop() -> None:
            self._tasks.pop(steps, None)
            if not steps.gi_running:  # type: ignore[attr-defined]
                steps.close()

        task: Task[T] = Task(stop)
        self._advance(steps, task, None)
        return task

    def perform(self, function: Callable[..., Any], *arguments: Any) -> Pending[Any]:
        """Call a function now; return its result, which is there."""
        try:
            return Pending.of(function(*arguments))
        except Exception as error:
            return Pending.failed(error)

    def run(self, steps: Steps[T]) -> T:
        """Run a piece of logic to its end and return its value. Raises what it raises."""
        try:
            wait = next(steps)
            while True:
                wait = steps.send(self._until(wait))
        except StopIteration as stop:
            value: T = stop.value
            return value
        finally:
            steps.close()

    def turn(self) -> None:
        """Do what can be done now, without waiting: write, read, and let what runs by itself go on."""
        if self._tasks:
            self._advance_tasks()
        self._flush()
        for descriptor, events in self._poll.poll(0):
            if descriptor in self._transports:
                self._transports[descriptor].ready(events)

    def close(self) -> None:
        """Close every connection, and every piece of logic that runs by itself."""
        for task, _ in tuple(self._tasks.values()):
            task.cancel()
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

    def _until(self, wait: Wait) -> float:
        """Read and write until the wait is over; return the time."""
        pending, deadline = wait
        while True:
            if self._tasks:
                self._advance_tasks()
            self._flush()
            now = time.monotonic()
            if any_done(pending) or (deadline is not None and now >= deadline):
                return now
            for descriptor, events in self._poll.poll(self._limit(deadline, now)):
                if descriptor in self._transports:
                    self._transports[descriptor].ready(events)

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        for transport in unsent:
            transport.flush()

    def _limit(self, deadline: float | None, now: float) -> float | None:
        """Return how long ``poll`` may wait, in ms. None is for no limit."""
        moments = [wait.deadline for _, wait in self._tasks.values() if wait.deadline is not None]
        if deadline is not None:
            moments.append(deadline)
        return min(max(0.0, min(moments) - now) * 1000 + 1, _LONGEST_POLL_MS) if moments else None

    def _advance_tasks(self) -> None:
        """Let every piece of logic that runs by itself go on, if what it waits for is there.

        One piece may make what another one waits for, so it looks again until nothing more is there. It looks right
        before a piece goes on: a function of the user that the last piece called may have let it go on already.
        """
        now = time.monotonic()
        advanced, timers = True, True
        while advanced:
            advanced = False
            for steps in tuple(self._tasks):
                task, wait = self._tasks.get(steps, _GONE)
                due = timers and wait.deadline is not None and wait.deadline <= now
                if (due or any_done(wait.pending)) and not steps.gi_running:  # type: ignore[attr-defined]
                    self._advance(steps, task, now)
                    advanced = True
            timers = False

    def _advance(self, steps: Steps[T], task: Task[T], now: float | None) -> None:
        try:
            self._tasks[steps] = task, next(steps) if now is None else steps.send(now)
            return
        except StopIteration as stop:
            task.resolve(stop.value)
        except Exception as error:
            task.fail(error)
        self._tasks.pop(steps, None)
