"""The administration APIs, called with this library's own ``Admin``: their effects and their errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_msgs import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeProducersRequest,
    ErrorCode,
)
from kafka_msgs.admin import (
    Admin,
    AlterConfigOp,
    ConfigChange,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    NewTopic,
    TopicPartitionReplica,
)
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import TopicPartition
from kafka_msgs.errors import BrokerError
from kafka_msgs.messages.create_partitions_request import CreatePartitionsTopic
from kafka_msgs.messages.create_topics_request import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from kafka_msgs.messages.describe_producers_request import TopicRequest
from kafka_msgs.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.support.virtual_brokers import VirtualCluster

DEFAULTS = {(ConfigResourceType.BROKER, ""): {"min.insync.replicas": "1"}}
"""The configs of a new cluster's image."""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(brokers=3, racks=("a", "b", None)) as broker:
        yield broker
        assert broker.problems == []


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


def test_the_cluster_and_its_features(admin: Admin, broker: EmbeddedBroker) -> None:
    cluster = admin.describe_cluster()
    assert [(each.broker_id, each.rack) for each in cluster.nodes.values()] == [(0, "a"), (1, "b"), (2, None)]
    features = admin.describe_features()
    assert features.finalized["transaction.version"] == (2, 2)
    assert cluster.cluster_id == broker.run(lambda each: each.cluster_id)


def sent(cluster: VirtualCluster, topic: CreatableTopic) -> tuple[int, str | None]:
    result = cluster.call(CreateTopicsRequest(topics=(topic,)), 7).topics[0]
    return result.error_code, result.error_message


def assigned(*replicas: tuple[int, ...], first: int = 0) -> dict[str, Any]:
    assignments = (
        CreatableReplicaAssignment(partition_index=number, broker_ids=each)
        for number, each in enumerate(replicas, first)
    )
    return {"num_partitions": -1, "replication_factor": -1, "assignments": tuple(assignments)}


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"name": ""}, 17, "Topic name is invalid: the empty string is not allowed"),
        ({"name": ".."}, 17, "Topic name is invalid: '..' is not allowed"),
        (
            {"name": "a b"},
            17,
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and "
            "'-'",
        ),
        ({"name": "there"}, 36, "Topic 'there' already exists."),
        ({"name": "a.b"}, 17, "Topic 'a.b' collides with existing topic: a_b"),
        ({"num_partitions": 0}, 37, "Number of partitions was set to an invalid non-positive value."),
        ({"replication_factor": 0}, 38, "Replication factor must be larger than 0, or -1 to use the default value."),
        (
            {"replication_factor": 4},
            38,
            "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because "
            "only 2 broker(s) are registered or some brokers have all their log directories cordoned.",
        ),
        (
            {**assigned((0,)), "num_partitions": 1},
            42,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        ),
        (assigned((0,), first=1), 39, "partitions should be a consecutive 0-based integer sequence"),
        (assigned((9,)), 39, "The manual partition assignment includes broker 9, but no such broker is registered."),
        (assigned((0, 0)), 39, "The manual partition assignment includes the broker 0 more than once."),
        (
            {"configs": (CreatableTopicConfig(name="no.such", value="1"),)},
            40,
            "Unknown topic config name: no.such",
        ),
        (
            {"configs": (CreatableTopicConfig(name="retention.ms", value="long"),)},
            40,
            "Invalid value long for configuration retention.ms: Not a number of type LONG",
        ),
        (
            {"configs": (CreatableTopicConfig(name="segment.ms", value=None),)},
            40,
            "Null value not supported for topic configs: segment.ms",
        ),
        ({"name": "__cluster_metadata"}, 42, "Creation of internal topic __cluster_metadata is prohibited."),
    ],
)
def test_a_topic_that_cannot_be_created(settings: dict[str, Any], error: int, message: str) -> None:
    cluster = VirtualCluster.start(brokers=2)
    cluster.create("there")
    cluster.create("a_b")
    topic = CreatableTopic(**{"name": "new", "num_partitions": 1, "replication_factor": 1, **settings})
    assert sent(cluster, topic) == (error, message)
    assert set(cluster.cluster.image.topics) == {"there", "a_b"}


def test_a_topic_that_is_only_validated_is_not_created() -> None:
    cluster = VirtualCluster.start()
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=-1)
    result = cluster.call(CreateTopicsRequest(topics=(topic,), validate_only=True), 7).topics[0]
    assert (result.num_partitions, result.replication_factor, cluster.cluster.image.topics) == (2, 1, {})


