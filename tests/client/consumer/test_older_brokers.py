"""Consumers of brokers without newer API versions: one group per request, topics by name, no stable offsets."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kafka_msgs.api_keys import ApiKey
from kafka_msgs.client import Consumer, Producer, TopicPartition
from kafka_msgs.client.broker_connection import BrokerConnection
from kafka_msgs.messages.api_versions_response import ApiVersionsResponse
from kafka_msgs.versions import VersionRange
from tests.support.cluster_topics import new_name, new_topic
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.simulated_groups import GroupCluster, User

KAFKA_2_3: Final[dict[int, tuple[int, int] | None]] = {
    ApiKey.METADATA: (0, 8),
    ApiKey.FETCH: (0, 11),
    ApiKey.LIST_OFFSETS: (0, 5),
    ApiKey.FIND_COORDINATOR: (0, 2),
    ApiKey.JOIN_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 3),
    ApiKey.HEARTBEAT: (0, 3),
    ApiKey.LEAVE_GROUP: (0, 2),
    ApiKey.OFFSET_COMMIT: (0, 7),
    ApiKey.OFFSET_FETCH: (0, 5),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: None,
}
"""The API versions of a Kafka 2.3 broker for the requests of a consumer."""


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_consumer_reads_commits_and_goes_on_at_a_broker_of_kafka_2_3(isolation: str) -> None:
    cluster = GroupCluster({"t": 3}, limits=KAFKA_2_3)
    for number in range(3):
        cluster.produce("t", number, [b"%d-%d" % (number, each) for each in range(4)])
    first = User(cluster, isolation_level=isolation)
    first.core.subscribe(["t"])
    assert len(first.values(12)) == 12
    first.commit()
    first.close()
    cluster.produce("t", 1, [b"later"])
    second = User(cluster, isolation_level=isolation)
    second.core.subscribe(["t"])
    assert second.values(1) == [b"later"]
    second.close()
    asked: list[Any] = [each for each in cluster.requests if each.INFO.name == "OffsetFetchRequest"]
    assert asked
    assert all(each.group_id == "g" and not each.groups and not each.require_stable for each in asked)
    assert cluster.network.task_count == 0


@pytest.mark.parametrize("highest", [1, 5, 7, 8, 9])
def test_a_real_broker_answers_the_older_forms(
    kafka_cluster: ClusterAddresses, monkeypatch: pytest.MonkeyPatch, highest: int
) -> None:
    """The broker supports newer versions, but the test hides them from the client."""
    learn = BrokerConnection.learn_versions

    def learn_less(link: BrokerConnection, response: ApiVersionsResponse) -> None:
        learn(link, response)
        link._offered[ApiKey.OFFSET_FETCH] = VersionRange(1, highest)

    monkeypatch.setattr(BrokerConnection, "learn_versions", learn_less)
    topic, group = new_topic(kafka_cluster, 2), new_name("older")
    servers = kafka_cluster.bootstrap_servers
    with Producer(servers) as producer:
        for number in range(6):
            producer.send(topic, b"%d" % number, partition=number % 2)
    names = [TopicPartition(topic, number) for number in range(2)]
    with Consumer(servers, group_id=group, isolation_level="read_committed") as consumer:
        consumer.assign(names)
        assert consumer.committed(names) == {}
        consumer.commit({names[0]: 2})
        found = consumer.committed(names)
        assert {name: each.offset for name, each in found.items()} == {names[0]: 2}
        assert consumer.position(names[0]) == 2
