"""An embedded cluster in memory, with clients of this library: real bytes on both sides, no sockets, and no time.

``BrokerNetwork`` is a driver for the logic of clients, the network of the cluster, and the clock of both. The
connections of the brokers are those that serve sockets. Time passes only while logic waits, and then at once. The same
seed gives the same latencies, so that a run can be repeated.
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
"""The time of the brokers when the time of the clients is 0, in milliseconds since the epoch."""

_FASTEST: Final = 0.0005
_SLOWEST: Final = 0.004
"""The limits of how long bytes travel, in seconds."""


class BrokerNetwork(BlockingDriver):
    """A cluster with ``settings`` of ``BrokerConfig``, and the connections to it. ``time`` is in seconds."""

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
        """Return the logic of a client of all brokers."""
        servers = [Address(f"broker-{each}", 9092) for each in self.cluster.brokers]
        return ClientCore(ClientConfig(bootstrap_servers=servers, **settings), self, Random(self.dice.random()))

    # The network of the clients

    def monotonic(self) -> float:
        """Return the time of the clients in seconds."""
        return self.time

    def resolve(self, address: Address) -> Future[Sequence[Endpoint]]:
        """Every host has one address."""
        return Future.resolved([Endpoint(address)])

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> _Wire:
        """Begin a connection to a broker. One that does not run refuses it."""
        wire = _Wire(self, endpoint.address, stream)
        self.wires.add(wire)
        self.later(self.latency(), wire.accept)
        return wire

    # The network of the brokers

    def open_broker(self, broker_id: int, addresses: Mapping[str, tuple[str, int]]) -> None:
        """Listen at the address of a broker."""
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

    # What connections of brokers need

    def schedule_tick(self) -> None:
        """Nothing to do: each wait looks at the timers of the cluster."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` at this moment, after what is planned for it already."""
        self.later(0, callback)

    def call_later(self, ms: int, callback: Callable[[], None]) -> None:
        """Call ``callback`` after a time."""
        self.later(ms / 1000, callback)

    def loop_time(self) -> float:
        """Return the time in seconds."""
        return self.time

    def connection_closed(self, connection: AcceptedConnection) -> None:
        """Forget a connection."""
        self.connections.discard(connection)

    # Time

    def latency(self) -> float:
        """Return how long something travels."""
        return self.dice.uniform(_FASTEST, _SLOWEST)

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Do something after a time."""
        self.at(self.time + seconds, action)

    def at(self, moment: float, action: Callable[[], object]) -> None:
        """Do something at a moment."""
        heappush(self._agenda, (moment, next(self._order), action))

    def _send(self) -> None:
        """Nothing to do: bytes are on their way as soon as they are written."""

    def _wait(self, moment: float | None) -> None:
        """Go to the next moment at which something happens."""
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
    """The clock of the brokers, which follows that of the clients."""

    real = False

    def __init__(self, network: BrokerNetwork) -> None:
        self._network = network

    def now(self) -> int:
        return START + round(self._network.time * 1000)

    def add_listener(self, listener: Callable[[], None]) -> Callable[[], None]:
        return lambda: None


class _Wire:
    """A connection, and the transport of the client. Each direction keeps its order."""

    def __init__(self, network: BrokerNetwork, address: Address, stream: TransportReceiver) -> None:
        self.network = network
        self._address = address
        self._stream = stream
        self._arrivals = [0.0, 0.0]
        self.open = True
        self._broken = False
        self.broker: _BrokerEnd | None = None

    def accept(self) -> None:
        """Arrive at the broker."""
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
        """Tell the client that the connection has ended."""
        if self.open:
            self.open = False
            self.network.wires.discard(self)
            self._stream.connection_lost(error)

    def reset(self) -> None:
        """Break the connection off: what is on its way to the client is lost."""
        self._broken = True
        error = ConnectionFailedError(address=str(self._address), step="request", reason="connection reset")
        self.network.later(self.network.latency(), lambda: self.cut(error))

    def write(self, data: bytes) -> None:
        """Carry bytes of the client to the broker."""
        data = bytes(data)
        self._carry(0, lambda: self.broker.take(data) if self.broker else None)
        self._stream.data_sent()

    def close(self) -> None:
        """The client ends the connection."""
        if self.open:
            self.open = False
            self.network.wires.discard(self)
            self._carry(0, lambda: self.broker.abort() if self.broker else None)

    def deliver(self, data: bytes) -> None:
        """Carry bytes of the broker to the client."""
        if not self._broken:
            self.to_client(lambda: self._stream.data_received(data) if self.open and not self._broken else None)

    def to_client(self, action: Callable[[], object]) -> None:
        """Do something when it has arrived at the client."""
        self._carry(1, action)

    def _carry(self, direction: int, action: Callable[[], object]) -> None:
        network = self.network
        self._arrivals[direction] = moment = max(self._arrivals[direction], network.time + network.latency())
        network.at(moment, action)


class _BrokerEnd:
    """The broker's end of a connection: the part of ``asyncio.Transport`` that connections use."""

    def __init__(self, wire: _Wire, connection: AcceptedConnection) -> None:
        self._wire = wire
        self._connection = connection
        self._closing = False
        self._reading = True
        self._held: list[bytes] = []

    def take(self, data: bytes) -> None:
        """Give bytes to the connection, unless it does not read now."""
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
        """Take an option of the socket."""

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
