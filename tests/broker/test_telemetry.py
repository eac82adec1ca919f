"""Telemetry (KIP-714): the responses of a broker without a metrics plugin, as in Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from uuid import UUID, uuid4

from kafka_msgs import ApiVersionsRequest, GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Request
from kafka_msgs.wire import decode_response, encode_request
from tests.broker.differential.connection import Connection
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.virtual_brokers import VirtualCluster

LARGEST: Final = 1_048_576
ERRORS: Final = {
    ErrorCode.NONE,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
    ErrorCode.TELEMETRY_TOO_LARGE,
    ErrorCode.INVALID_REQUEST,
}


def ask(connection: Connection, request: Request[Any], version: int = 0) -> Any:
    connection.send(encode_request(request, version, correlation_id=1, client_id="telemetry"))
    return decode_response(connection.receive(), request.INFO.api_key or 0, version).message


def script(instance: UUID, subscription: int) -> Iterator[Request[Any]]:
    """Yield requests of a client that requests too early, pushes invalid data, terminates, and continues."""
    get = GetTelemetrySubscriptionsRequest(client_instance_id=instance)

    def push(**fields: Any) -> PushTelemetryRequest:
        known: dict[str, Any] = {"client_instance_id": instance, "subscription_id": subscription}
        return PushTelemetryRequest(**known | fields)

    yield from (get, get, push(subscription_id=1), get, get)
    yield from (push(metrics=b"m" * (LARGEST + 1), terminating=True), push(terminating=True))
    yield push(client_instance_id=UUID(int=0))
    yield push(client_instance_id=UUID(int=1))


def answers(address: str, instance: UUID) -> list[Any]:
    host, _, port = address.partition(",")[0].rpartition(":")
    connection = Connection((host, int(port)))
    listed = ask(connection, ApiVersionsRequest(client_software_name="t", client_software_version="1"), 4)
    found = [each.api_key for each in listed.api_keys if each.api_key in (71, 72)]
    first = ask(connection, GetTelemetrySubscriptionsRequest(client_instance_id=instance))
    rest = [ask(connection, each) for each in script(instance, first.subscription_id)]
    connection.close()
    return [found, first, *rest]


def test_a_real_broker_answers_the_same(kafka_cluster: ClusterAddresses) -> None:
    instance = uuid4()
    with EmbeddedBroker() as broker:
        ours = answers(broker.bootstrap_servers, instance)
        assert broker.problems == []
    assert ours == answers(kafka_cluster.bootstrap_servers, instance)
    assert ours[0] == []
    assert {each.error_code for each in ours[1:]} == ERRORS


def test_a_client_asks_and_pushes_again_after_the_interval() -> None:
    cluster = VirtualCluster.start()
    first = cluster.call(GetTelemetrySubscriptionsRequest(), 0)
    instance = first.client_instance_id
    assert instance.int
    assert (first.push_interval_ms, first.requested_metrics) == (300_000, ())

    def get() -> int:
        return cluster.call(GetTelemetrySubscriptionsRequest(client_instance_id=instance), 0).error_code

    def push(**fields: Any) -> int:
        request = PushTelemetryRequest(client_instance_id=instance, subscription_id=first.subscription_id, **fields)
        return cluster.call(request, 0).error_code

    assert [push(metrics=b"m"), push(), get()] == [ErrorCode.NONE, *2 * [ErrorCode.THROTTLING_QUOTA_EXCEEDED]]
    cluster.advance(300_000)
    assert [get(), push(compression_type=9), get()] == [0, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 0]
    cluster.sessions[0].end()
    assert get() == 0, "it is forgotten with its connection"
