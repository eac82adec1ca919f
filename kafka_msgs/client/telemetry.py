"""OpenTelemetry support: metrics through hooks, and traces through record headers. Needs the extra ``otel``.

    client = Client(servers, hooks=[OpenTelemetryHooks()])
    producer.send("orders", value, headers=inject_context())
    with tracer.start_as_current_span("handle", context=extract_context(record.headers)): ...

The names follow the semantic conventions for messaging clients; headers carry the W3C trace context.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafka_msgs.errors import MissingExtraError

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

try:
    from opentelemetry import metrics, propagate
    from opentelemetry.context import Context
except ImportError:
    raise MissingExtraError(feature="OpenTelemetry", extra="otel", package="opentelemetry-api") from None

__all__ = ["OpenTelemetryHooks", "extract_context", "inject_context"]

Headers = Iterable[tuple[str, Any]]


class OpenTelemetryHooks:
    """Hooks that record metrics with a meter. The default is the global provider."""

    def __init__(self, provider: MeterProvider | None = None) -> None:
        meter = (provider or metrics.get_meter_provider()).get_meter("kafka_msgs.client")
        self._duration = meter.create_histogram(
            "messaging.client.operation.duration", unit="s", description="Time from sending a request to its response"
        )
        self._sent = meter.create_counter("messaging.client.sent.bytes", unit="By", description="Bytes of requests")
        self._received = meter.create_counter(
            "messaging.client.received.bytes", unit="By", description="Bytes received"
        )
        self._connections = meter.create_up_down_counter("messaging.client.connections", description="Connections")
        self._throttled = meter.create_histogram("messaging.client.throttle.duration", unit="s", description="Pauses")

    def connected(self, address: str, broker_id: int | None, seconds: float) -> None:
        """See ``ClientHooks``."""
        self._connections.add(1, _attributes(address))

    def disconnected(self, address: str, broker_id: int | None, error: Exception | None) -> None:
        """See ``ClientHooks``."""
        self._connections.add(-1, _attributes(address))

    def request_sent(self, address: str, broker_id: int | None, api: str, version: int, size: int) -> None:
        """See ``ClientHooks``."""
        self._sent.add(size, _attributes(address, api))

    def response_received(
        self, address: str, broker_id: int | None, api: str, version: int, size: int, queued: float, waited: float
    ) -> None:
        """See ``ClientHooks``."""
        self._received.add(size, _attributes(address, api))
        self._duration.record(queued + waited, _attributes(address, api))

    def throttled(self, address: str, broker_id: int | None, seconds: float) -> None:
        """See ``ClientHooks``."""
        self._throttled.record(seconds, _attributes(address))


def inject_context(headers: Headers = (), context: Context | None = None) -> list[tuple[str, Any]]:
    """Return record headers with the trace context, by default the current one."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context=context)
    return [*headers, *((name, text.encode()) for name, text in carrier.items())]


def extract_context(headers: Headers) -> Context:
    """Return the trace context in record headers. The last header of a name wins."""
    texts = {name: bytes(value).decode("utf-8", "replace") for name, value in headers if value is not None}
    return propagate.extract(texts)


def _attributes(address: str, api: str | None = None) -> dict[str, Any]:
    host, _, port = address.rpartition(":")
    attributes: dict[str, Any] = {"messaging.system": "kafka", "server.address": host, "server.port": int(port)}
    return attributes if api is None else attributes | {"messaging.operation.name": api}
