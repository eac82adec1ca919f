"""A request in the broker: its client, its connection, and its single response.

A handler calls ``respond`` or ``fail`` immediately, or keeps the call and responds later. Each call gets one response.
The module does not depend on sockets: the creator of a call provides a ``ResponseSink``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, Generic, Protocol, TypeVar

from attrs import define, evolve, frozen

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.client_session import ClientSession, VirtualBroker
from kafka_msgs.broker.quotas import QuotaMeter, QuotaMeters
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import InternalError, RequestRefusedError
from kafka_msgs.message import Request, Response
from kafka_msgs.schema import fields
from kafka_msgs.wire import error_response, request_needs_response

__all__ = ["ApiHandler", "MangledResponse", "ServerCall"]

R = TypeVar("R", bound=Request[Any])
R_co = TypeVar("R_co", bound=Request[Any], covariant=True)

OPERATIONS: Final[Mapping[ResourceType, tuple[AclOperation, ...]]] = {
    kind: tuple(AclOperation[name] for name in names.split())
    for kind, names in (
        (ResourceType.TOPIC, "READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"),
        (ResourceType.GROUP, "READ DELETE DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"),
        (ResourceType.CLUSTER, "CREATE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE"),
    )
}
"""The operations that ACLs can allow on each resource type (Kafka's ``AclEntry.supportedOperations``)."""

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""

_PERCENT_OF_A_SECOND: Final = 100 / 10**9


@frozen(kw_only=True)
class MangledResponse:
    """The bytes to send instead of a response, in pieces with a pause of ``interval_ms`` milliseconds between them.

    ``closes`` closes the connection after the last piece, with a reset if ``resets``. ``then`` mangles the next
    response of the connection.
    """

    pieces: tuple[bytes, ...]
    interval_ms: int = 0
    closes: bool = False
    resets: bool = False
    then: Callable[[bytes], MangledResponse] | None = None


class ResponseSink(Protocol):
    """The transport of responses to a client."""

    def reply(self, call: ServerCall[Any], response: Response | None) -> None:
        """Send the response to a call. None means that the call has no response (Produce with ``acks=0``)."""

    def disconnect(self, call: ServerCall[Any], *, reset: bool = False) -> None:
        """Close the connection of a call without a response: cleanly, or with a reset."""


@define(eq=False, kw_only=True)
class ServerCall(Generic[R]):
    """One request of ``size`` bytes, excluding the four length bytes. ``received_at`` is in milliseconds.

    ``throttle_time_ms`` is the client's throttle time. The response contains it if it has the field, and the connection
    is muted for that time (KIP-219). ``exempt`` is True if the handling time is not charged to quotas. The handling
    time lasts from ``began_at`` to ``ended_at``, in nanoseconds.

    The records of a decoded request are views of its frame. ``mangle`` replaces the response frame, for client tests.
    ``closes`` closes the connection after the response.
    """

    cluster: BrokerInterface
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
        """The API key of the request."""
        return self.request.INFO.api_key or 0

    @property
    def broker(self) -> VirtualBroker:
        """The broker that the request was sent to."""
        return self.cluster.brokers[self.session.broker_id]

    def respond(self, response: Response | None) -> None:
        """Send the response. None means no response. Raises ``InternalError`` if the call already has a response."""
        self._mark_responded()
        self.charge_time()
        if response is not None and self.throttle_time_ms and _has_throttle_time(type(response)):
            response = evolve(response, throttle_time_ms=self.throttle_time_ms)  # type: ignore[call-arg]
        for observer in self.cluster.response_observers:
            observer(self, response)
        self.transport.reply(self, response)

    def fail(self, error: IntEnum, message: str | None = None) -> None:
        """Send a response that reports the failure of the whole request.

        A request without a response (Produce with ``acks=0``) loses its connection, the only way to report the failure.
        """
        if not request_needs_response(self.request):
            self.disconnect()
            return
        self.respond(error_response(self.request, error, self.version, error_message=message))

    def disconnect(self, *, reset: bool = False) -> None:
        """Close the connection without a response: cleanly, or with a reset."""
        self._mark_responded()
        self.transport.disconnect(self, reset=reset)

    @property
    def meters(self) -> QuotaMeters:
        """The quota meters of the broker."""
        return self.broker.meters

    def charge(self, meter: QuotaMeter, amount: float) -> int:
        """Charge usage to a quota. The client is throttled above the quota. Return its throttle time in ms."""
        delay = meter.charge(self.session.principal.name, self.client_id, amount, self.cluster.now)
        self.throttle_time_ms = max(self.throttle_time_ms, delay)
        return delay

    def charge_time(self) -> None:
        """Charge the handling time of the request once (``request_percentage``)."""
        if self.exempt or not self.meters.request.limits.active:
            return
        self.exempt = True
        ended_at = self.cluster.stopwatch() if self.ended_at is None else self.ended_at
        taken = ended_at - self.began_at if self.began_at is not None else 0
        self.charge(self.meters.request, taken * _PERCENT_OF_A_SECOND)

    def charge_mutations(self, partitions: int, *, strict: bool, forwarded: bool = False) -> None:
        """Charge created or deleted partitions (KIP-599).

        The response to a ``forwarded`` request contains no throttle time. Raises ``RequestRefusedError`` with
        THROTTLING_QUOTA_EXCEEDED if the client is still throttled and the API is ``strict``, which means that clients
        of this version handle the refusal.
        """
        meter = self.cluster.brokers[self.cluster.controller_id].meters.mutation
        if not strict:
            self.charge(meter, partitions)
            return
        delay = meter.admit(self.session.principal.name, self.client_id, partitions, self.cluster.now)
        if delay:
            self.throttle_time_ms = max(self.throttle_time_ms, 0 if forwarded else delay)
            raise RequestRefusedError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)

    def allows(self, operation: AclOperation, kind: ResourceType, name: str) -> bool:
        """Return whether the client may do this. Without an authorizer everything is allowed."""
        authorizer = self.cluster.authorizer
        return authorizer is None or authorizer(self.session, operation, kind, name)

    def allows_cluster(self, operation: AclOperation) -> bool:
        """Return whether the client may do this to the cluster."""
        return self.allows(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def require(self, operation: AclOperation, kind: ResourceType, *names: str) -> None:
        """Raise ``RequestRefusedError`` without this permission on all resources, for example with
        TOPIC_AUTHORIZATION_FAILED.
        """
        for name in names:
            if not self.allows(operation, kind, name):
                raise RequestRefusedError(ErrorCode[f"{kind.name}_AUTHORIZATION_FAILED"])

    def require_cluster(self, operation: AclOperation) -> None:
        """Raise ``RequestRefusedError`` with CLUSTER_AUTHORIZATION_FAILED without this permission on the cluster."""
        self.require(operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def require_group(self, group_id: str, operation: AclOperation = AclOperation.READ) -> None:
        """Raise ``RequestRefusedError`` with GROUP_AUTHORIZATION_FAILED without this permission on the group."""
        self.require(operation, ResourceType.GROUP, group_id)

    def operations(self, kind: ResourceType, name: str = CLUSTER_NAME) -> int:
        """Return the client's authorized operations on a resource, as the bit field of a response."""
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
    """The handler of one request class. ``run`` may raise ``RequestRefusedError`` to fail the whole request.

    ``allowed_unauthenticated`` is True for requests that clients may send before they authenticate. ``exempt`` is True
    if the handling time is not charged to quotas. ApiVersions omits the API unless the attribute ``advertised_with`` of
    ``BrokerConfig`` is set.
    """

    request: type[R]
    run: Callable[[ServerCall[R]], None]
    allowed_unauthenticated: bool = False
    exempt: bool = False
    advertised_with: str | None = None
