"""A connection to one broker that sends requests and returns typed responses.

``BrokerConnection`` is a thin layer over ``wire.ClientConnection``. ``broker_handshake`` makes it ready for requests,
which are pipelined; ``turn_queue`` orders the callers of a full connection.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_msgs.client.broker_handshake import shake_hands
from kafka_msgs.client.config import ClientConfig
from kafka_msgs.client.dial import Dialer
from kafka_msgs.client.flow import Flow, Future, Wait
from kafka_msgs.client.hooks import NO_HOOKS, HookCaller
from kafka_msgs.client.network import Address, Endpoint, Network, Transport
from kafka_msgs.client.turn_queue import TurnQueue
from kafka_msgs.codec import DEFAULT_OPTIONS, CodecOptions
from kafka_msgs.errors import (
    ConnectionFailedError,
    DeadlineError,
    KafkaMsgsError,
    RequestLimitError,
    UnsupportedVersionError,
)
from kafka_msgs.message import Request, Response
from kafka_msgs.messages.api_versions_response import ApiVersionsResponse
from kafka_msgs.versions import NONE, VersionRange
from kafka_msgs.wire.client_connection import ClientConnection
from kafka_msgs.wire.events import ConnectionClosed, NeedData, NoResponse, ResponseReceived, TokenReceived

if TYPE_CHECKING:
    from kafka_msgs.client.auth import Credentials

__all__ = ["BrokerConnection"]

R = TypeVar("R", bound=Response)
T = TypeVar("T")

_SIZE_LENGTH: Final = 4

log: Final = logging.getLogger("kafka_msgs.client.connection")


class _Timing:
    """The time when a request was queued, and the time when the operating system took its bytes."""

    __slots__ = ("begin", "left")

    def __init__(self, begin: float) -> None:
        self.begin = begin
        self.left: float | None = None


class BrokerConnection:
    """A connection to one broker. ``BrokerConnection.open`` creates it."""

    def __init__(self, address: Address, config: ClientConfig, broker_id: int | None) -> None:
        self.address = address
        self.broker_id = broker_id
        self.alive = True
        self.ready = False
        """Whether the connection is ready for requests."""
        self.failure: Exception | None = None
        self.api_versions: ApiVersionsResponse | None = None
        self.reauthenticate_at: float | None = None
        """When to re-authenticate (KIP-368), in seconds of the network's clock. None means never."""
        self.throttled_until: float = 0.0
        """The end of throttling by the broker (KIP-219), in seconds of the network's clock."""
        self._versions: dict[type[Request[Any]], VersionRange] = {}
        self._offered: dict[int, VersionRange] = {}
        self._connection = ClientConnection(client_id=config.client_id, max_frame_size=config.max_frame_size)
        self.opening: Future[None] = Future()
        """Done when the connection is open or has failed."""
        self._transport: Transport | None = None
        self._limit = config.max_in_flight
        self._request_timeout = config.request_timeout
        self._turns = TurnQueue(self)
        self._timed_out_requests: deque[tuple[Future[Any], float]] = deque()
        """Abandoned requests, with the time at which each response becomes overdue."""
        self.step = "connect"
        """The step that a failure names."""
        self._opening_since = 0.0
        self.hooks = NO_HOOKS
        self._dialer: Dialer | None = None
        self._unsent: list[_Timing] = []
        """The timings of requests that are not sent yet."""
        self.clock: Callable[[], float] = lambda: 0.0
        self.moved_at = 0.0
        """The time of the last traffic in either direction. Timeouts of the broker count from it."""

    @classmethod
    def open(
        cls,
        network: Network,
        address: Address,
        config: ClientConfig,
        *,
        broker_id: int | None,
        deadline: float,
        dialer: Dialer | None = None,
        hooks: HookCaller = NO_HOOKS,
    ) -> Flow[BrokerConnection]:
        """Connect, negotiate versions, and authenticate. Raises ``ConnectionFailedError`` and ``AuthenticationError``.

        If the caller is cancelled, the connection is closed.
        """
        dialer = dialer or Dialer(network, config, Random())
        connection: BrokerConnection | None = None
        try:
            start = partial(cls._start, network, config, broker_id, hooks)
            connection = yield from dialer.dial(address, start, deadline)
            connection._dialer = dialer
            yield from shake_hands(connection, network, config, dialer, deadline)
            connection._open_for_requests()
        except DeadlineError as error:
            step = "connect" if connection is None else connection.step
            failure = ConnectionFailedError(address=str(address), step=step, reason=_overdue(error))
            dialer.failed(address, failure)
            raise failure from error
        except ConnectionFailedError as error:
            dialer.failed(address, error)
            raise
        finally:
            if connection is not None and not connection.ready:
                connection.close()
        dialer.succeeded(address)
        return connection

    @classmethod
    def _start(
        cls, network: Network, config: ClientConfig, broker_id: int | None, hooks: HookCaller, endpoint: Endpoint
    ) -> BrokerConnection:
        """Start to connect to one IP address."""
        connection = cls(endpoint.address, config, broker_id)
        connection.hooks = hooks
        connection.clock = network.monotonic
        connection.moved_at = connection._opening_since = connection.clock()
        connection._transport = network.connect(endpoint, connection, config.tls)
        return connection

    def call(
        self,
        request: Request[R],
        version: int | None = None,
        *,
        deadline: float | None,
        limit: float | None = None,
        options: CodecOptions = DEFAULT_OPTIONS,
    ) -> Flow[R]:
        """Send a request when the in-flight limit allows it, and wait for its response.

        At ``deadline`` the caller stops waiting, and the connection stays open. At ``limit``, if it is earlier, the
        connection is closed. Raises the errors of ``send``, ``DeadlineError`` and ``ConnectionFailedError``.
        """
        pending = yield from self.send_when_ready(lambda: self.send(request, version, options=options), deadline)
        if not pending.done:
            yield from self.wait_for(pending, request, deadline=deadline, limit=limit)
        return pending.result()

    def wait_for(
        self, pending: Future[R], request: Request[R], *, deadline: float | None, limit: float | None
    ) -> Flow[None]:
        """Wait for the response to a request. See ``call``."""
        gives_up = limit is not None and (deadline is None or limit < deadline)
        yield Wait((pending,), limit if gives_up else deadline)
        while gives_up and not pending.done and self.moved_at + self._request_timeout > self.clock():
            later = self.moved_at + self._request_timeout
            gives_up = deadline is None or later < deadline
            yield Wait((pending,), later if gives_up else deadline)
        if pending.done:
            return
        name = request.INFO.name
        if not gives_up:
            if limit is not None:
                self._timed_out_requests.append((pending, limit))
            raise DeadlineError(waiting_for=f"the answer to {name} from {self.address}")
        self.close_overdue()
        reason = f"no answer to {name} within {self._request_timeout:g} s"
        raise ConnectionFailedError(address=str(self.address), step="request", reason=reason)

    def close_if_overdue(self, now: float) -> None:
        """Close the connection if the response to an abandoned request is overdue."""
        while self._timed_out_requests and self._timed_out_requests[0][0].done:
            self._timed_out_requests.popleft()
        if self._timed_out_requests and self._timed_out_requests[0][1] <= now:
            self.close_overdue()

    def close_overdue(self) -> None:
        """End the connection because the broker did not answer in time. Other brokers are preferred for a while."""
        if self._dialer is not None:
            self._dialer.unanswered(self.address)
        if self._transport is not None:
            self._transport.close()
        reason = f"no answer within {self._request_timeout:g} s"
        self._end(ConnectionFailedError(address=str(self.address), step="request", reason=reason))

    def send_when_ready(self, send: Callable[[], Future[T]], deadline: float | None) -> Flow[Future[T]]:
        """Call a function that sends one request, when the in-flight limit allows it. See ``TurnQueue.send``."""
        return self._turns.send(send, deadline)

    def send(
        self, request: Request[R], version: int | None = None, *, options: CodecOptions = DEFAULT_OPTIONS
    ) -> Future[R]:
        """Send a request and return the future of its response, without waiting.

        For a Produce request with acks=0, the future resolves at once with the default response. Raises
        ``UnsupportedVersionError``, ``EncodeError``, and, without sending, ``RequestLimitError`` if the connection is
        full.
        """
        pending: Future[R] = Future()
        if not self.alive or self._transport is None:
            pending.fail(self._failure())
            return pending
        if self.is_full:
            raise RequestLimitError(address=str(self.address), limit=self._limit)
        if version is None:
            version = self.highest_version(type(request))
        timing = _Timing(self.clock())
        data = self._connection.send(request, version, opaque=(pending, type(request), timing), options=options)
        self._unsent.append(timing)
        self._transport.write(data)
        if self.hooks.has("request_sent"):
            api = request.INFO.name.removesuffix("Request")
            self.hooks.call("request_sent", str(self.address), self.broker_id, api, version, len(data))
        if not self._connection.in_flight:
            self._pull()
        return pending

    def send_token(self, token: bytes) -> Future[bytes]:
        """Send a SASL token without a header (after SaslHandshake version 0); return the future of the response."""
        pending: Future[bytes] = Future()
        if not self.alive or self._transport is None:
            pending.fail(self._failure())
            return pending
        self._transport.write(self._connection.send_token(token, opaque=(pending, None, None)))
        return pending

    def authenticate(self, credentials: Credentials, network: Network, deadline: float) -> Flow[float | None]:
        """Authenticate the client; return the session lifetime in seconds. See ``auth.authenticate``.

        Only clients with credentials import that module.
        """
        from kafka_msgs.client.auth import authenticate

        return authenticate(self, credentials, network, deadline)

    def highest_version(self, cls: type[Request[Any]]) -> int:
        """Return the highest version of a request that the broker and the library support.

        Raises ``UnsupportedVersionError``, which lists the versions of both sides.
        """
        both = self.version_range(cls)
        if both.empty:
            offered = self._offered.get(cls.INFO.api_key, NONE)
            raise UnsupportedVersionError(
                message=cls.INFO.name, version=None, supported=cls.INFO.versions, offered=offered
            )
        return both.highest

    def version_range(self, cls: type[Request[Any]]) -> VersionRange:
        """Return the versions of a request that the broker and the library support. The range may be empty."""
        both = self._versions.get(cls)
        if both is None:
            offered = self._offered.get(cls.INFO.api_key, NONE)
            both = self._versions[cls] = cls.INFO.versions.intersect(offered)
        return both

    @property
    def in_flight(self) -> int:
        """The number of in-flight requests."""
        return self._connection.in_flight

    @property
    def is_full(self) -> bool:
        """Whether the in-flight limit is reached."""
        return self.alive and self._connection.in_flight >= self._limit

    def close(self) -> None:
        """End the connection. All in-flight requests fail."""
        if self._transport is not None:
            self._transport.close()
        if self.alive:
            self._end(None)

    @property
    def bytes_wanted(self) -> int:
        """The number of missing bytes of the current response."""
        return self._connection.bytes_needed

    def connection_made(self) -> None:
        """Called by the network."""
        self.step = "negotiate"
        self.opening.resolve(None)

    def data_sent(self) -> None:
        """Called by the network: all written data has been sent."""
        self.moved_at = now = self.clock()
        for each in self._unsent:
            each.left = now
        self._unsent.clear()

    def data_received(self, data: bytes) -> None:
        """Called by the network."""
        self.moved_at = self.clock()
        self._connection.receive_data(data)
        self._pull()

    def connection_lost(self, error: Exception | None) -> None:
        """Called by the network."""
        self._end(error)

    def _open_for_requests(self) -> None:
        self.step = "request"
        self.ready = True
        log.debug("%s: connected", self.address)
        self.hooks.call("connected", str(self.address), self.broker_id, self.clock() - self._opening_since)

    def learn_versions(self, response: ApiVersionsResponse) -> None:
        """Store the API versions of the broker."""
        self.api_versions = response
        self._offered = {each.api_key: VersionRange(each.min_version, each.max_version) for each in response.api_keys}
        self._versions.clear()

    def _pull(self) -> None:
        """Resolve requests from the events of the connection."""
        while True:
            try:
                event = self._connection.next_event()
            except KafkaMsgsError as error:
                self._break(error)
                return
            if isinstance(event, ResponseReceived):
                if self.hooks.has("response_received"):
                    self._report(event)
                event.opaque[0].resolve_lazily(event.message)
                if self._turns:
                    self._turns.grant()
            elif isinstance(event, NeedData):
                return
            elif isinstance(event, TokenReceived):
                event.opaque[0].resolve(event.token)
            elif isinstance(event, NoResponse):
                self._unanswered(event)
            elif isinstance(event, ConnectionClosed):
                return

    def _report(self, event: ResponseReceived) -> None:
        """Call the hooks for a response."""
        _, cls, timing = event.opaque
        left = timing.begin if timing.left is None else timing.left
        api, queued, waited = cls.INFO.name.removesuffix("Request"), left - timing.begin, self.clock() - left
        size = len(event.payload) + _SIZE_LENGTH
        self.hooks.call(
            "response_received", str(self.address), self.broker_id, api, event.version, size, queued, waited
        )

    def _unanswered(self, event: NoResponse) -> None:
        pending, cls, _ = event.opaque
        if event.expected and cls is not None:
            pending.resolve(cls.response_class()())
        else:
            pending.fail(self._failure())

    def _break(self, error: Exception) -> None:
        """Close the connection after a protocol violation of the broker."""
        final = self.step == "negotiate"
        failure = ConnectionFailedError(
            address=str(self.address), step=self.step, reason=str(error), retriable=not final
        )
        failure.__cause__ = error
        if self._transport is not None:
            self._transport.close()
        self._end(failure)

    def _end(self, error: Exception | None) -> None:
        """Fail all in-flight requests."""
        if not self.alive:
            return
        self.alive = False
        self.failure = error
        if self.ready:
            log.debug("%s: the connection ended: %s", self.address, error or "closed")
            self.hooks.call("disconnected", str(self.address), self.broker_id, error)
        self.opening.fail(self._failure())
        for each in self._connection.close():
            each.opaque[0].fail(self._failure())
        self._turns.grant()

    def _failure(self) -> Exception:
        """Return the error for requests that will get no response."""
        if isinstance(self.failure, ConnectionFailedError):
            broken = self.failure
            step, reason = broken.step, broken.reason
            if step == "request" and not self.ready:
                step = self.step
            return ConnectionFailedError(
                address=str(self.address), step=step, reason=reason, retriable=broken.retriable
            )
        return ConnectionFailedError(address=str(self.address), step=self.step, reason="the connection was closed")


def _overdue(error: DeadlineError) -> str:
    """Return the reason for a connection timeout, with the last failure."""
    return "the time is over" if error.cause is None else f"the time is over; the last failure was: {error.cause}"
