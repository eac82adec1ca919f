"""The two sides: a real cluster, and an embedded one with the same configs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from attrs import define

from kafka_msgs import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DescribeQuorumRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
)
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.config import ListenerConfig
from kafka_msgs.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from kafka_msgs.messages.describe_quorum_request import PartitionData, TopicData
from kafka_msgs.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from tests.broker.differential.tested_cluster import Side
from tests.support.kafka_cluster import ClusterAddresses, shared_settings
from tests.support.kafka_listeners import HOST, USERS

__all__ = ["TIMELESS", "KafkaSide", "embedded_side", "kafka_side"]

TIMELESS: Final[Mapping[str, str]] = {
    **{f"group.{kind}.assignment.interval.ms": "0" for kind in ("consumer", "share", "streams")},
    "offsets.retention.check.interval.ms": "86400000",
    "delegation.token.secret.key": "",
}
"""Configs that make responses independent of the speed of a script, and no secret for delegation tokens. Random scripts
require clusters with these configs."""

_INTERNAL: Final[Mapping[str, Mapping[str, str]]] = {
    "__consumer_offsets": {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    },
    "__transaction_state": {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "segment.bytes": "104857600",
        "min.insync.replicas": "1",
        "unclean.leader.election.enable": "false",
    },
}
"""The configs with which Kafka creates its internal topics."""

_LISTENERS: Final = ("PLAINTEXT", "SASL_PLAINTEXT")
_SCRATCH_GROUP: Final = "differential-barrier"
_GROUP_CONFIG: Final = 32
_PATIENCE_SECONDS: Final = 30
_BACKGROUND_SECONDS: Final = 5


@define
class KafkaSide(Side):
    """A real cluster. Its brokers apply metadata changes at different times, so ``settle`` waits for all of them."""

    _count: int = 0

    def settle(self) -> None:
        """Wait until every broker has applied all metadata changes so far.

        The epoch of the finalized features is the offset of a broker's image. A broker replaces the image before the
        rest of it applies the change. So this method makes a second change, of an unused config, and waits for it: then
        the first change has been applied.
        """
        self._reach(self._committed())
        self._count += 1
        interval = AlterableConfig(
            name="consumer.session.timeout.ms", config_operation=0, value=str(45_000 + self._count % 1000)
        )
        scratch = AlterConfigsResource(resource_type=_GROUP_CONFIG, resource_name=_SCRATCH_GROUP, configs=(interval,))
        self.ask(IncrementalAlterConfigsRequest(resources=(scratch,)), 1)
        self._reach(self._committed())

    def await_share_partitions(self, group: str, wanted: set[tuple[str, int]]) -> None:
        """Wait until a share group has these partitions: Kafka initializes their state after the heartbeat response.

        Until then nothing changes, and then the group gets a new epoch. The method returns after a timeout without an
        error: if the group never gets the partitions, the responses will differ.
        """
        deadline = time.monotonic() + _BACKGROUND_SECONDS
        while not wanted <= self.share_partitions(group) and time.monotonic() < deadline:
            time.sleep(0.02)

    def await_topics(self, names: list[str]) -> None:
        """Wait until topics that a group coordinator creates after its response exist on all brokers."""
        deadline = time.monotonic() + _BACKGROUND_SECONDS
        while any(self.leader(name, 0) is None for name in names) and time.monotonic() < deadline:
            time.sleep(0.02)
        if names:
            self.settle()

    def _committed(self) -> int:
        topic = TopicData(topic_name="__cluster_metadata", partitions=(PartitionData(partition_index=0),))
        answer = self.ask(DescribeQuorumRequest(topics=(topic,)), 2)
        return int(answer.topics[0].partitions[0].high_watermark) - 1

    def _reach(self, offset: int) -> None:
        request = ApiVersionsRequest(client_software_name="differential", client_software_version="1")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        for node in self.nodes:
            while self.ask(request, 4, node).finalized_features_epoch < offset:
                assert time.monotonic() < deadline, f"node {node} does not learn of changes"
                time.sleep(0.001)


@contextmanager
def kafka_side(cluster: ClusterAddresses) -> Iterator[KafkaSide]:
    """Yield the side of a running cluster, with coordinators that are ready."""
    nodes = {node: {each: (HOST, cluster.ports[node][each]) for each in _LISTENERS} for node in cluster.nodes}
    side = KafkaSide("Kafka", nodes, USERS)
    try:
        _wake_coordinators(side)
        _use_producer_ids(side)
        side.settle()
        yield side
    finally:
        side.close()


@contextmanager
def embedded_side(kafka: Side, own: Mapping[str, str] | None = None) -> Iterator[tuple[Side, EmbeddedBroker]]:
    """Yield the side of an embedded cluster with the configs of the real one, and coordinators on the same brokers.

    ``own`` contains the configs that the real cluster has in addition to the shared configs.
    """
    listeners = tuple(ListenerConfig(name=name, protocol=name) for name in _LISTENERS)
    settings: dict[str, Any] = {
        "listeners": listeners,
        "configs": shared_settings() | dict(own or {}),
        "users": USERS,
        "authorizer": True,
        "super_users": ("User:ANONYMOUS", "User:admin"),
        "allow_everyone": True,
        "racks": tuple(f"rack-{node}" for node in kafka.nodes),
    }
    with EmbeddedBroker(brokers=3, **settings) as broker:
        nodes = broker.run(lambda cluster: {each.id: dict(each.addresses) for each in cluster.brokers.values()})
        side = Side("ours", nodes, USERS)
        try:
            _place_coordinators(kafka, side)
            _use_producer_ids(side)
            yield side, broker
        finally:
            side.close()


def _use_producer_ids(side: Side) -> None:
    """Allocate a producer id on every broker: the first id of a cluster is 0, which looks like a missing id."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    for node in side.nodes:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while side.ask(request, 4, node).error_code:
            assert time.monotonic() < deadline, f"node {node} has no producer ids"
            time.sleep(0.05)


def _wake_coordinators(side: Side) -> None:
    """Trigger the creation of the internal topics."""
    for kind in ("group", "transaction", "share"):
        side.coordinator(kind, "warm:AAAAAAAAAAAAAAAAAAAABw:0" if kind == "share" else "warm")


def _place_coordinators(kafka: Side, ours: Side) -> None:
    """Place our coordinators on the same brokers as in Kafka, because some APIs respond for one broker only."""
    topics = tuple(_placed(kafka, ours, topic) for topic in _INTERNAL)
    answer = ours.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
    assert {each.error_code for each in answer.topics} == {0}, answer
    _wake_coordinators(ours)


def _placed(kafka: Side, ours: Side, topic: str) -> CreatableTopic:
    """Return an internal topic with Kafka's leaders. The leader epochs are equal because no leader has moved."""
    assignments = []
    for partition in range(int(shared_settings()["offsets.topic.num.partitions"])):
        leader = kafka.leader(topic, partition)
        assert leader is not None
        first = leader - min(kafka.nodes) + min(ours.nodes)
        brokers = (first, *(each for each in ours.nodes if each != first))
        assignments.append(CreatableReplicaAssignment(partition_index=partition, broker_ids=brokers))
    configs = tuple(CreatableTopicConfig(name=name, value=value) for name, value in _INTERNAL[topic].items())
    return CreatableTopic(
        name=topic, num_partitions=-1, replication_factor=-1, assignments=tuple(assignments), configs=configs
    )
