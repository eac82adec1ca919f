"""The same requests on a real cluster and on an embedded one, with equal responses except for ids and addresses.

Groups, transactions and partition logs have separate tests. These tests cover topics, configs, replicas, and records as
requested by clients.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final
from uuid import UUID, uuid4

import pytest

from kafka_msgs import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
    UpdateFeaturesRequest,
)
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Client
from kafka_msgs.errors import BrokerError
from kafka_msgs.message import Request
from kafka_msgs.messages.alter_partition_reassignments_request import ReassignablePartition, ReassignableTopic
from kafka_msgs.messages.alter_replica_log_dirs_request import AlterReplicaLogDir, AlterReplicaLogDirTopic
from kafka_msgs.messages.create_partitions_request import CreatePartitionsTopic
from kafka_msgs.messages.create_topics_request import CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig
from kafka_msgs.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from kafka_msgs.messages.describe_configs_request import DescribeConfigsResource
from kafka_msgs.messages.describe_producers_request import TopicRequest as ProducersTopic
from kafka_msgs.messages.describe_topic_partitions_request import TopicRequest
from kafka_msgs.messages.elect_leaders_request import TopicPartitions
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from kafka_msgs.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from kafka_msgs.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsTopic
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from kafka_msgs.messages.offset_for_leader_epoch_request import OffsetForLeaderPartition, OffsetForLeaderTopic
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_msgs.messages.update_features_request import FeatureUpdateKey
from kafka_msgs.schema import ZERO_UUID
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.virtual_brokers import batch

T: Final = f"against-kafka-{uuid4().hex[:8]}"
NOWHERE: Final = UUID(int=7)
SETTLING_SECONDS: Final = 20
RELAXED: Final = frozenset(
    {"topicId", "throttleTimeMs", "leaderId", "leaderEpoch", "replicaNodes", "isrNodes", "timestamp", "lastTimestamp"}
    | {"brokers", "clusterId", "controllerId", "nodeEndpoints", "sessionId", "records", "documentation"}
)
"""Fields that depend on ids, times and addresses. The log tests compare records."""


def topic(name: str = f"{T}-new", partitions: int = 1, factor: int = 1, **more: Any) -> CreateTopicsRequest:
    created = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor, **more)
    return CreateTopicsRequest(topics=(created,), timeout_ms=10_000)


def configured(name: str, value: str | None) -> CreateTopicsRequest:
    return topic(configs=(CreatableTopicConfig(name=name, value=value),))


def placed(*replicas: tuple[int, ...], first: int = 0) -> CreateTopicsRequest:
    assignments = enumerate(replicas, first)
    return topic(
        partitions=-1,
        factor=-1,
        assignments=tuple(CreatableReplicaAssignment(partition_index=n, broker_ids=each) for n, each in assignments),
    )


def altered(name: str, value: str | None, operation: int = 0, kind: int = 2, resource: str = T) -> Request[Any]:
    config = AlterableConfig(name=name, config_operation=operation, value=value)
    changed = AlterConfigsResource(resource_type=kind, resource_name=resource, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(changed,))


def described(kind: int = 2, resource: str = T) -> DescribeConfigsRequest:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=None)
    return DescribeConfigsRequest(resources=(asked,), include_synonyms=True)


def grown(count: int, name: str = T) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=name, count=count, assignments=None),), timeout_ms=10_000
    )


def elected(kind: int, name: str = T, partition: int = 0) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=kind, topic_partitions=(TopicPartitions(topic=name, partitions=(partition,)),)
    )


def reassigned(replicas: tuple[int, ...] | None, name: str = T) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=0, replicas=replicas)
    return AlterPartitionReassignmentsRequest(topics=(ReassignableTopic(name=name, partitions=(partition,)),))


def put(path: str, name: str = T) -> AlterReplicaLogDirsRequest:
    wanted = AlterReplicaLogDirTopic(name=name, partitions=(0,))
    return AlterReplicaLogDirsRequest(dirs=(AlterReplicaLogDir(path=path, topics=(wanted,)),))


def offsets(timestamp: int, isolation: int = 0) -> ListOffsetsRequest:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    return ListOffsetsRequest(
        replica_id=-1, isolation_level=isolation, topics=(ListOffsetsTopic(name=T, partitions=(asked,)),)
    )


def produced(data: bytes, acks: int = -1) -> ProduceRequest:
    part = TopicProduceData(name=T, partition_data=(PartitionProduceData(index=0, records=data),))
    return ProduceRequest(acks=acks, timeout_ms=5000, topic_data=(part,))


def fetched(offset: int) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000)
    return FetchRequest(max_bytes=10_000, topics=(FetchTopic(topic=T, partitions=(part,)),))


def epoch(number: int) -> OffsetForLeaderEpochRequest:
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=number)
    return OffsetForLeaderEpochRequest(replica_id=-1, topics=(OffsetForLeaderTopic(topic=T, partitions=(asked,)),))


def committed(*topics: tuple[str, UUID, tuple[int, ...]]) -> OffsetCommitRequest:
    wanted = (
        OffsetCommitRequestTopic(
            name=name,
            topic_id=topic_id,
            partitions=tuple(OffsetCommitRequestPartition(partition_index=each) for each in partitions),
        )
        for name, topic_id, partitions in topics
    )
    return OffsetCommitRequest(group_id=f"{T}-offsets", topics=tuple(wanted))


def committed_in_transaction(name: str, topic_id: UUID) -> TxnOffsetCommitRequest:
    part = TxnOffsetCommitRequestPartition(partition_index=0)
    wanted = TxnOffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=(part,))
    return TxnOffsetCommitRequest(transactional_id=T, group_id=f"{T}-offsets", producer_id=1, topics=(wanted,))


def deleted_records(offset: int) -> DeleteRecordsRequest:
    asked = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=T, partitions=(asked,)),), timeout_ms=5000)


def deleted(*states: DeleteTopicState) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=states, timeout_ms=10_000)


def feature(name: str, level: int, kind: int = 1) -> UpdateFeaturesRequest:
    update = FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=kind)
    return UpdateFeaturesRequest(feature_updates=(update,), validate_only=True)


DATA: Final = batch(b"a", b"b")
SCRIPT: Final[list[tuple[Request[Any], int]]] = [
    (topic(T), 7),
    (topic(T), 7),
    (topic(T.replace("-", "_")), 7),
    (topic(T.replace("-", ".")), 7),
    (topic(""), 7),
    (topic("."), 7),
    (topic("a b"), 7),
    (topic("x" * 250), 7),
    (topic("__cluster_metadata"), 7),
    (topic(partitions=0), 7),
    (topic(partitions=-2), 7),
    (topic(partitions=20_000), 7),
    (topic(factor=0), 7),
    (topic(factor=4), 7),
    (configured("no.such", "1"), 7),
    (configured("retention.ms", "long"), 7),
    (configured("retention.ms", "-2"), 7),
    (configured("retention.ms", None), 7),
    (configured("cleanup.policy", "keep"), 7),
    (configured("cleanup.policy", "compact,compact"), 7),
    (configured("cleanup.policy", ""), 7),
    (configured("compression.type", "zip"), 7),
    (configured("min.cleanable.dirty.ratio", "2"), 7),
    (configured("preallocate", "maybe"), 7),
    (configured("remote.storage.enable", "true"), 7),
    (configured("max.compaction.lag.ms", "0"), 7),
    (configured("segment.bytes", "1"), 7),
    (configured("compression.gzip.level", "0"), 7),
    (configured("message.timestamp.type", "Never"), 7),
    (configured("follower.replication.throttled.replicas", "x"), 7),
    (placed((99,)), 7),
    (placed((1, 1)), 7),
    (placed(()), 7),
    (placed((1,), first=1), 7),
    (placed((1,), (1, 2)), 7),
    (grown(1), 3),
    (grown(0), 3),
    (grown(2, f"{T}-missing"), 3),
    (grown(3), 3),
    (grown(20_000), 3),
    (described(), 4),
    (altered("retention.ms", "1000"), 1),
    (altered("retention.ms", "x"), 1),
    (altered("no.such", "1"), 1),
    (altered("no.such", None, 1), 1),
    (altered("retention.ms", "1", 2), 1),
    (altered("cleanup.policy", "compact", 2), 1),
    (altered("cleanup.policy", "delete", 3), 1),
    (altered("cleanup.policy", "delete"), 1),
    (altered("retention.ms", None), 1),
    (altered("retention.ms", "1", resource=f"{T}-missing"), 1),
    (altered("retention.ms", "1", resource=""), 1),
    (altered("consumer.session.timeout.ms", "x", kind=32), 1),
    (altered("no.such", "x", kind=32), 1),
    (altered("interval.ms", "1", kind=16), 1),
    (altered("metrics", "a", kind=16, resource=""), 1),
    (altered("log.retention.ms", "x", kind=4, resource=""), 1),
    (altered("log.retention.ms", "1", kind=4, resource="x"), 1),
    (altered("log.retention.ms", "1", kind=4, resource="-1"), 1),
    (altered("log.retention.ms", "1", kind=4, resource="99"), 1),
    (altered("log.retention.ms", "1", kind=3), 1),
    (described(), 4),
    (described(resource=f"{T}-missing"), 4),
    (described(kind=4, resource="x"), 4),
    (described(kind=32, resource=f"{T}-group"), 4),
    (described(kind=16, resource=f"{T}-metrics"), 4),
    (elected(0), 2),
    (elected(1), 2),
    (elected(0, f"{T}-missing"), 2),
    (elected(0, partition=99), 2),
    (reassigned(None), 1),
    (reassigned((99,)), 1),
    (reassigned((1, 1)), 1),
    (reassigned(()), 1),
    (reassigned((1,), f"{T}-missing"), 1),
    (put("/no/such/directory"), 2),
    (put("/no/such/directory", "x" * 240), 1),
    (produced(DATA), 12),
    (produced(DATA, acks=1), 9),
    (produced(DATA, acks=2), 12),
    (produced(DATA[:-1]), 12),
    (produced(DATA[:-1] + b"x"), 12),
    (produced(b""), 12),
    (produced(DATA + DATA), 12),
    *((offsets(timestamp), 10) for timestamp in (-1, -2, -3, -4, -5, 0, 2**62)),
    (offsets(-1, isolation=1), 10),
    (offsets(-9), 10),
    (fetched(0), 12),
    (fetched(4), 12),
    (fetched(99), 12),
    *((epoch(number), 4) for number in (-1, 0, 5)),
    (committed((T, ZERO_UUID, (98, 99)), (f"{T}-missing", ZERO_UUID, (0,))), 9),
    (committed(("", NOWHERE, (0, 1))), 10),
    (committed_in_transaction(f"{T}-missing", ZERO_UUID), 5),
    (committed_in_transaction("", NOWHERE), 6),
    (deleted_records(1), 2),
    (deleted_records(-1), 2),
    (deleted_records(99), 2),
    (fetched(0), 12),
    (DescribeProducersRequest(topics=(ProducersTopic(name=T, partition_indexes=(0,)),)), 0),
    (DescribeProducersRequest(topics=(ProducersTopic(name=f"{T}-missing", partition_indexes=(0,)),)), 0),
    (DescribeTopicPartitionsRequest(topics=(TopicRequest(name=T), TopicRequest(name=f"{T}-missing"))), 0),
    (DescribeTopicPartitionsRequest(topics=(TopicRequest(name=T),), response_partition_limit=2), 0),
    (MetadataRequest(topics=(MetadataRequestTopic(name=T),), include_topic_authorized_operations=True), 12),
    (MetadataRequest(topics=(MetadataRequestTopic(name=f"{T}-missing"),), allow_auto_topic_creation=False), 12),
    (MetadataRequest(topics=(MetadataRequestTopic(name=None, topic_id=NOWHERE),)), 12),
    (MetadataRequest(topics=(MetadataRequestTopic(name="a b"),), allow_auto_topic_creation=False), 12),
    (feature("no.such", 1), 2),
    (feature("transaction.version", 9), 2),
    (feature("transaction.version", 1), 2),
    (feature("transaction.version", -1), 2),
    (deleted(DeleteTopicState(name=f"{T}-missing")), 6),
    (deleted(DeleteTopicState(topic_id=NOWHERE)), 6),
    (deleted(DeleteTopicState(name=T), DeleteTopicState(name=T)), 6),
    (deleted(DeleteTopicState(name=T, topic_id=NOWHERE)), 6),
    (deleted(DeleteTopicState(name=None)), 6),
    (deleted(DeleteTopicState(name=T)), 6),
]


def relaxed(value: Any) -> Any:
    """Remove values that differ between clusters from a response in JSON form."""
    if isinstance(value, dict):
        named = {key: relaxed(each) for key, each in value.items() if key not in RELAXED}
        if "configs" in named:
            named["configs"] = named["configs"] and sorted(named["configs"], key=lambda config: str(config["name"]))
        return named
    if isinstance(value, str):
        return re.sub(r"(controller|expected) \d+", r"\1 N", value)
    return [relaxed(each) for each in value] if isinstance(value, list) else value


def answer(client: Client, request: Request[Any], version: int) -> Any:
    """Return the name of a request with its response in JSON form, or with its error code."""
    try:
        found: Any = client.call(request, version=version, retry=False, timeout=30)
    except BrokerError as error:
        return request.INFO.name, version, error.error
    return request.INFO.name, version, relaxed(found.to_json(version))


def settled_answer(client: Client, request: Request[Any], version: int, expected: Any) -> Any:
    """Return the answer of a real cluster, whose brokers describe configs only some time after a change of them."""
    found = answer(client, request, version)
    deadline = time.monotonic() + SETTLING_SECONDS
    while isinstance(request, DescribeConfigsRequest) and found != expected and time.monotonic() < deadline:
        time.sleep(0.2)
        found = answer(client, request, version)
    return found


@pytest.mark.oracle
def test_an_embedded_cluster_answers_as_a_real_one(kafka_cluster: ClusterAddresses) -> None:
    intervals = {f"group.{kind}.heartbeat.interval.ms": "500" for kind in ("consumer", "share", "streams")}
    configs = {
        "auto.create.topics.enable": "false",
        "default.replication.factor": "1",
        "log.retention.ms": "-1",
        **intervals,
        **{name.replace("heartbeat", "min.heartbeat"): "300" for name in intervals},
        "group.streams.initial.rebalance.delay.ms": "0",
    }
    with EmbeddedBroker(brokers=3, configs=configs) as broker, Client(broker.bootstrap_servers) as client:
        ours = [answer(client, request, version) for request, version in SCRIPT]
        assert broker.problems == []
    with Client(kafka_cluster.bootstrap_servers) as client:
        theirs = [settled_answer(client, *asked, expected) for asked, expected in zip(SCRIPT, ours, strict=True)]
    assert [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]] == []
