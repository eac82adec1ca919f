"""A request in the broker: who sent it on which connection, and its one answer.

A handler calls ``answer`` or ``fail`` at once, or keeps the call and does it later. Each call is answered once. Nothing
here knows sockets: who made the call gave it a ``Transport``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from attrs import Factory, define, evolve, field, frozen

from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import InternalError, RefusedError
from kafka_msgs.message import Request, Response
from kafka_msgs.schema import fields
from kafka_msgs.wire import error_response, request_needs_response

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.broker.config import ListenerConfig
    from kafka_msgs.broker.quotas import Meter, Meters
    from kafka_msgs.broker.virtual_broker import VirtualBroker

__all__ = ["ANONYMOUS", "Call", "Damage", "Exchange", "Handler", "Principal", "Session", "Transport"]

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


class Exchange(Protocol):
    """A login under way. ``user`` is the name when it succeeded, and None before."""

    user: str | None

    def step(self, token: bytes) -> bytes:
        """Return the answer to a token. Raises ``RefusedError`` with SASL_AUTHENTICATION_FAILED."""


@define(eq=False, kw_only=True)
class Session:
    """One connection to one virtual broker. ``client_host`` has the form that Kafka's records have: ``/127.0.0.1``.

    On a listener with SASL a client must log in. ``exchange`` is the login under way with ``mechanism``, ``login_ends``
    the moment (ms) from which it must log in again, and ``login_again_at`` when it last began to do so. ``end`` closes
    the connection: from then on answers are dropped, and the callbacks of ``on_close`` are called once.
    """

    id: int
    broker_id: int
    listener: ListenerConfig
    client_host: str = "/127.0.0.1"
    principal: Principal = ANONYMOUS
    software_name: str = ""
    software_version: str = ""
    exchange: Exchange | None = None
    logged_in: bool = field(init=False)
    login_ends: int | None = None
    login_again_at: int = 0
    mechanism: str | None = None
    closed: bool = False
    _on_close: dict[int, Callable[[], None]] = Factory(dict)
    _callbacks: int = 0

    @logged_in.default
    def _needs_no_login(self) -> bool:
        return not self.listener.sasl

    def may_ask(self, now: int) -> bool:
        """Return whether the client is logged in, and its login has not ended."""
        return self.logged_in and self.exchange is None and (self.login_ends is None or now < self.login_ends)

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
class Damage:
    """What is sent instead of an answer: pieces of bytes, with a pause of ``every_ms`` milliseconds between them.

    ``closes`` ends the connection after the last piece, with a reset if ``resets``. ``then`` makes what is sent instead
    of the next answer of the connection.
    """

    pieces: tuple[bytes, ...]
    every_ms: int = 0
    closes: bool = False
    resets: bool = False
    then: Callable[[bytes], Damage] | None = None


class Transport(Protocol):
    """What carries answers to a client."""

    def reply(self, call: Call[Any], response: Response | None) -> None:
        """Send the response to a call. None means that the call gets no response (Produce with ``acks=0``)."""

    def disconnect(self, call: Call[Any], *, reset: bool = False) -> None:
        """Close the connection of a call without an answer: in order, or with a reset."""


@define(eq=False, kw_only=True)
class Call(Generic[R]):
    """One request of ``size`` bytes, without the four of its length. ``received_at`` is in milliseconds.

    ``throttle_time_ms`` is how long the client must wait because of a quota. The answer says so if it has the field,
    and the connection is mute for that time (KIP-219). ``exempt`` is True if the time that the request takes does not
    count. It takes from ``began_at`` to ``ended_at``, in nanoseconds.

    The records of a decoded request are views of the bytes of its frame. ``damage`` makes what is sent instead of the
    frame of the answer, for tests of clients. ``closes`` ends the connection after the answer.
    """

    cluster: Cluster
    session: Session
    request: R
    version: int
    transport: Transport
    correlation_id: int = 0
    client_id: str | None = None
    received_at: int = 0
    size: int = 0
    throttle_time_ms: int = 0
    exempt: bool = False
    began_at: int | None = None
    ended_at: int | None = None
    answered: bool = False
    damage: Callable[[bytes], Damage] | None = None
    closes: bool = False

    @property
    def api_key(self) -> int:
        """The api key of the request."""
        return self.request.INFO.api_key or 0

    @property
    def node(self) -> VirtualBroker:
        """The broker that the request was sent to."""
        return self.cluster.brokers[self.session.broker_id]

    def answer(self, response: Response | None) -> None:
        """Send the response. None means no response. Raises ``InternalError`` if the call was answered before."""
        self._settle()
        self.charge_time()
        if response is not None and self.throttle_time_ms and _has_throttle_time(type(response)):
            response = evolve(response, throttle_time_ms=self.throttle_time_ms)  # type: ignore[call-arg]
        for observer in self.cluster.observers:
            observer(self, response)
        self.transport.reply(self, response)

    def fail(self, error: IntEnum, message: str | None = None) -> None:
        """Send the response which reports that the whole request failed.

        A request without a response (Produce with ``acks=0``) loses its connection: the client learns it no other way.
        """
        if not request_needs_response(self.request):
            self.disconnect()
            return
        self.answer(error_response(self.request, error, self.version, error_message=message))

    def disconnect(self, *, reset: bool = False) -> None:
        """Close the connection without an answer: in order, or with a reset."""
        self._settle()
        self.transport.disconnect(self, reset=reset)

    @property
    def meters(self) -> Meters:
        """What the broker measures for quotas."""
        return self.node.meters

    def charge(self, meter: Meter, amount: float) -> int:
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

        Raises ``RefusedError`` with THROTTLING_QUOTA_EXCEEDED if the client should not have asked yet, and the api is
        ``strict``: its version tells clients that they may be refused.
        """
        meter = self.cluster.brokers[self.cluster.controller_id].meters.mutation
        if not strict:
            self.charge(meter, partitions)
            return
        delay = meter.admit(self.session.principal.name, self.client_id, partitions, self.cluster.now)
        if delay:
            self.throttle_time_ms = max(self.throttle_time_ms, 0 if forwarded else delay)
            raise RefusedError(error=ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def allows(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether the client may do this. Without an authorizer everything is allowed."""
        authorizer = self.cluster.authorizer
        return authorizer is None or authorizer(self.session, operation, kind, name)

    def allows_cluster(self, operation: AclOperation) -> bool:
        """Return whether the client may do this to the cluster."""
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def require_cluster(self, operation: AclOperation) -> None:
        """Raise ``RefusedError`` with CLUSTER_AUTHORIZATION_FAILED unless the client may do this to the cluster."""
        if not self.allows_cluster(operation):
            raise RefusedError(error=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    def operations(self, kind: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the operations that the client may do on a resource, as the bits of an answer."""
        return sum(1 << each for each in OPERATIONS[kind] if self.allows(each, kind, name))

    def _settle(self) -> None:
        if self.answered:
            raise InternalError(reason=f"{self.request.INFO.name} is answered twice")
        self.answered = True


_THROTTLED: dict[type, bool] = {}


def _has_throttle_time(cls: type[Response]) -> bool:
    found = _THROTTLED.get(cls)
    if found is None:
        found = _THROTTLED[cls] = any(field.name == "ThrottleTimeMs" for field in fields(cls))
    return found


@frozen
class Handler(Generic[R]):
    """What answers the requests of one class. ``run`` may raise ``RefusedError``: the whole request failed.

    ``before_login`` is True for requests that a client may send before it has authenticated. ``exempt`` is True if the
    time that they take does not count for quotas. ``listed`` is False for an api that ApiVersions leaves out, and that
    is answered all the same.
    """

    request: type[R]
    run: Callable[[Call[R]], None]
    before_login: bool = False
    exempt: bool = False
    listed: bool = True
