"""Embedded cluster in memory with clients of this library: real bytes on both ends, without sockets or real time.

``BrokerNetwork`` is the driver of the clients, the network of the cluster, and the clock of clients and brokers. The
brokers use the same connection classes as over sockets. Time passes only while a flow waits, and then instantly. Equal
seeds produce equal latencies, so runs are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast

from kafka_msgs.broker.accepted_connection import AcceptedConnection, Server
from kafka_msgs.broker.clock import Clock
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.config import BrokerConfig
from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.driver import BlockingDriver
from kafka_msgs.client.flow import Future
from kafka_msgs.client.network import Address, Endpoint, TransportReceiver
from kafka_msgs.errors import ConnectionFailedError

if TYPE_CHECKING:
    import ssl

__all__ = ["START", "BrokerNetwork"]

START: Final = 1_700_000_000_000
"""Broker time in milliseconds since the epoch when the clients' clock reads 0."""

_FASTEST: Final = 0.0005
_SLOWEST: Final = 0.004
"""Minimum and maximum latency in seconds."""


class BrokerNetwork(BlockingDriver):
    """Cluster with ``settings`` of ``BrokerConfig``, and the connections to it. ``time`` is in seconds."""

    closing = False

    def __init__(self, seed: int, **settings: Any) -> None:
        super().__init__()
        self.dice = Random(seed)
        self.time = 1.0
        self.wires: set[_Wire] = set()
        self.connections: set[AcceptedConnection] = set()
        self.clock: Clock = _BrokerClock(self)
        self.steps = 0
        self._order = count()
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self._listening: dict[Address, int] = {}
        self.cluster = Cluster(BrokerConfig(seed=seed, **settings), now=self.clock.now())
        self.cluster.network = self
        listeners = {each: {"PLAINTEXT": (f"broker-{each}", 9092)} for each in self.cluster.broker_ids}
        for broker_id, addresses in listeners.items():
            self.open_broker(broker_id, addresses)
        self.cluster.start(listeners)

    def core(self, **settings: Any) -> ClientCore:
        """Return the core of a client of all brokers."""
        servers = [Address(f"broker-{each}", 9092) for each in self.cluster.brokers]
        return ClientCore(ClientConfig(bootstrap_servers=servers, **settings), self, Random(self.dice.random()))

    # Network of the clients

    def monotonic(self) -> float:
        """Return the time of the clients in seconds."""
        return self.time

    def resolve(self, address: Address) -> Future[Sequence[Endpoint]]:
        """Return the only address of a host."""
        return Future.resolved([Endpoint(address)])

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> _Wire:
        """Begin a connection to a broker. A stopped broker refuses it."""
        wire = _Wire(self, endpoint.address, stream)
        self.wires.add(wire)
        self.later(self.latency(), wire.accept)
        return wire

    # Network of the brokers

    def open_broker(self, broker_id: int, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Listen at a broker's address."""
        self._listening[Address(*addresses["PLAINTEXT"])] = broker_id

    def close_broker(self, broker_id: int, *, reset: bool) -> None:
        """Stop listening, and close all connections of a broker."""
        self._listening = {address: each for address, each in self._listening.items() if each != broker_id}
        for connection in sorted(self.connections, key=lambda each: each.session.id):
            if connection.session.broker_id == broker_id:
                connection.end(reset=reset)

    def broker_at(self, address: Address) -> int | None:
        """Return the broker that listens at an address."""
        return self._listening.get(address)

    # Interface for broker connections

    def schedule_tick(self) -> None:
        """Do nothing: each wait checks the cluster's timers."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` at the current time, after the calls already scheduled for it."""
        self.later(0, callback)

    def call_later(self, ms: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` after a delay."""
        self.later(ms / 1000, callback)

    def loop_time(self) -> float:
        """Return the time in seconds."""
        return self.time

    def connection_closed(self, connection: AcceptedConnection) -> None:
        """Remove a closed connection."""
        self.connections.discard(connection)

    # Time

    def latency(self) -> float:
        """Return a random latency."""
        return self.dice.uniform(_FASTEST, _SLOWEST)

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Run an action after a delay."""
        self.at(self.time + seconds, action)

    def at(self, moment: float, action: Callable[[], object]) -> None:
        """Run an action at a point in time."""
        heappush(self._agenda, (moment, next(self._order), action))

    def _send(self) -> None:
        """Do nothing: ``write`` sends bytes immediately."""

    def _wait(self, moment: float | None) -> None:
        """Advance to the next scheduled event or timer."""
        due = self.cluster.next_timer
        moments = [moment, self._agenda[0][0] if self._agenda else None, None if due is None else _seconds(due)]
        self.time = max(self.time, min(each for each in moments if each is not None))
        self.steps += 1
        self.cluster.tick(self.clock.now())
        while self._agenda and self._agenda[0][0] <= self.time:
            heappop(self._agenda)[2]()


def _seconds(ms: int) -> float:
    return (ms - START) / 1000


class _BrokerClock:
    """Clock of the brokers, which follows the clients' clock."""

    real = False

    def __init__(self, network: BrokerNetwork) -> None:
        self._network = network

    def now(self) -> int:
        return START + round(self._network.time * 1000)

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


class _Wire:
    """A connection, and the client's transport. Bytes in each direction stay in order."""

    def __init__(self, network: BrokerNetwork, address: Address, stream: TransportReceiver) -> None:
        self.network = network
        self._address = address
        self._stream = stream
        self._arrivals = [0.0, 0.0]
        self.open = True
        self._broken = False
        self.broker: _BrokerEnd | None = None

    def accept(self) -> None:
        """Connect to the broker."""
        if not self.open:
            return
        broker_id = self.network.broker_at(self._address)
        if broker_id is None:
            self._refuse()
            return
        listener = self.network.cluster.config.listeners[0]
        connection = AcceptedConnection(cast("Server", self.network), broker_id, listener)
        self.broker = _BrokerEnd(self, connection)
        connection.connection_made(cast("Any", self.broker))
        self.to_client(self._opened)

    def _opened(self) -> None:
        if self.open:
            self._stream.connection_made()

    def _refuse(self) -> None:
        failure = ConnectionFailedError(address=str(self._address), step="connect", reason="connection refused")
        self.to_client(lambda: self.cut(failure))

    def cut(self, error: Exception | None) -> None:
        """End the connection at the client."""
        if self.open:
            self.open = False
            self.network.wires.discard(self)
            self._stream.connection_lost(error)

    def reset(self) -> None:
        """Reset the connection: bytes in transit to the client are lost."""
        self._broken = True
        error = ConnectionFailedError(address=str(self._address), step="request", reason="connection reset")
        self.network.later(self.network.latency(), lambda: self.cut(error))

    def write(self, data: bytes) -> None:
        """Carry the client's bytes to the broker."""
        data = bytes(data)
        self._carry(0, lambda: self.broker.take(data) if self.broker else None)
        self._stream.data_sent()

    def close(self) -> None:
        """Close the client's end."""
        if self.open:
            self.open = False
            self.network.wires.discard(self)
            self._carry(0, lambda: self.broker.abort() if self.broker else None)

    def deliver(self, data: bytes) -> None:
        """Carry the broker's bytes to the client."""
        if not self._broken:
            self.to_client(lambda: self._stream.data_received(data) if self.open and not self._broken else None)

    def to_client(self, action: Callable[[], object]) -> None:
        """Run an action at the client after the latency."""
        self._carry(1, action)

    def _carry(self, direction: int, action: Callable[[], object]) -> None:
        network = self.network
        self._arrivals[direction] = moment = max(self._arrivals[direction], network.time + network.latency())
        network.at(moment, action)


class _BrokerEnd:
    """Broker end of a connection: the part of ``asyncio.Transport`` that connections use."""

    def __init__(self, wire: _Wire, connection: AcceptedConnection) -> None:
        self._wire = wire
        self._connection = connection
        self._closing = False
        self._reading = True
        self._held: list[bytes] = []

    def take(self, data: bytes) -> None:
        """Pass bytes to the connection, or hold them while it has paused reading."""
        if self._closing:
            return
        if self._reading:
            self._connection.data_received(data)
        else:
            self._held.append(data)

    def write(self, data: bytes) -> None:
        if not self._closing:
            self._wire.deliver(bytes(data))

    def close(self) -> None:
        if not self._closing:
            self._wire.to_client(lambda: self._wire.cut(None))
            self._lose()

    def abort(self) -> None:
        if not self._closing:
            self._wire.reset()
            self._lose()

    def is_closing(self) -> bool:
        return self._closing

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("127.0.0.1", 1), "socket": self}.get(name)

    def setsockopt(self, *option: Any) -> None:
        """Ignore a socket option."""

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        held, self._held = self._held, []
        for data in held:
            self._wire.network.later(0.0, partial(self.take, data))

    def _lose(self) -> None:
        self._closing = True
        self._wire.network.later(0.0, lambda: self._connection.connection_lost(None))
