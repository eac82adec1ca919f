"""Telemetry (KIP-714): subscriptions of clients, the metrics that they push, and librdkafka as such a client."""

from __future__ import annotations

import gzip
import struct
from typing import Any, Final
from uuid import UUID

import confluent_kafka
import pytest

from kafka_msgs import ApiKey, ApiVersionsRequest, GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from kafka_msgs.broker import ClientMetric, EmbeddedBroker, PushedMetrics
from kafka_msgs.broker.controller.config_changes import replace_configs
from kafka_msgs.broker.otlp_metrics import decode_metrics
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import ClientMetricsError, OptionError, RequestRefusedError
from kafka_msgs.testing import new_topic
from tests.support.eventually import until
from tests.support.virtual_brokers import VirtualCluster

TELEMETRY: Final = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
ID: Final = UUID(int=77)
VERSIONS: Final = ApiVersionsRequest(client_software_name="tests", client_software_version="2.1")


def chunk(number: int, value: bytes) -> bytes:
    """Return a field of a Protobuf message that contains bytes, fewer than 128."""
    return bytes((number << 3 | 2, len(value))) + value


def fixed(number: int, value: bytes) -> bytes:
    return bytes((number << 3 | 1,)) + value


def attribute(key: bytes, value: bytes) -> bytes:
    return chunk(1, key) + chunk(2, value)


POINT: Final = fixed(3, struct.pack("<Q", 5)) + fixed(6, struct.pack("<q", -3)) + chunk(7, attribute(b"t", b"\x10\x01"))
SUM: Final = chunk(1, b"records") + chunk(3, b"1") + chunk(7, chunk(1, POINT) + b"\x10\x01")
GAUGE: Final = chunk(1, b"lag") + chunk(5, chunk(1, fixed(4, struct.pack("<d", 0.5))))
OTHER: Final = chunk(1, b"histogram") + chunk(9, chunk(1, b""))
SCOPE: Final = chunk(2, chunk(2, SUM) + chunk(2, GAUGE) + chunk(2, OTHER))
DATA: Final = chunk(1, chunk(1, chunk(1, attribute(b"client", chunk(1, b"tests")))) + SCOPE)


def test_metrics_are_decoded() -> None:
    assert decode_metrics(b"") == ()
    shared: dict[str, Any] = {"client": "tests"}
    assert decode_metrics(DATA) == (
        ClientMetric(
            name="records", unit="1", kind="sum", value=-3, is_delta=True, time=5, attributes={**shared, "t": True}
        ),
        ClientMetric(name="lag", unit="", kind="gauge", value=0.5, is_delta=False, time=0, attributes=shared),
    )


@pytest.mark.parametrize("size", range(1, len(DATA)))
def test_damaged_metrics_are_an_error(size: int) -> None:
    with pytest.raises(ClientMetricsError):
        decode_metrics(DATA[:size])


@pytest.mark.parametrize("data", [b"\x0b", b"\xff" * 11, b"\x0a\x05", b"\x08\x80"])
def test_bytes_that_are_not_protobuf_are_an_error(data: bytes) -> None:
    with pytest.raises(ClientMetricsError):
        decode_metrics(data)


def pushed(**fields: Any) -> PushedMetrics:
    known: dict[str, Any] = {
        "broker_id": 0,
        "client_instance_id": ID,
        "client_id": "c",
        "software_name": "s",
        "software_version": "1",
    }
    return PushedMetrics(received_at=0, is_last=False, **known | fields)


def test_a_push_is_compressed() -> None:
    assert len(pushed(compression_type=1, payload=gzip.compress(DATA)).metrics) == 2
    with pytest.raises(ClientMetricsError):
        _ = pushed(compression_type=4, payload=DATA).metrics


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster.start(telemetry=True)
    cluster.call(VERSIONS, 4)
    return cluster


def subscribe(cluster: VirtualCluster, name: str, **configs: str) -> None:
    values: dict[str, str | None] = {key.replace("_", "."): value for key, value in configs.items()}
    brokers = cluster.cluster
    brokers.commit(replace_configs(brokers.image, brokers.configs, ConfigResourceType.CLIENT_METRICS, name, values))


def get(cluster: VirtualCluster, instance: UUID = ID) -> Any:
    return cluster.call(GetTelemetrySubscriptionsRequest(client_instance_id=instance), 0)


def push(cluster: VirtualCluster, subscription: int, **fields: Any) -> int:
    request = PushTelemetryRequest(client_instance_id=ID, subscription_id=subscription, metrics=DATA, **fields)
    return cluster.call(request, 0).error_code


