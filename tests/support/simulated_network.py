"""A network in memory: its clock advances when a flow waits, and its brokers are functions.

``SimulatedNetwork`` replaces the drivers of ``kafka_msgs.client``. A broker is a function from a request to a response.
The bytes between them are real: they pass through ``ClientConnection`` and the frames of ``kafka_msgs.wire``. A test
therefore sees the requests that a broker would see, at the versions it offers, and no real time passes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import define, field

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.catalog import message_class
from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.driver import BlockingDriver
from kafka_msgs.client.flow import Future, sleep_until
from kafka_msgs.client.network import Address, Endpoint, TransportReceiver
from kafka_msgs.errors import ConnectionFailedError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.api_versions_response import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from kafka_msgs.wire import (
    FrameSplitter,
    RequestFrame,
    decode_request,
    encode_response,
    join_frames,
    request_needs_response,
)

if TYPE_CHECKING:
    import ssl


Reply: TypeAlias = Response | Future[Response] | None
Handler: TypeAlias = Callable[[Request[Any]], Reply]

LATENCY = 0.001
"""Latency of a byte, in seconds of the simulated clock."""


@define(eq=False)
class SimulatedBroker:
    """A broker in memory. ``handle`` responds to its requests, or returns None for no response.

    ``requests`` lists all requests except ApiVersions, in order; ``negotiations`` counts ApiVersions requests, and the
    connections of the first ``ignored_greetings`` of them end. ``limits`` sets the offered versions of an API, or
    removes the API if they are None. ``features`` maps finalized features to their levels.
    """

    address: Address
    handle: Handler
    limits: Mapping[int, tuple[int, int] | None] = field(factory=dict)
    features: Mapping[str, int] = field(factory=dict)
    up: bool = True
    requests: list[Request[Any]] = field(factory=list)
    frames: list[RequestFrame] = field(factory=list)
    negotiations: int = 0
    greetings: list[RequestFrame] = field(factory=list)
    ignored_greetings: int = 0

    def answer(self, frame: RequestFrame) -> Reply:
        """Return the response to a request."""
        if frame.header.request_api_key == ApiKey.API_VERSIONS:
            self.negotiations += 1
            self.greetings.append(frame)
            if self.negotiations <= self.ignored_greetings:
                return None
            return self.versions()
        self.frames.append(frame)
        self.requests.append(frame.message)
        return self.handle(frame.message)

    def versions(self) -> ApiVersionsResponse:
        """Return the versions that the broker offers."""
        offered = []
        for key in ApiKey:
            versions = message_class(key, "request").INFO.versions
            limits = self.limits.get(key, (versions.lowest, versions.highest))
            if limits is not None and not versions.empty:
                offered.append(ApiVersion(api_key=key, min_version=limits[0], max_version=limits[1]))
        finalized = (
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in self.features.items()
        )
        return ApiVersionsResponse(
            api_keys=tuple(offered), finalized_features=tuple(finalized), finalized_features_epoch=1
        )


class _Transport:
    """Both ends of one connection in memory."""

    def __init__(self, network: SimulatedNetwork, broker: SimulatedBroker | None, stream: TransportReceiver) -> None:
        self._network = network
        self.broker = broker
        self._stream = stream
        self._frames = FrameSplitter()
        self._answers: list[tuple[RequestFrame, Future[Response]]] = []
        self.open = True
        self._out: list[bytes] = []
        self.written = bytearray()

    def write(self, data: bytes) -> None:
        """Queue bytes. They leave when the network sends."""
        self.written += data
        self._out.append(data)
        self._network.unsent[self] = None

    def flush(self) -> None:
        """Carry the queued bytes to the broker."""
        out, self._out = b"".join(self._out), []
        if self.open and out:
            self._network.later(LATENCY, lambda: self._arrive(out))
            self._stream.data_sent()

    def close(self) -> None:
        """Close the client's end."""
        self.open = False
        self._network.transports.discard(self)

    def cut(self, error: Exception | None = None) -> None:
        """End the connection from the broker or the network."""
        if self.open:
            self.close()
            self._stream.connection_lost(error)

    def deliver(self, data: bytes) -> None:
        """Carry bytes to the client."""
        self._network.to_client(LATENCY, lambda: self._stream.data_received(data) if self.open else None)

    def start(self) -> None:
        if self.open:
            self._stream.connection_made()

    def _arrive(self, data: bytes) -> None:
        if not self.open or self.broker is None or not self.broker.up:
            return
        for payload in self._frames.feed(data):
            frame = decode_request(payload)
            reply = self.broker.answer(frame)
            if self.broker.negotiations <= self.broker.ignored_greetings:
                self.cut()
                return
            if reply is None or not request_needs_response(frame.message):
                continue
            pending: Future[Response] = reply if isinstance(reply, Future) else Future.resolved(reply)
            self._answers.append((frame, pending))
            self._send_answers()
            if not pending.done:
                pending.wakers = [*(pending.wakers or ()), self._send_answers]

    def _send_answers(self) -> None:
        """Send the available responses, in request order."""
        while self._answers and self._answers[0][1].done:
            frame, pending = self._answers.pop(0)
            version, number = frame.header.request_api_version, frame.header.correlation_id
            self.deliver(join_frames(encode_response(pending.result(), version, correlation_id=number)))


