"""Client metrics (KIP-714): the subscriptions of a cluster, and the metrics that clients have pushed.

A subscription is a config resource of type CLIENT_METRICS. In Kafka this is ``ClientMetricsManager``, and a plugin
receives the metrics. Here ``PushedMetrics`` stores them for tests.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final
from uuid import UUID

from attrs import frozen

from kafka_msgs.broker.controller.config_defs import CLIENT_METRICS, config_keys
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.errors import ClientMetricsError, CompressionError
from kafka_msgs.groups.re2 import compile_regex
from kafka_msgs.log.writers.small_files import uuid_text
from kafka_msgs.records.compression import decompress

if TYPE_CHECKING:
    from kafka_msgs.broker.client_session import ClientSession
    from kafka_msgs.broker.cluster_services import ClusterServices
    from kafka_msgs.broker.controller.image import MetadataDelta
    from kafka_msgs.broker.otlp_metrics import ClientMetric

__all__ = ["ALL_METRICS", "ClientMetrics", "MetricsSubscription", "PushedMetrics"]

ALL_METRICS: Final = "*"
DEFAULT_INTERVAL_MS: Final = 300_000
_MAX_PUSHES: Final = 1000
_MAX_BYTES: Final = 64 * 2**20
_MAX_DECOMPRESSED: Final = 16 * 2**20


@frozen
class MetricsSubscription:
    """The requested metrics of one client, as prefixes of names, and its push interval in milliseconds."""

    metrics: tuple[str, ...] = ()
    interval_ms: int = DEFAULT_INTERVAL_MS


@frozen(kw_only=True, slots=False)
class PushedMetrics:
    """The content of a push request.

    ``payload`` is compressed with the codec ``compression_type``, and ``metrics`` decodes it. ``received_at`` is in
    milliseconds of the brokers' clock. ``is_last`` means that the client is terminating.
    """

    broker_id: int
    client_instance_id: UUID
    client_id: str | None
    software_name: str
    software_version: str
    received_at: int
    is_last: bool
    compression_type: int
    payload: bytes

    @cached_property
    def metrics(self) -> tuple[ClientMetric, ...]:
        """The metrics. Raises ``ClientMetricsError`` if they cannot be decoded."""
        from kafka_msgs.broker.otlp_metrics import decode_metrics

        try:
            data = decompress(self.compression_type, memoryview(self.payload), _MAX_DECOMPRESSED)
        except CompressionError as error:
            raise ClientMetricsError(reason=str(error)) from error
        return decode_metrics(data)


class ClientMetrics:
    """The subscriptions of a cluster, and the recent pushes: at most 1,000, and at most 64 MiB.

    Without ``BrokerConfig.telemetry``, no client has a subscription, as in Kafka without a plugin. ``version`` counts
    the changes of subscriptions.
    """

    def __init__(self, cluster: ClusterServices) -> None:
        self._cluster = cluster
        self._pushes: deque[PushedMetrics] = deque()
        self._size = 0
        self.version = 0
        cluster.image_listeners.append(self._follow)

    def __iter__(self) -> Iterator[PushedMetrics]:
        return iter(self._pushes)

    def _follow(self, delta: MetadataDelta) -> None:
        if any(resource == ConfigResourceType.CLIENT_METRICS for resource, _ in delta.configs):
            self.version += 1

    def subscription(self, session: ClientSession, client_id: str | None, instance_id: UUID) -> MetricsSubscription:
        """Return the union of all subscriptions that match a client, with the shortest interval."""
        client = _attributes(session, client_id, instance_id)
        found = [each for each in self._subscriptions() if _matches(each.get("match", ""), client)]
        metrics = {name for each in found for name in _items(each.get("metrics", ""))}
        if not metrics:
            return MetricsSubscription()
        default = config_keys(CLIENT_METRICS)["interval.ms"].default or ""
        interval = min(int(each.get("interval.ms", default)) for each in found)
        return MetricsSubscription((ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics)), interval)

    def _subscriptions(self) -> list[Mapping[str, str]]:
        if not self._cluster.config.telemetry:
            return []
        configs = self._cluster.image.configs
        return [each for (resource, _), each in configs.items() if resource == ConfigResourceType.CLIENT_METRICS]

    def store(self, pushed: PushedMetrics) -> None:
        """Store a push, and discard the oldest ones above the limits."""
        self._pushes.append(pushed)
        self._size += len(pushed.payload)
        while len(self._pushes) > _MAX_PUSHES or self._size > _MAX_BYTES:
            self._size -= len(self._pushes.popleft().payload)


def _attributes(session: ClientSession, client_id: str | None, instance_id: UUID) -> dict[str, str]:
    return {
        "client_instance_id": uuid_text(instance_id),
        "client_id": client_id or "",
        "client_software_name": session.software_name,
        "client_software_version": session.software_version,
        "client_source_address": session.client_host.lstrip("/"),
        "client_source_port": str(session.client_port),
    }


def _matches(patterns: str, client: Mapping[str, str]) -> bool:
    """Return whether all patterns of a subscription match the attributes of a client."""
    pairs = (each.split("=", 1) for each in _items(patterns))
    return all(compile_regex(pattern.strip())(client[name.strip()]) for name, pattern in pairs)


def _items(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