@pytest.mark.parametrize(
    ("configs", "metrics", "interval"),
    [
        ([{"metrics": "a.b"}], ("a.b",), 300_000),
        ([{"metrics": "a.b", "interval_ms": "500"}, {"metrics": "c, a.b"}], ("a.b", "c"), 500),
        ([{"metrics": "*,a", "match": "client_software_name=te.*,client_id=test"}], ("*",), 300_000),
        ([{"metrics": "*", "match": "client_software_name=te"}], (), 300_000),
        (
            [{"metrics": "*", "match": "client_source_address=127.0.0.1, client_software_version=2[.]1"}],
            ("*",),
            300_000,
        ),
        ([{"metrics": "*", "match": "client_source_port=1"}], (), 300_000),
        ([{"interval_ms": "500"}], (), 300_000),
    ],
)
def test_a_client_gets_the_union_of_matching_subscriptions(
    cluster: VirtualCluster, configs: list[dict[str, str]], metrics: tuple[str, ...], interval: int
) -> None:
    for number, each in enumerate(configs):
        subscribe(cluster, f"s{number}", **each)
    answer = get(cluster)
    assert (answer.requested_metrics, answer.push_interval_ms) == (metrics, interval)


def test_a_change_of_subscriptions_invalidates_the_client_s(cluster: VirtualCluster) -> None:
    subscribe(cluster, "s", metrics="a", interval_ms="1000")
    first = get(cluster)
    assert push(cluster, first.subscription_id) == ErrorCode.NONE
    assert push(cluster, first.subscription_id) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    subscribe(cluster, "s", metrics="b", interval_ms="1000")
    assert push(cluster, first.subscription_id) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    second = get(cluster)
    assert (second.requested_metrics, second.subscription_id != first.subscription_id) == (("b",), True)
    assert push(cluster, second.subscription_id, terminating=True) == ErrorCode.NONE
    one, two = cluster.cluster.client_metrics
    assert (one.is_last, two.is_last, two.client_id, two.software_name) == (False, True, "test", "tests")
    assert [each.name for each in one.metrics] == ["records", "lag"]


def test_pushes_are_bounded(cluster: VirtualCluster) -> None:
    for number in range(1100):
        cluster.cluster.client_metrics.store(pushed(compression_type=0, payload=b"%d" % number))
    stored = list(cluster.cluster.client_metrics)
    assert (len(stored), stored[0].payload) == (1000, b"100")
    for _ in range(3):
        cluster.cluster.client_metrics.store(pushed(compression_type=0, payload=bytes(30 * 2**20)))
    assert [len(each.payload) for each in cluster.cluster.client_metrics] == [30 * 2**20] * 2


@pytest.mark.parametrize("telemetry", [False, True])
def test_the_apis_are_offered_with_telemetry_only(telemetry: bool) -> None:
    cluster = VirtualCluster.start(telemetry=telemetry)
    subscribe(cluster, "s", metrics="*")
    offered = {each.api_key for each in cluster.call(VERSIONS, 4).api_keys}
    assert (offered >= TELEMETRY, bool(offered & TELEMETRY)) == (telemetry, telemetry)
    assert get(cluster).requested_metrics == (("*",) if telemetry else ())


def test_a_subscription_without_telemetry_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    subscribe(VirtualCluster.start(), "s", metrics="*")
    assert caplog.messages == ["metrics of client_metrics s has no effect without BrokerConfig.telemetry"]
    with EmbeddedBroker() as broker, pytest.raises(OptionError, match="telemetry"):
        broker.subscribe_metrics()


def test_librdkafka_pushes_its_metrics() -> None:
    with EmbeddedBroker(telemetry=True) as broker:
        with pytest.raises(RequestRefusedError, match="interval must be between"):
            broker.subscribe_metrics(interval_ms=1)
        broker.subscribe_metrics("org.apache.kafka.producer", interval_ms=200, match={"client_id": "writer"})
        topic = new_topic(broker)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers, "client.id": "writer"})
        producer.produce(topic, b"1")
        producer.flush()
        until(lambda: bool(broker.pushed_metrics) and bool(broker.pushed_metrics[-1].metrics))
        last = broker.pushed_metrics[-1]
        assert (last.client_id, last.broker_id) == ("writer", 0)
        assert {each.name.startswith("org.apache.kafka.producer") for each in last.metrics} == {True}
        assert broker.problems == []
