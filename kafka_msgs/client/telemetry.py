"""OpenTelemetry support: metrics through hooks, and traces through record headers. Needs the extra ``otel``.

    client = Client(servers, hooks=[OpenTelemetryHooks()])
    producer.send("orders", value, headers=inject_context())
    with tracer.start_as_current_span("handle", context=extract_context(record.headers)): ...

The names follow the semantic conventions for messaging clients; headers carry the W3C trace context. Instruments
without a convention begin with ``messaging.kafka.``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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
        self._sent_bytes = meter.create_counter(
            "messaging.client.sent.bytes", unit="By", description="Bytes of requests"
        )
        self._received = meter.create_counter(
            "messaging.client.received.bytes", unit="By", description="Bytes received"
        )
        self._connections = meter.create_up_down_counter("messaging.client.connections", description="Connections")
        self._throttled = meter.create_histogram("messaging.client.throttle.duration", unit="s", description="Pauses")
        self._sent = meter.create_counter(
            "messaging.client.sent.messages", unit="{message}", description="Records that were delivered or abandoned"
        )
        self._consumed = meter.create_counter(
            "messaging.client.consumed.messages", unit="{message}", description="Records that were fetched"
        )
        self._retries = meter.create_counter("messaging.kafka.batch.retries", description="Retries of batches")
        self._delivery = meter.create_histogram(
            "messaging.kafka.delivery.duration", unit="s", description="Time from the first record of a batch"
        )
        self._lag = meter.create_gauge(
            "messaging.kafka.consumer.lag", unit="{message}", description="Records after the last fetched one"
        )
        self._rebalances = meter.create_counter("messaging.kafka.consumer.rebalances", description="New assignments")
        self._assigned = meter.create_gauge("messaging.kafka.consumer.partitions", description="Assigned partitions")

    def connected(self, address: str, broker_id: int | None, seconds: float) -> None:
        """See ``ClientHooks``."""
        self._connections.add(1, _server(address))

    def disconnected(self, address: str, broker_id: int | None, error: Exception | None) -> None:
        """See ``ClientHooks``."""
        self._connections.add(-1, _server(address))

    def request_sent(self, address: str, broker_id: int | None, api: str, version: int, size: int) -> None:
        """See ``ClientHooks``."""
        self._sent_bytes.add(size, _server(address, api))

    def response_received(
        self, address: str, broker_id: int | None, api: str, version: int, size: int, queued: float, waited: float
    ) -> None:
        """See ``ClientHooks``."""
        self._received.add(size, _server(address, api))
        self._duration.record(queued + waited, _server(address, api))

    def throttled(self, address: str, broker_id: int | None, seconds: float) -> None:
        """See ``ClientHooks``."""
        self._throttled.record(seconds, _server(address))

    def batch_written(
        self, topic: str, partition: int, records: int, size: int, offset: int, attempts: int, seconds: float
    ) -> None:
        """See ``ClientHooks``."""
        place = _partition(topic, partition)
        self._sent.add(records, place)
        self._retries.add(attempts, place)
        self._delivery.record(seconds, place)

    def batch_failed(self, topic: str, partition: int, records: int, error: Exception) -> None:
        """See ``ClientHooks``."""
        self._sent.add(records, _partition(topic, partition) | _failure(error))

    def fetched(self, topic: str, partition: int, records: int, size: int, lag: int) -> None:
        """See ``ClientHooks``."""
        place = _partition(topic, partition)
        self._consumed.add(records, place)
        self._lag.set(lag, place)

    def group_changed(
        self, group_id: str, member_id: str, generation: int, assigned: Collection[tuple[str, int]]
    ) -> None:
        """See ``ClientHooks``."""
        self._rebalances.add(1, _group(group_id))
        self._assigned.set(len(assigned), _group(group_id))

    def offsets_committed(
        self, group_id: str, offsets: Mapping[tuple[str, int], int], seconds: float, error: Exception | None
    ) -> None:
        """See ``ClientHooks``."""
        attributes = _group(group_id) | {"messaging.operation.name": "commit"}
        self._duration.record(seconds, attributes if error is None else attributes | _failure(error))


def inject_context(headers: Headers = (), context: Context | None = None) -> list[tuple[str, Any]]:
    """Return record headers with the trace context, by default the current one."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context=context)
    return [*headers, *((name, text.encode()) for name, text in carrier.items())]


def extract_context(headers: Headers) -> Context:
    """Return the trace context in record headers. The last header of a name wins."""
    texts = {name: bytes(value).decode("utf-8", "replace") for name, value in headers if value is not None}
    return propagate.extract(texts)


def _server(address: str, api: str | None = None) -> dict[str, Any]:
    host, _, port = address.rpartition(":")
    attributes = {"messaging.system": "kafka", "server.address": host, "server.port": int(port)}
    return attributes if api is None else attributes | {"messaging.operation.name": api}


def _partition(topic: str, partition: int) -> dict[str, Any]:
    return {
        "messaging.system": "kafka",
        "messaging.destination.name": topic,
        "messaging.destination.partition.id": str(partition),
    }


def _group(group_id: str) -> dict[str, Any]:
    return {"messaging.system": "kafka", "messaging.consumer.group.name": group_id}


def _failure(error: Exception) -> dict[str, Any]:
    return {"error.type": type(error).__name__}
