"""The same quota requests on a real cluster and on an embedded one, and the throttle times of clients."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

from kafka_msgs import (
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    DescribeClientQuotasRequest,
    FetchRequest,
)
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Client
from kafka_msgs.errors import BrokerError
from kafka_msgs.message import Request
from kafka_msgs.messages.create_partitions_request import CreatePartitionsTopic
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from tests.broker.quotas.asking import altered, created, described, entry, produced, quota
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.virtual_brokers import batch

T: Final = f"quotas-{uuid4().hex[:8]}"
NO_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
RATE: Final = ("producer_byte_rate", 5000.0)

SCRIPT: Final[list[Request[Any]]] = [
    altered(entry({"client-id": T}, RATE, ("request_percentage", 200.5))),
    altered(entry({"client-id": T}, RATE)),
    altered(entry({"user": T, "client-id": T}, ("controller_mutation_rate", 0.5))),
    altered(entry({"user": T}, ("consumer_byte_rate", 1e6)), entry({"user": T}, ("consumer_byte_rate", 2e6))),
    altered(entry({"user": T}, ("consumer_byte_rate", 1.0), ("consumer_byte_rate", 2.0))),
    altered(entry({"user": T, "client-id": None}, RATE), validate_only=True),
    altered(entry({"user": T}, ("consumer_byte_rate", 1.5))),
    altered(entry({"user": T}, ("consumer_byte_rate", 0.0))),
    altered(entry({"user": T}, ("consumer_byte_rate", -1.0))),
    altered(entry({"user": T}, ("consumer_byte_rate", 2e19))),
    altered(entry({"user": T}, ("connection_creation_rate", 1.0))),
    altered(entry({"user": T}, ("no.such", 1.0))),
    altered(entry({"user": T}, ("no.such", None))),
    altered(entry({"user": ""}, RATE)),
    altered(entry({"group": T}, RATE)),
    altered(entry({}, RATE)),
    altered(entry({"ip": "127.0.0.99", "user": T}, RATE)),
    altered(entry({"ip": "127.0.0.99"}, RATE)),
    altered(entry({"ip": "127.0.0.99"}, ("connection_creation_rate", 1e10))),
    altered(entry({"ip": "127.0.0.99"}, ("connection_creation_rate", 1000.0))),
    altered(entry({"ip": "not an address"}, ("connection_creation_rate", 1.0))),
    described(("user", 0, T)),
    described(("user", 0, T), strict=True),
    described(("client-id", 0, T)),
    described(("user", 2, None), ("client-id", 0, T)),
    described(("user", 1, None), ("client-id", 0, T)),
    described(("ip", 0, "127.0.0.99")),
    described(("user", 0, None)),
    described(("user", 1, T)),
    described(("user", 2, T)),
    described(("user", 9, T)),
    described(("", 0, T)),
    described(("group", 0, T)),
    described(("user", 0, T), ("user", 0, T)),
    described(("user", 0, T), ("ip", 0, T)),
    altered(entry({"ip": "127.0.0.99"}, ("connection_creation_rate", None))),
    altered(entry({"client-id": T}, ("producer_byte_rate", None), ("request_percentage", None))),
    altered(entry({"user": T}, ("consumer_byte_rate", None))),
    altered(entry({"user": T, "client-id": T}, ("controller_mutation_rate", None))),
    described(("user", 0, T)),
    described(("client-id", 0, T)),
]


def settled(value: Any) -> Any:
    """Return a value with all lists sorted, and without throttle times."""
    if isinstance(value, dict):
        return {key: settled(each) for key, each in value.items() if key != "throttleTimeMs"}
    return sorted(map(settled, value), key=str) if isinstance(value, list) else value


def asked(client: Client, request: Request[Any]) -> Any:
    try:
        answer = client.call(request, version=1, retry=False, timeout=30)
    except BrokerError as error:
        return error.error, str(error)
    return settled(answer.to_json(1))


def asked_until(client: Client, request: Request[Any], expected: Any) -> Any:
    """Return the expected response of a broker, or the last one before the timeout.

    Brokers apply changes a little later than the controller.
    """
    deadline = time.monotonic() + 20
    answer = asked(client, request)
    while answer != expected and isinstance(request, DescribeClientQuotasRequest) and time.monotonic() < deadline:
        time.sleep(0.05)
        answer = asked(client, request)
    return answer


def embedded() -> EmbeddedBroker:
    return EmbeddedBroker(brokers=3, configs={"auto.create.topics.enable": "false"})


def test_quotas_are_set_and_found_as_in_kafka(kafka_cluster: ClusterAddresses) -> None:
    with embedded() as broker:
        with Client(broker.bootstrap_servers, client_id=f"{T}-admin") as client:
            ours = [asked(client, request) for request in SCRIPT]
        assert broker.problems == []
    with Client(kafka_cluster.bootstrap_servers, client_id=f"{T}-admin") as client:
        theirs = [asked_until(client, request, expected) for request, expected in zip(SCRIPT, ours, strict=True)]
    assert [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]] == []


@contextmanager
def limited(servers: str, topic: str, name: str, value: float) -> Iterator[str]:
    """Set a quota for a new client id, and yield the id when all brokers have applied the quota.

    A second client id gets a quota at the same time. Once it is throttled, the brokers have applied both quotas.
    """
    client_id, probe = f"{T}-{uuid4().hex[:8]}", f"{T}-{uuid4().hex[:8]}"
    with Client(servers, client_id=f"{T}-admin") as admin:
        both = [
            entry({"client-id": client_id}, (name, value)),
            entry({"client-id": probe}, ("producer_byte_rate", 1.0)),
        ]
        admin.call(altered(*both), version=1)
        with Client(servers, client_id=probe) as other:
            until(lambda: other.call(produced(topic, batch(b"probe")), version=9, timeout=60).throttle_time_ms > 0)
        yield client_id
        admin.call(quota(client_id, name, None), version=1)
        admin.call(quota(probe, "producer_byte_rate", None), version=1)


def fetched(topic: str) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=10**6)
    return FetchRequest(max_bytes=10**6, topics=(FetchTopic(topic=topic, partitions=(part,)),))


def waits(servers: str) -> dict[str, Any]:
    """Return the throttle times of a client that exceeds its quotas, by operation."""
    topic = f"{T}-topic"
    with Client(servers, client_id=f"{T}-admin") as admin:
        admin.call(created(topic, 1), version=7)
        admin.call(produced(topic, batch(bytes(100_000))), version=9, timeout=60)
        found = {"produce": produce(servers, topic), "fetch": fetch(servers, topic), "mutate": mutate(servers, topic)}
        for each in (topic, f"{topic}-new", f"{topic}-other"):
            admin.call(deleted(each), version=6)
    return found


def produce(servers: str, topic: str) -> list[tuple[int, int]]:
    found = []
    for acks in (-1, 1):
        with (
            limited(servers, topic, "producer_byte_rate", 5000) as client_id,
            Client(servers, client_id=client_id) as client,
        ):
            answer = client.call(produced(topic, batch(bytes(100_000)), acks), version=9)
            found.append((answer.throttle_time_ms, answer.responses[0].partition_responses[0].error_code))
    return found


def fetch(servers: str, topic: str) -> tuple[int, int, Any]:
    with (
        limited(servers, topic, "consumer_byte_rate", 5000) as client_id,
        Client(servers, client_id=client_id) as client,
    ):
        answer = client.call(fetched(topic), version=12)
        return answer.throttle_time_ms, answer.session_id, answer.responses


def mutate(servers: str, topic: str) -> list[tuple[Any, bool]]:
    """Create 30 partitions with a quota of 11 at once and one more per second.

    Return the later responses, each with whether its throttle time covers the 19 excess mutations and the later
    ones.
    """
    new, other = f"{topic}-new", f"{topic}-other"
    steps: list[tuple[Request[Any], int, int]] = [
        (created(other, 1), 7, 19_000),
        (created(other, 1), 6, 19_000),
        (grown(new), 3, 19_000),
        (deleted(new), 6, 19_000),
        (created(other, 1), 5, 20_000),
        (grown(new), 2, 21_000),
    ]
    found = []
    with limited(servers, topic, "controller_mutation_rate", 1) as client_id:
        began = time.monotonic()
        with Client(servers, client_id=client_id) as client:
            assert client.call(created(new, 30), version=7).throttle_time_ms == 0
        for request, version, most in steps:
            # The broker mutes the connection of a throttled client, so each request uses a new connection.
            with Client(servers, client_id=client_id) as client:
                answer = client.call(request, version=version, retry=False)
            passed = (time.monotonic() - began) * 1000
            found.append((without_ids(answer.to_json(version)), most - passed - 2 <= answer.throttle_time_ms <= most))
    return found


def without_ids(answer: dict[str, Any]) -> Any:
    """Remove values that differ between clusters: topic ids, and configs derived from broker configs."""
    for each in answer.get("responses", ()):
        assert each.pop("topicId") != NO_ID
    for each in answer.get("topics", ()):
        each.pop("configs")
    return settled(answer)


def deleted(topic: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=(DeleteTopicState(name=topic),), timeout_ms=10_000)


def grown(topic: str) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=topic, count=31, assignments=None),), timeout_ms=10_000
    )


def test_clients_that_use_too_much_wait_as_long_as_at_kafka(kafka_cluster: ClusterAddresses) -> None:
    with embedded() as broker:
        ours = waits(broker.bootstrap_servers)
        assert broker.problems == []
    theirs = waits(kafka_cluster.bootstrap_servers)
    assert ours == theirs
    assert [error for _, error in ours["produce"]] == [0, 0]
    assert 9_900 < ours["produce"][0][0] < 10_200
    assert 9_900 < ours["fetch"][0] < 10_300
    assert [fits for _, fits in ours["mutate"]] == [True] * 6