class SimulatedNetwork(BlockingDriver):
    """A network of brokers in memory. Time passes only while a flow waits, and then instantly."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 1000.0
        self.brokers: dict[Address, SimulatedBroker] = {}
        self.transports: set[_Transport] = set()
        self.connections = 0
        self._order = count()
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []
        self.unsent: dict[_Transport, None] = {}
        self._arrived: list[Callable[[], object]] = []
        """Events that arrived at the frozen client."""
        self._freezes: list[tuple[int, float]] = []
        self._frozen = False
        self.looks = 0
        """How often the client has waited."""

    def add(
        self, address: str, handle: Handler, limits: Mapping[int, tuple[int, int] | None] | None = None
    ) -> SimulatedBroker:
        """Add a broker."""
        place = Address.parse(address)
        broker = self.brokers[place] = SimulatedBroker(place, handle, limits or {})
        return broker

    def core(self, servers: str, **settings: Any) -> ClientCore:
        """Return the core of a client of these brokers."""
        return ClientCore(ClientConfig(bootstrap_servers=servers, **settings), self)

    def monotonic(self) -> float:
        """Return the simulated time in seconds."""
        return self.time

    def later(self, seconds: float, action: Callable[[], object]) -> None:
        """Run an action after a delay."""
        heapq.heappush(self._agenda, (self.time + seconds, next(self._order), action))

    def resolve(self, address: Address) -> Future[Sequence[Endpoint]]:
        """Return the only address of a host."""
        return Future.resolved([Endpoint(address)])

    def connect(self, endpoint: Endpoint, stream: TransportReceiver, tls: ssl.SSLContext | None = None) -> _Transport:
        """Connect to a broker in memory; an unknown or stopped broker refuses the connection."""
        address = endpoint.address
        broker = self.brokers.get(address)
        transport = _Transport(self, broker, stream)
        self.connections += 1
        self.transports.add(transport)
        if broker is None or not broker.up:
            failure = ConnectionFailedError(address=str(address), step="connect", reason="connection refused")
            self.to_client(LATENCY, lambda: transport.cut(failure))
        else:
            self.to_client(LATENCY, transport.start)
        return transport

    def silent(self, stream: TransportReceiver) -> _Transport:
        """Begin a connection that never completes."""
        transport = _Transport(self, None, stream)
        self.transports.add(transport)
        return transport

    def stop(self, broker: SimulatedBroker) -> None:
        """Stop a broker: end its connections and refuse new ones."""
        broker.up = False
        for transport in tuple(self.transports):
            if transport.broker is broker:
                transport.cut()

    def to_client(self, seconds: float, action: Callable[[], object]) -> None:
        """Run an action at the client after a delay, or queue it while the client is frozen."""
        self.later(seconds, lambda: self._arrived.append(action) if self._frozen else action())

    def freeze(self, look: int, seconds: float) -> None:
        """Freeze the client at its wait with this number, after the wait ends and before the next step."""
        self._freezes.append((look, seconds))

    def pass_time(self, seconds: float) -> None:
        """Advance the time for background tasks and brokers."""
        self.run(sleep_until(self.time + seconds))

    def _send(self) -> None:
        """Send the written bytes. The client may be frozen before that."""
        self._stand_still()
        unsent, self.unsent = self.unsent, {}
        for transport in unsent:
            transport.flush()

    def _wait(self, moment: float | None) -> None:
        """Advance to the next event. Fails if a flow waits for an event that never occurs."""
        if self._arrived:
            arrived, self._arrived = self._arrived, []
            for action in arrived:
                action()
            return
        self._go_on(moment)
        self._stand_still()

    def _stand_still(self) -> None:
        """Count a step of the client, and freeze it if the test requested that. Its brokers keep running."""
        self.looks += 1
        for look, seconds in self._freezes:
            if look == self.looks:
                self._frozen = True
                end = self.time + seconds
                while self._agenda and self._agenda[0][0] <= end:
                    self.time, _, action = heapq.heappop(self._agenda)
                    action()
                self.time = end
                self._frozen = False

    def _go_on(self, moment: float | None) -> None:
        moments = [each for each in (moment, self._agenda[0][0] if self._agenda else None) if each is not None]
        assert moments, "logic waits without a limit for what never comes"
        self.time = max(self.time, min(moments))
        while self._agenda and self._agenda[0][0] <= self.time:
            heapq.heappop(self._agenda)[2]()


def by_class(handlers: Mapping[type[Request[Any]], Handler]) -> Handler:
    """Return a broker function that dispatches requests to handlers by class."""

    def handle(request: Request[Any]) -> Reply:
        return handlers[type(request)](request)

    return handle


def apis(requests: Iterable[Request[Any]]) -> list[str]:
    """Return the API names of requests."""
    return [request.INFO.name.removesuffix("Request") for request in requests]
