"""Hooks, metrics and telemetry at the level of connections."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import AsyncClient, Client, TopicPartition
from kafka_msgs.client.hooks import HookCaller
from kafka_msgs.client.metrics import WINDOW, ClientMetrics
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, ConnectionFailedError
from kafka_msgs.messages.describe_cluster_request import DescribeClusterRequest
from tests.support.produce_cluster import ProduceCluster, Refused
from tests.support.simulated_groups import GroupCluster, User


class Recorder:
    """Hooks that record every call."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def connected(self, *arguments: Any) -> None:
        self.calls.append(("connected", *arguments))

    def disconnected(self, *arguments: Any) -> None:
        self.calls.append(("disconnected", *arguments))

    def request_sent(self, *arguments: Any) -> None:
        self.calls.append(("request_sent", *arguments))

    def response_received(self, *arguments: Any) -> None:
        self.calls.append(("response_received", *arguments))

    def batch_written(self, *arguments: Any) -> None:
        self.calls.append(("batch_written", *arguments))

    def batch_failed(self, *arguments: Any) -> None:
        self.calls.append(("batch_failed", *arguments))

    def fetched(self, *arguments: Any) -> None:
        self.calls.append(("fetched", *arguments))

    def group_changed(self, *arguments: Any) -> None:
        self.calls.append(("group_changed", *arguments))

    def offsets_committed(self, *arguments: Any) -> None:
        self.calls.append(("offsets_committed", *arguments))

    def of(self, name: str) -> list[list[Any]]:
        """Return the arguments of the calls of one hook."""
        return [arguments for hook, *arguments in self.calls if hook == name]


def use_blocking(servers: str, hooks: list[Any]) -> dict[str, float]:
    with Client(servers, hooks=hooks) as client:
        client.call(DescribeClusterRequest())
        return client.metrics()


def use_async(servers: str, hooks: list[Any]) -> dict[str, float]:
    async def use() -> dict[str, float]:
        async with AsyncClient(servers, hooks=hooks) as client:
            await client.call(DescribeClusterRequest())
            return client.metrics()

    return asyncio.run(use())


both_forms = pytest.mark.parametrize("use", [use_blocking, use_async], ids=["blocking", "asyncio"])


@both_forms
def test_every_event_of_a_connection_calls_the_hooks(use: Any) -> None:
    recorder = Recorder()
    with EmbeddedBroker() as broker:
        address = broker.bootstrap_servers
        use(address, [recorder])
    names = [(name, *rest[:2]) for name, *rest in recorder.calls]
    sent = [name for name, *_ in names]
    assert sent == [
        "request_sent",
        "response_received",
        "connected",
        "request_sent",
        "response_received",
        "disconnected",
    ]
    assert {each[1] for each in names} == {address}
    apis = [call[3] for call in recorder.calls if call[0] == "response_received"]
    assert apis == ["ApiVersions", "DescribeCluster"]
    for call in recorder.calls:
        if call[0] == "response_received":
            size, queued, waited = call[5:]
            assert size > 10
            assert 0 <= queued < 5
            assert 0 < waited < 5


@both_forms
def test_metrics_have_kafkas_names(use: Any) -> None:
    with EmbeddedBroker() as broker:
        found = use(broker.bootstrap_servers, [])
    assert found["connection-count"] == found["connection-creation-total"] == 1
    assert found["request-total"] == found["response-total"] == 2
    assert found["outgoing-byte-total"] > 50
    assert found["incoming-byte-total"] > 50
    assert 0 < found["request-latency-avg"] <= found["request-latency-max"]
    assert {"request-rate", "request-size-avg", "connection-close-rate", "throttle-time-max"} <= set(found)


def test_a_hook_that_raises_is_logged_and_does_no_harm(caplog: pytest.LogCaptureFixture) -> None:
    class Bad:
        def connected(self, *_: Any) -> None:
            raise RuntimeError("of the user")

    with EmbeddedBroker() as broker, caplog.at_level(logging.ERROR):
        use_blocking(broker.bootstrap_servers, [Bad()])
    assert "the hook connected raised" in caplog.text


