"""Forced target assignments of consumer groups (KIP-848): a test chooses who gets which partitions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka

from kafka_msgs import ConsumerGroupHeartbeatRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.faults import MoveGroupCoordinator
from kafka_msgs.messages.consumer_group_heartbeat_request import TopicPartitions
from kafka_msgs.testing import new_topic
from tests.support.eventually import until
from tests.support.virtual_brokers import VirtualCluster


class Member:
    """A member that takes what it is assigned."""

    def __init__(self, cluster: VirtualCluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self.epoch = 0
        self.owned: set[int] = set()
        self.heartbeat(rebalance_timeout_ms=1000, subscribed_topic_names=("t",), topic_partitions=())

    def heartbeat(self, **fields: Any) -> set[int]:
        """Send a heartbeat with the owned partitions. Return the partitions afterwards."""
        owned = TopicPartitions(topic_id=self._cluster.topic_id("t"), partitions=tuple(sorted(self.owned)))
        known = {"topic_partitions": (owned,)} if self.epoch else {}
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=self._name, member_epoch=self.epoch, **known | fields
        )
        answer = self._cluster.call(request, 1, client_id=self._name)
        assert answer.error_code == 0, answer
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {number for each in answer.assignment.topic_partitions for number in each.partitions}
        return self.owned


def settle(*members: Member) -> list[set[int]]:
    """Send heartbeats until revoked partitions have reached their new owners."""
    for _ in range(3):
        for member in members:
            member.heartbeat()
    return [member.owned for member in members]


def test_the_target_of_a_test_replaces_the_assignor_s() -> None:
    cluster = VirtualCluster.start(configs={"group.consumer.assignment.interval.ms": "0"})
    cluster.create("t", 4)
    MoveGroupCoordinator("g", 0).apply(cluster.cluster)
    forced = cluster.cluster.forced_targets
    one = Member(cluster, "one")
    assert settle(one) == [{0, 1, 2, 3}]
    forced["g"] = {"one": {"t": [1], "missing": [0]}}
    before = one.epoch
    assert settle(one) == [{1}]
    assert one.epoch == before + 1
    assert settle(one) == [{1}]
    assert one.epoch == before + 1, "an unchanged target is recorded once"
    two = Member(cluster, "two")
    assert settle(one, two) == [{1}, set()]
    forced["g"] = {"one": {"t": [0]}, "two": {"t": [1, 3]}}
    assert settle(one, two) == [{0}, {1, 3}]
    del forced["g"]
    assert settle(one, two) == [{0}, {1, 3}], "the assignor decides at the next change"
    three = Member(cluster, "three")
    shares = settle(one, two, three)
    assert sorted(number for share in shares for number in share) == [0, 1, 2, 3]
    assert cluster.cluster.errors == []


@contextmanager
def consumer(broker: EmbeddedBroker, name: str) -> Iterator[confluent_kafka.Consumer]:
    made = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "g",
            "client.id": name,
            "group.protocol": "consumer",
        }
    )
    try:
        yield made
    finally:
        made.close()


def test_librdkafka_gets_what_a_test_assigns() -> None:
    configs = {
        "group.consumer.min.heartbeat.interval.ms": "100",
        "group.consumer.heartbeat.interval.ms": "100",
        "group.consumer.assignment.interval.ms": "0",
    }
    with EmbeddedBroker(configs=configs) as broker, consumer(broker, "a") as one, consumer(broker, "b") as two:
        topic = new_topic(broker, partitions=3)
        broker.force_assignment("g", {"a": {topic: [2]}, "b": {topic: [0]}})
        one.subscribe([topic])
        two.subscribe([topic])

        def owned() -> list[set[int]]:
            for each in (one, two):
                each.poll(0.05)
            return [{place.partition for place in each.assignment()} for each in (one, two)]

        until(lambda: owned() == [{2}, {0}])
        broker.force_assignment("g", {"b": {topic: [0, 1, 2]}})
        until(lambda: owned() == [set(), {0, 1, 2}])
        assert broker.problems == []
