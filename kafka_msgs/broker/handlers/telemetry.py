"""GetTelemetrySubscriptions and PushTelemetry (KIP-714).

Without ``BrokerConfig.telemetry``, the broker behaves as a Kafka broker without a metrics plugin: it omits both APIs
from ApiVersions. If a client sends them anyway, the broker requests no metrics and drops those it receives. In Kafka
this is ``ClientMetricsManager``.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final
from uuid import UUID

from attrs import define

from kafka_msgs.broker.client_metrics import MetricsSubscription, PushedMetrics
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.checksums import crc32c
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kafka_msgs.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from kafka_msgs.messages.push_telemetry_request import PushTelemetryRequest
from kafka_msgs.messages.push_telemetry_response import PushTelemetryResponse

__all__ = ["HANDLERS"]

_EXPIRES: Final = 3
"""The number of push intervals after which a client is forgotten."""
_MAX_INSTANCES: Final = 16_384
_NEVER: Final = 0
_NO_IDS: Final = frozenset({UUID(int=0), UUID(int=1)})
_ZSTD, _LZ4, _GZIP, _SNAPPY = 4, 3, 1, 2
_MAY_ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)


@define(eq=False)
class _Instance:
    """The state of a client: the times and results of its last get and push requests."""

    id: UUID
    used_at: int
    subscription: MetricsSubscription
    version: int
    got_at: int = _NEVER
    pushed_at: int = _NEVER
    error: ErrorCode = ErrorCode.NONE
    terminating: bool = False

    @property
    def subscription_id(self) -> int:
        """The subscription id: a checksum of the requested metrics, combined with the client instance id."""
        halves = (self.id.int >> 64) ^ self.id.int
        requested = f"[{', '.join(self.subscription.metrics)}]{self.subscription.interval_ms}"
        mixed = crc32c(requested.encode()) ^ (halves >> 32) ^ halves
        return (mixed + 2**31) % 2**32 - 2**31

    def has_expired(self, now: int) -> bool:
        """Return whether the client has been idle for too long."""
        return now - self.used_at >= _EXPIRES * self.subscription.interval_ms

    def may_get(self, now: int) -> bool:
        """Return whether the client may get its subscription now, and record the request."""
        if now - max(self.got_at, self.pushed_at) >= self.subscription.interval_ms:
            self.got_at = now
            return True
        return self.error in _MAY_ASK_AGAIN

    def may_push(self, now: int) -> bool:
        """Return whether the client may push now, and record the request."""
        if self.got_at > self.pushed_at or now - self.pushed_at >= self.subscription.interval_ms:
            self.pushed_at = now
            return True
        return False


class _ClientInstances:
    """The recent clients of one broker, until they are idle for long or close their connections."""

    def __init__(self) -> None:
        self._found: dict[UUID, _Instance] = {}

    def of(self, call: ServerCall[Any], instance_id: UUID) -> _Instance:
        """Return a client and mark it as used. After a change of subscriptions it begins again."""
        now, metrics = call.cluster.now, call.cluster.client_metrics
        found = self._found.pop(instance_id, None)
        if found is None or found.version != metrics.version or found.has_expired(now):
            subscription = metrics.subscription(call.session, call.client_id, instance_id)
            found = _Instance(instance_id, now, subscription, metrics.version)
            call.session.on_close(partial(self._forget, instance_id))
            while len(self._found) >= _MAX_INSTANCES:
                del self._found[next(iter(self._found))]
        found.used_at = now
        self._found[instance_id] = found
        return found

    def _forget(self, instance_id: UUID) -> None:
        self._found.pop(instance_id, None)


def _instance(call: ServerCall[Any], instance_id: UUID) -> _Instance:
    return call.broker.component(_ClientInstances, _ClientInstances).of(call, instance_id)


def _get(call: ServerCall[GetTelemetrySubscriptionsRequest]) -> None:
    asked = call.request.client_instance_id
    instance = _instance(call, asked if asked.int else call.cluster.new_id())
    if not instance.may_get(call.cluster.now):
        raise RequestRefusedError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    instance.error = ErrorCode.NONE
    call.respond(
        GetTelemetrySubscriptionsResponse(
            client_instance_id=instance.id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=(_ZSTD, _LZ4, _GZIP, _SNAPPY),
            push_interval_ms=instance.subscription.interval_ms,
            requested_metrics=instance.subscription.metrics,
            telemetry_max_bytes=_max_bytes(call),
            delta_temporality=True,
        )
    )


def _push(call: ServerCall[PushTelemetryRequest]) -> None:
    request = call.request
    if request.client_instance_id in _NO_IDS:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
    instance = _instance(call, request.client_instance_id)
    instance.error = _check(call, instance)
    instance.terminating = request.terminating
    if instance.error:
        raise RequestRefusedError(instance.error)
    if instance.subscription.metrics:
        _store(call)
    call.respond(PushTelemetryResponse())


def _store(call: ServerCall[PushTelemetryRequest]) -> None:
    request, session = call.request, call.session
    call.cluster.client_metrics.store(
        PushedMetrics(
            broker_id=session.broker_id,
            client_instance_id=request.client_instance_id,
            client_id=call.client_id,
            software_name=session.software_name,
            software_version=session.software_version,
            received_at=call.cluster.now,
            is_last=request.terminating,
            compression_type=request.compression_type,
            payload=bytes(request.metrics),
        )
    )


def _check(call: ServerCall[PushTelemetryRequest], instance: _Instance) -> ErrorCode:
    """Return the error of a push request."""
    request = call.request
    if instance.terminating:
        return ErrorCode.INVALID_REQUEST
    if not instance.may_push(call.cluster.now) and not request.terminating:
        return ErrorCode.THROTTLING_QUOTA_EXCEEDED
    if request.subscription_id != instance.subscription_id:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if not 0 <= request.compression_type <= _ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if len(request.metrics) > _max_bytes(call):
        return ErrorCode.TELEMETRY_TOO_LARGE
    return ErrorCode.NONE


def _max_bytes(call: ServerCall[Any]) -> int:
    return call.cluster.configs.number("telemetry.max.bytes")


HANDLERS: Final = (
    ApiHandler(GetTelemetrySubscriptionsRequest, _get, advertised_with="telemetry"),
    ApiHandler(PushTelemetryRequest, _push, advertised_with="telemetry"),
)