def test_a_missing_hook_costs_no_call() -> None:
    caller = HookCaller([object()])
    assert not caller.has("connected")
    caller.call("connected", 1, 2, 3)


def test_rates_are_over_the_last_two_windows() -> None:
    time = 0.0
    metrics = ClientMetrics(lambda: time)
    for _ in range(30):
        metrics.request_sent("b:1", 1, "Fetch", 1, 100)
        time += 1.0
    assert metrics.snapshot()["request-rate"] == pytest.approx(1.0)
    time += WINDOW
    assert metrics.snapshot()["request-rate"] == 0
    assert metrics.snapshot()["request-total"] == 30
    metrics.response_received("b:1", 1, "Fetch", 1, 10, 0.5, 1.5)
    assert metrics.snapshot()["request-latency-max"] == 2000


def test_a_failed_connection_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with Client("127.0.0.1:1") as client, pytest.raises(ConnectionFailedError):
        client.call(DescribeClusterRequest(), retry=False)
    assert [each.name for each in caplog.records if each.levelno == logging.WARNING] == ["kafka_msgs.client.connection"]


def test_open_telemetry_gets_metrics_and_carries_traces() -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import get_current_span

    from kafka_msgs.client.telemetry import OpenTelemetryHooks, extract_context, inject_context

    reader = InMemoryMetricReader()
    with EmbeddedBroker() as broker:
        use_blocking(broker.bootstrap_servers, [OpenTelemetryHooks(MeterProvider([reader]))])
    data: Any = reader.get_metrics_data()
    found = {each.name: each for scope in data.resource_metrics[0].scope_metrics for each in scope.metrics}
    duration = found["messaging.client.operation.duration"].data.data_points
    assert {point.attributes["messaging.operation.name"] for point in duration} == {"ApiVersions", "DescribeCluster"}
    assert [point.value for point in found["messaging.client.connections"].data.data_points] == [0]

    tracer = TracerProvider().get_tracer("test")
    with tracer.start_as_current_span("send") as span:
        headers = inject_context([("k", b"v")])
    assert headers[0] == ("k", b"v")
    context = get_current_span(extract_context([*headers, ("empty", None)])).get_span_context()
    assert context.trace_id == span.get_span_context().trace_id


