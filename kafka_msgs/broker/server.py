"""The asyncio server of a cluster: its listeners and connections, and the clock that drives its timers."""

from __future__ import annotations

import asyncio
import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from kafka_msgs.broker.accepted_connection import AcceptedConnection
from kafka_msgs.broker.clock import Clock
from kafka_msgs.broker.config import LAST_PORT, ListenerConfig
from kafka_msgs.errors import BrokerStartError

if TYPE_CHECKING:
    from kafka_msgs.broker.client_session import Address
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["BrokerServer"]

T = TypeVar("T")

_BACKLOG: Final = 1024
_ACCEPTED_AT_ONCE: Final = 100
_HANDSHAKE_S: Final = 30
"""The timeout for a client's TLS handshake, in seconds."""
_SHORTEST_SWEEP: Final = 0.05
_LONGEST_SWEEP: Final = 60.0


class HttpEndpoint(Protocol):
    """An HTTP server of the broker, and its URL."""

    url: str

    def stop(self) -> None:
        """Stop before the first connection."""

    async def close(self) -> None:
        """Close the server and its connections."""


class BrokerServer:
    """The listeners of all brokers of a cluster, and the clock that drives it. All methods belong to one event loop."""

    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.connections: set[AcceptedConnection] = set()
        self.closing = False
        self._loop = asyncio.get_running_loop()
        self.loop_time = self._loop.time
        self._shaking_hands: Counter[int] = Counter()
        self._sweeper: asyncio.TimerHandle | None = None
        self._listening: dict[int, list[socket.socket]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._armed: int | None = None
        self._empty = asyncio.Event()
        self.endpoints: Mapping[str, HttpEndpoint] = {}
        """The HTTP endpoints by name."""

    def start(self) -> None:
        """Bind all listeners and start the brokers. Raises ``BrokerStartError`` if a port is in use or unavailable."""
        config = self.cluster.config
        addresses: dict[int, dict[str, Address]] = {}
        try:
            for number, broker_id in enumerate(self.cluster.broker_ids):
                wanted = {
                    each.name: (each.host or config.host, each.port and each.port + number) for each in config.listeners
                }
                addresses[broker_id] = self._bind(broker_id, wanted)
            self.cluster.network = self
            if self.clock.real:
                self.cluster.stopwatch = time.perf_counter_ns
            self.cluster.start(addresses)
        except BaseException:
            self.stop()
            raise
        self.schedule_tick()
        self._sweep()

    def _sweep(self) -> None:
        """Close connections that have been idle for ``connections.max.idle.ms``, in real time."""
        idle = self.cluster.configs.number("connections.max.idle.ms") / 1000
        if idle < 0:
            return
        before = self._loop.time() - idle
        for connection in [each for each in self.connections if each.active_at < before]:
            connection.end(reset=False)
        self._sweeper = self._loop.call_later(min(max(idle / 2, _SHORTEST_SWEEP), _LONGEST_SWEEP), self._sweep)

    def stop(self) -> None:
        """Close all listeners, and begin to close all connections."""
        self.closing = True
        for timer in (self._timer, self._sweeper):
            if timer is not None:
                timer.cancel()
        for broker_id in tuple(self._listening):
            self.close_broker(broker_id, reset=False)

    async def close(self) -> None:
        """Close all listeners, connections and endpoints, and stop the timer."""
        self.stop()
        for endpoint in self.endpoints.values():
            await endpoint.close()
        # A task that never ran would leave its socket open.
        await asyncio.sleep(0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        while self.connections:
            self._empty.clear()
            await self._empty.wait()

    def run(self, work: Callable[[Cluster], T]) -> T:
        """Call ``work`` with the cluster between two requests, and return its result."""
        self.cluster.advance_clock_to(self.clock.now())
        try:
            return work(self.cluster)
        finally:
            self.cluster.settle()
            self.schedule_tick()

    # The network interface of the cluster

    def open_broker(self, broker_id: int, addresses: Mapping[str, Address]) -> None:
        """Listen again at the addresses of a closed broker."""
        self._bind(broker_id, addresses)

    def close_broker(self, broker_id: int, *, reset: bool) -> None:
        """Close the listeners and the connections of a broker, with a TCP reset if ``reset``."""
        self._stop_listening(broker_id)
        for connection in tuple(self.connections):
            if connection.session.broker_id == broker_id:
                connection.end(reset=reset)

    # Time

    def tick(self) -> None:
        """Run all due timers."""
        self._armed = None
        if self.closing:
            return
        self.cluster.tick(self.clock.now())
        self.schedule_tick()

    def schedule_tick(self) -> None:
        """Wake up when the next timer is due. With a manual clock, only timers that are already due run."""
        due = self.cluster.next_timer
        if due == self._armed or self.closing:
            return
        if not self.clock.real:
            if due is not None and due <= self.clock.now():
                self._armed = due
                self._loop.call_soon(self.tick)
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed, self._timer = due, None
        if due is not None:
            self._timer = self._loop.call_later(max(0, due - self.clock.now()) / 1000, self.tick)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` in the next iteration of the event loop."""
        self._loop.call_soon(callback)

    def call_later(self, ms: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` after ``ms`` milliseconds of real time."""
        self._loop.call_later(ms / 1000, callback)

    def connection_closed(self, connection: AcceptedConnection) -> None:
        """Forget a closed connection."""
        self.connections.discard(connection)
        if not self.connections:
            self._empty.set()

    def _bind(self, broker_id: int, wanted: Mapping[str, Address]) -> dict[str, Address]:
        found: dict[str, Address] = {}
        for listener in self.cluster.config.listeners:
            host, port = wanted[listener.name]
            if port > LAST_PORT:
                raise BrokerStartError(address=f"{host}:{port}", reason=f"a port is at most {LAST_PORT}")
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            try:
                listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
            except OSError as error:
                raise BrokerStartError(address=f"{host}:{port}", reason=error.strerror or str(error)) from None
            self._listening.setdefault(broker_id, []).append(listening)
            listening.setblocking(False)
            self._loop.add_reader(listening, self._accept, listening, broker_id, listener)
            found[listener.name] = host, listening.getsockname()[1]
        return found

    def _stop_listening(self, broker_id: int) -> None:
        for listening in self._listening.pop(broker_id, ()):
            self._loop.remove_reader(listening)
            listening.close()

    def _accept(self, listening: socket.socket, broker_id: int, listener: ListenerConfig) -> None:
        """Accept pending connections, a limited number per event loop iteration."""
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, _ = listening.accept()
            except OSError:
                return
            connections = self._shaking_hands[broker_id] + len(self.cluster.brokers[broker_id].sessions)
            if connections >= self.cluster.configs.number("max.connections"):
                accepted.close()
                continue
            self._shaking_hands[broker_id] += 1
            task = self._loop.create_task(self._connect(accepted, broker_id, listener))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, accepted: socket.socket, broker_id: int, listener: ListenerConfig) -> None:
        """Create a connection from a socket. It is closed if the TLS handshake fails or times out."""
        accepted.setblocking(False)
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            await self._loop.connect_accepted_socket(
                lambda: AcceptedConnection(self, broker_id, listener),
                accepted,
                ssl=listener.tls,
                ssl_handshake_timeout=_HANDSHAKE_S if listener.tls else None,
            )
        except OSError:
            accepted.close()
        except asyncio.CancelledError:
            accepted.close()
            raise
        finally:
            self._shaking_hands[broker_id] -= 1