def test_topics_are_deleted_by_name_and_by_id_with_their_settings() -> None:
    cluster = VirtualCluster.start()
    for name in ("a", "b"):
        cluster.create(name, retention_ms="1")
    topics = (DeleteTopicState(name="a"), DeleteTopicState(topic_id=cluster.topic_id("b")), DeleteTopicState(name="c"))
    results = cluster.call(DeleteTopicsRequest(topics=topics), 6).responses
    assert [(each.name, each.error_code) for each in results] == [
        ("a", 0),
        ("b", 0),
        ("c", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
    assert (cluster.cluster.image.topics, cluster.cluster.image.configs, len(cluster.cluster.log_manager)) == (
        {},
        DEFAULTS,
        0,
    )


@pytest.mark.parametrize(
    ("count", "error", "message"),
    [
        (1, 37, "The topic t currently has 2 partition(s); 1 would not be an increase."),
        (2, 37, "Topic already has 2 partition(s)."),
        (3, 0, None),
    ],
)
def test_partitions_only_grow(count: int, error: int, message: str | None) -> None:
    cluster = VirtualCluster.start()
    cluster.create("t", partitions=2)
    topic = CreatePartitionsTopic(name="t", count=count, assignments=None)
    result = cluster.call(CreatePartitionsRequest(topics=(topic,)), 3).results[0]
    assert (result.error_code, result.error_message) == (error, message)
    assert len(cluster.cluster.log_manager) == (3 if error == 0 else 2)


def test_settings_of_a_topic_come_from_it_from_brokers_and_from_kafka(admin: Admin, broker: EmbeddedBroker) -> None:
    admin.create_topics([NewTopic("settings", 1, 1, configs={"retention.ms": "1000"})])
    topic = ConfigResource(ConfigResourceType.TOPIC, "settings")
    brokers = ConfigResource(ConfigResourceType.BROKER, "")

    def described(name: str) -> tuple[str | None, int]:
        entry = admin.describe_configs([topic])[topic][name]
        return entry.value, entry.config_source

    assert described("retention.ms") == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert described("segment.ms") == ("604800000", ConfigSource.DEFAULT_CONFIG)
    admin.alter_configs(
        {
            topic: [
                ConfigChange("cleanup.policy", "compact", AlterConfigOp.APPEND),
                ConfigChange("retention.ms", None, AlterConfigOp.DELETE),
            ],
            brokers: [ConfigChange("log.retention.ms", "5000")],
        }
    )
    assert described("cleanup.policy") == ("delete,compact", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert described("retention.ms") == ("5000", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)

    def of_logs(cluster: Any) -> Any:
        log = cluster.log_manager.get((cluster.image.topics["settings"].id, 0))
        return log.config.retention_ms, log.config.cleanup_policy

    assert broker.run(of_logs) == (5000, {"delete", "compact"})


def test_settings_of_one_broker_are_those_that_it_was_started_with(admin: Admin, broker: EmbeddedBroker) -> None:
    resource = ConfigResource(ConfigResourceType.BROKER, "1")
    described = admin.describe_configs([resource])[resource]
    address = broker.bootstrap_servers.split(",")[1]
    expected = {
        "node.id": "1",
        "broker.rack": "b",
        "listeners": f"PLAINTEXT://{address}",
        "advertised.listeners": f"PLAINTEXT://{address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT",
    }
    for name, value in expected.items():
        assert (described[name].value, described[name].config_source) == (value, ConfigSource.STATIC_BROKER_CONFIG)


def test_replicas_move_to_the_one_directory_only(admin: Admin) -> None:
    admin.create_topics([NewTopic("kept", 1, 1)]).all()
    (path,) = admin.describe_log_dirs([0])[0]
    here = admin.list_topics()["kept"].partitions[0].leader_id
    moves = {
        TopicPartitionReplica("kept", 0, here): path,
        TopicPartitionReplica("kept", 0, (here + 1) % 3): path,
        TopicPartitionReplica("kept", 0, (here + 2) % 3): "/no/such/directory",
        TopicPartitionReplica("kept", 1, here): path,
    }
    refused = admin.alter_replica_log_dirs(moves).errors
    assert {replica: error.error for replica, error in refused.items() if isinstance(error, BrokerError)} == {
        TopicPartitionReplica("kept", 0, (here + 1) % 3): ErrorCode.REPLICA_NOT_AVAILABLE,
        TopicPartitionReplica("kept", 0, (here + 2) % 3): ErrorCode.LOG_DIR_NOT_FOUND,
        TopicPartitionReplica("kept", 1, here): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }


def test_all_leaders_are_elected_and_replicas_replaced(admin: Admin, broker: EmbeddedBroker) -> None:
    admin.create_topics([NewTopic("led", 3, 2)])
    before = admin.list_topics()["led"].partitions
    for each in before:
        broker.move_leader("led", each.partition_index, each.replica_nodes[1])
    admin.elect_leaders([TopicPartition("led", each.partition_index) for each in before])
    after = admin.list_topics()["led"].partitions
    assert [each.leader_id for each in after] == [each.replica_nodes[0] for each in before]
    admin.alter_partition_reassignments({TopicPartition("led", 0): (2, 1, 0)})
    moved = admin.list_topics()["led"].partitions[0]
    assert (moved.replica_nodes, set(moved.isr_nodes)) == ((2, 1, 0), {0, 1, 2})
    assert admin.list_partition_reassignments() == {}


def test_producers_of_a_partition_that_is_not_there() -> None:
    cluster = VirtualCluster.start()
    request = DescribeProducersRequest(topics=(TopicRequest(name="t", partition_indexes=(0,)),))
    part = cluster.call(request, 0).topics[0].partitions[0]
    assert (part.error_code, part.error_message) == (3, "This server does not host this topic-partition.")


def test_an_unknown_operation_after_an_impossible_one_is_not_reached() -> None:
    """The controller stops at the first impossible operation of a resource, and then does not fail for all."""
    cluster = VirtualCluster.start()
    cluster.create("t")
    impossible = AlterableConfig(name="compression.type", config_operation=2, value="gzip")
    unknown = AlterableConfig(name="max.message.bytes", config_operation=9, value="-1")
    for configs, error in (
        ((impossible, unknown), ErrorCode.INVALID_CONFIG),
        ((unknown, impossible), ErrorCode.UNKNOWN_SERVER_ERROR),
    ):
        resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=configs)
        answer = cluster.call(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
        assert answer.responses[0].error_code == error