def test_open_telemetry_gets_batches_fetches_groups_and_commits() -> None:
    """On simulated time: the sum of each counter, and the last value of each gauge, by instrument."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from kafka_msgs.client.telemetry import OpenTelemetryHooks

    reader = InMemoryMetricReader()
    hooks = OpenTelemetryHooks(MeterProvider([reader]))
    produced, read = ProduceCluster(), GroupCluster({"t": 1})
    producer = produced.producer(linger=0.0)
    producer._core.directory.hooks.add(hooks)
    produced.faults.append(Refused(ErrorCode.NOT_ENOUGH_REPLICAS))
    produced.add(producer, [b"a", b"b", b"c"], partition=1)
    produced.flush(producer)
    produced.faults.append(Refused(ErrorCode.INVALID_RECORD))
    produced.add(producer, [b"d"], partition=1)
    produced.flush(producer)
    read.produce("t", 0, [b"1", b"2"])
    user = User(read)
    user.core.client.directory.hooks.add(hooks)
    user.core.subscribe(["t"])
    user.values(2)
    user.commit()
    data: Any = reader.get_metrics_data()
    points = {
        each.name: [(dict(point.attributes), getattr(point, "value", None)) for point in each.data.data_points]
        for scope in data.resource_metrics[0].scope_metrics
        for each in scope.metrics
    }
    place = {"messaging.system": "kafka", "messaging.destination.name": "t", "messaging.destination.partition.id": "1"}
    sent = points["messaging.client.sent.messages"]
    assert sent == [(place, 3), (place | {"error.type": "BrokerError"}, 1)]
    assert points["messaging.kafka.batch.retries"] == [(place, 1)]
    assert len(points["messaging.kafka.delivery.duration"]) == 1
    assert [value for _, value in points["messaging.client.consumed.messages"]] == [2]
    assert [value for _, value in points["messaging.kafka.consumer.lag"]] == [0]
    group = {"messaging.system": "kafka", "messaging.consumer.group.name": "g"}
    assert points["messaging.kafka.consumer.rebalances"] == [(group, 1)]
    assert points["messaging.kafka.consumer.partitions"] == [(group, 1)]
    operations = points["messaging.client.operation.duration"]
    assert (group | {"messaging.operation.name": "commit"}, None) in operations


def test_batches_of_a_producer_call_hooks_and_count() -> None:
    """On simulated time: one batch is written after a retry, and one is refused for good."""
    cluster, recorder = ProduceCluster(), Recorder()
    producer = cluster.producer(linger=0.0)
    metrics = producer._core.directory.metrics
    producer._core.directory.hooks.add(recorder)
    cluster.faults.append(Refused(ErrorCode.NOT_ENOUGH_REPLICAS))
    cluster.add(producer, [b"a", b"b", b"c"], partition=1)
    cluster.flush(producer)
    cluster.faults.append(Refused(ErrorCode.INVALID_RECORD))
    cluster.add(producer, [b"d", b"e"], partition=1)
    cluster.flush(producer)
    ((topic, partition, records, size, offset, attempts, seconds),) = recorder.of("batch_written")
    assert (topic, partition, records, offset, attempts) == ("t", 1, 3, 0, 1)
    assert size > 61
    assert 0 < seconds < 2
    (failed,) = recorder.of("batch_failed")
    assert failed[:3] == ["t", 1, 2]
    assert isinstance(failed[3], BrokerError)
    found = metrics.snapshot()
    assert (found["record-send-total"], found["record-error-total"], found["record-retry-total"]) == (3, 2, 3)
    assert found["batch-size-avg"] == found["batch-size-max"] == found["byte-total"] == size
    assert found["record-send-rate"] > 0
    assert found["buffer-available-bytes"] == found["buffer-total-bytes"] > 0
    of_topic = metrics.topic_snapshot("t")
    assert (of_topic["record-send-total"], of_topic["record-error-total"], of_topic["byte-total"]) == (3, 2, size)
    assert of_topic.keys() <= found.keys()
    assert set(metrics.topic_snapshot("another").values()) == {0.0}


def test_a_consumer_calls_hooks_and_measures_its_lag() -> None:
    """On simulated time: a member joins, reads with a lag, commits, and loses its partition."""
    cluster, recorder = GroupCluster({"t": 1}), Recorder()
    for _ in range(3):
        cluster.produce("t", 0, [b"1", b"2"])
    user = User(cluster, partition_max_bytes=100)
    user.core.client.directory.hooks.add(recorder)
    metrics = user.core.client.directory.metrics
    user.core.subscribe(["t"])
    assert len(user.poll(room=1)) == 1
    place = TopicPartition("t", 0)
    assert metrics.snapshot()["records-lag-max"] == 5
    assert metrics.snapshot()["assigned-partitions"] == 1
    assert metrics.topic_snapshot("t")["records-lag-max"] == 5
    assert metrics.topic_snapshot("t")["records-consumed-total"] == 2
    assert metrics.topic_snapshot("another")["assigned-partitions"] == 0
    ((group, member, generation, assigned),) = recorder.of("group_changed")
    assert (group, generation, assigned) == ("g", 1, [place])
    assert member == user.core.state.identity.member_id
    assert recorder.of("fetched")[0][:3] == ["t", 0, 2]
    assert recorder.of("fetched")[0][4] == 4
    user.commit()
    ((group, offsets, seconds, error),) = recorder.of("offsets_committed")
    assert (group, offsets, error) == ("g", {place: 1}, None)
    assert 0 < seconds < 1
    assert len(user.values(5)) == 5
    found = metrics.snapshot()
    assert found["records-lag-max"] == 0
    assert found["records-consumed-total"] == 6
    assert found["bytes-consumed-total"] == sum(each[3] for each in recorder.of("fetched"))
    assert (found["commit-total"], found["rebalance-total"]) == (1, 1)
    cluster.group("g").remove(member)
    with pytest.raises(BrokerError):
        user.commit()
    assert recorder.of("offsets_committed")[-1][3] is not None
    user.close()
    assert recorder.of("group_changed")[-1][3] == []
    assert "records-lag-max" not in metrics.snapshot()
