"""A request in the broker: who sent it on which connection, and its one answer.

A handler calls ``respond`` or ``fail`` at once, or keeps the call and does it later. Each call is answered once.
Nothing here knows sockets: who made the call gave it a ``ResponseSink``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from attrs import Factory, define, evolve, field, frozen

from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import InternalError, RequestRefusedError
from kafka_msgs.message import Request, Response
from kafka_msgs.schema import fields
from kafka_msgs.wire import error_response, request_needs_response

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.broker.config import ListenerConfig
    from kafka_msgs.broker.quotas import QuotaMeter, QuotaMeters
    from kafka_msgs.broker.virtual_broker import VirtualBroker

__all__ = [
    "ANONYMOUS",
    "ApiHandler",
    "ClientSession",
    "MangledResponse",
    "Principal",
    "ResponseSink",
    "SaslServer",
    "ServerCall",
]

R = TypeVar("R", bound=Request[Any])
R_co = TypeVar("R_co", bound=Request[Any], covariant=True)

OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
}
"""The operations that can be allowed on a resource of each type (Kafka's ``AclEntry.supportedOperations``)."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""

_PERCENT_OF_A_SECOND: Final = 100 / 10**9


@frozen
class Principal:
    """Who speaks on a connection. ``str`` gives Kafka's form, such as ``User:alice``."""

    type: str = "User"
    name: str = "ANONYMOUS"

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal()
"""The principal of a connection without authentication."""


class SaslServer(Protocol):
    """A login under way. ``user`` is the name when it succeeded, and None before."""

    user: str | None

    def evaluate(self, token: bytes) -> bytes:
        """Return the answer to a token. Raises ``RequestRefusedError`` with SASL_AUTHENTICATION_FAILED."""


@define(eq=False, kw_only=True)
class ClientSession:
    """One connection to one virtual broker. ``client_host`` has the form that Kafka's records have: ``/127.0.0.1``.

    On a listener with SASL a client must log in. ``sasl_server`` is the login under way with ``mechanism``,
    ``session_expires_at`` the moment (ms) from which it must log in again, and ``login_again_at`` when it last began to
    do so. ``end`` closes the connection: from then on answers are dropped, and the callbacks of ``on_close`` are called
    once.
    """

    id: int
    broker_id: int
    listener: ListenerConfig
    client_host: str = "/127.0.0.1"
    principal: Principal = ANONYMOUS
    software_name: str = ""
    software_version: str = ""
    sasl_server: SaslServer | None = None
    authenticated: bool = field(init=False)
    session_expires_at: int | None = None
    login_again_at: int = 0
    mechanism: str | None = None
    closed: bool = False
    _on_close: dict[int, Callable[[], None]] = Factory(dict)
    _callbacks: int = 0

    @authenticated.default
    def _needs_no_login(self) -> bool:
        return not self.listener.sasl

    def is_authenticated(self, now: int) -> bool:
        """Return whether the client is logged in, and its login has not ended."""
        return (
            self.authenticated
            and self.sasl_server is None
            and (self.session_expires_at is None or now < self.session_expires_at)
        )

    def on_close(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` when the connection is closed. Return what takes this back."""
        self._callbacks = number = self._callbacks + 1
        self._on_close[number] = callback
        return lambda: self._on_close.pop(number, None) and None

    def end(self) -> None:
        """Note that the connection is closed."""
        self.closed = True
        callbacks, self._on_close = self._on_close, {}
        for callback in callbacks.values():
            callback()


@frozen(kw_only=True)
class MangledResponse:
    """What is sent instead of an answer: pieces of bytes, with a pause of ``interval_ms`` milliseconds between them.

    ``closes`` ends the connection after the last piece, with a reset if ``resets``. ``then`` makes what is sent instead
    of the next answer of the connection.
    """

    pieces: tuple[bytes, ...]
    interval_ms: int = 0
    closes: bool = False
    resets: bool = False
    then: Callable[[bytes], MangledResponse] | None = None


class ResponseSink(Protocol):
    """What carries answers to a client."""

    def reply(self, call: ServerCall[Any], response: Response | None) -> None:
        """Send the response to a call. None means that the call gets no response (Produce with ``acks=0``)."""

    def disconnect(self, call: ServerCall[Any], *, reset: bool = False) -> None:
        """Close the connection of a call without an answer: in order, or with a reset."""


@define(eq=False, kw_only=True)
class ServerCall(Generic[R]):
    """One request of ``size`` bytes, without the four of its length. ``received_at`` is in milliseconds.

    ``throttle_time_ms`` is how long the client must wait because of a quota. The answer says so if it has the field,
    and the connection is mute for that time (KIP-219). ``exempt`` is True if the time that the request takes does not
    count. It takes from ``began_at`` to ``ended_at``, in nanoseconds.

    The records of a decoded request are views of the bytes of its frame. ``mangle`` makes what is sent instead of the
    frame of the answer, for tests of clients. ``closes`` ends the connection after the answer.
    """

    cluster: Cluster
    session: ClientSession
    request: R
    version: int
    transport: ResponseSink
    correlation_id: int = 0
    client_id: str | None = None
    received_at: int = 0
    size: int = 0
    throttle_time_ms: int = 0
    exempt: bool = False
    began_at: int | None = None
    ended_at: int | None = None
    responded: bool = False
    mangle: Callable[[bytes], MangledResponse] | None = None
    closes: bool = False

    @property
    def api_key(self) -> int:
        """The api key of the request."""
        return self.request.INFO.api_key or 0

    @property
    def broker(self) -> VirtualBroker:
        """The broker that the request was sent to."""
        return self.cluster.brokers[self.session.broker_id]

    def respond(self, response: Response | None) -> None:
        """Send the response. None means no response. Raises ``InternalError`` if the call was answered before."""
        self._mark_responded()
        self.charge_time()
        if response is not None and self.throttle_time_ms and _has_throttle_time(type(response)):
            response = evolve(response, throttle_time_ms=self.throttle_time_ms)  # type: ignore[call-arg]
        for observer in self.cluster.response_observers:
            observer(self, response)
        self.transport.reply(self, response)

    def fail(self, error: IntEnum, message: str | None = None) -> None:
        """Send the response which reports that the whole request failed.

        A request without a response (Produce with ``acks=0``) loses its connection: the client learns it no other way.
        """
        if not request_needs_response(self.request):
            self.disconnect()
            return
        self.respond(error_response(self.request, error, self.version, error_message=message))

    def disconnect(self, *, reset: bool = False) -> None:
        """Close the connection without an answer: in order, or with a reset."""
        self._mark_responded()
        self.transport.disconnect(self, reset=reset)

    @property
    def meters(self) -> QuotaMeters:
        """What the broker measures for quotas."""
        return self.broker.meters

    def charge(self, meter: QuotaMeter, amount: float) -> int:
        """Count what a quota is about. The client waits if it used too much. Return how long (ms)."""
        delay = meter.charge(self.session.principal.name, self.client_id, amount, self.cluster.now)
        self.throttle_time_ms = max(self.throttle_time_ms, delay)
        return delay

    def charge_time(self) -> None:
        """Count the time that the request has taken, unless that was done already (``request_percentage``)."""
        if self.exempt or not self.meters.request.limits.active:
            return
        self.exempt = True
        ended_at = self.cluster.stopwatch() if self.ended_at is None else self.ended_at
        taken = ended_at - self.began_at if self.began_at is not None else 0
        self.charge(self.meters.request, taken * _PERCENT_OF_A_SECOND)

    def charge_mutations(self, partitions: int, *, strict: bool, forwarded: bool = False) -> None:
        """Count partitions that are created or deleted (KIP-599). The answer to a ``forwarded`` request has no delay.

        Raises ``RequestRefusedError`` with THROTTLING_QUOTA_EXCEEDED if the client should not have asked yet, and the
        api is ``strict``: its version tells clients that they may be refused.
        """
        meter = self.cluster.brokers[self.cluster.controller_id].meters.mutation
        if not strict:
            self.charge(meter, partitions)
            return
        delay = meter.admit(self.session.principal.name, self.client_id, partitions, self.cluster.now)
        if delay:
            self.throttle_time_ms = max(self.throttle_time_ms, 0 if forwarded else delay)
            raise RequestRefusedError(error=ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def allows(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether the client may do this. Without an authorizer everything is allowed."""
        authorizer = self.cluster.authorizer
        return authorizer is None or authorizer(self.session, operation, kind, name)

    def allows_cluster(self, operation: AclOperation) -> bool:
        """Return whether the client may do this to the cluster."""
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def require_cluster(self, operation: AclOperation) -> None:
        """Raise ``RequestRefusedError`` with CLUSTER_AUTHORIZATION_FAILED unless the client may do this to
        the cluster.
        """
        if not self.allows_cluster(operation):
            raise RequestRefusedError(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def operations(self, kind: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the operations that the client may do on a resource, as the bits of an answer."""
        return sum(1 << each for each in OPERATIONS[kind] if self.allows(each, kind, name))

    def _mark_responded(self) -> None:
        if self.responded:
            raise InternalError(reason=f"{self.request.INFO.name} is answered twice")
        self.responded = True


_THROTTLED: dict[type, bool] = {}


def _has_throttle_time(cls: type[Response]) -> bool:
    found = _THROTTLED.get(cls)
    if found is None:
        found = _THROTTLED[cls] = any(field.name == "ThrottleTimeMs" for field in fields(cls))
    return found


@frozen
class ApiHandler(Generic[R]):
    """What answers the requests of one class. ``run`` may raise ``RequestRefusedError``: the whole request failed.

    ``allowed_unauthenticated`` is True for requests that a client may send before it has authenticated. ``exempt`` is
    True if the time that they take does not count for quotas. ``advertised`` is False for an api that ApiVersions
    leaves out, and that is answered all the same.
    """

    request: type[R]
    run: Callable[[ServerCall[R]], None]
    allowed_unauthenticated: bool = False
    exempt: bool = False
    advertised: bool = True
