"""Racks of brokers, and the preferred read replica of a consumer (KIP-392)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from kafka_msgs import ApiKey, ErrorCode, FetchRequest, FetchResponse, MetadataRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.faults import Heal, MoveLeader, SetFollowerOffsets
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.errors import OptionError
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from kafka_msgs.messages.fetch_response import PartitionData
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.records import RecordBatch, read_batches
from kafka_msgs.testing import new_topic
from tests.support.virtual_brokers import VirtualCluster, batch

SELECTOR = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
RACKS = ("a", "b", None)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    cluster = VirtualCluster.start(brokers=3, racks=RACKS, configs=SELECTOR)
    cluster.create("t", replication_factor=3)
    MoveLeader("t", 0, 0).apply(cluster.cluster)
    cluster.produce("t", 0, batch(b"x"))
    yield cluster
    assert cluster.cluster.errors == []


def fetched(rack: str, offset: int = 0, **session: int) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10**6)
    topic = FetchTopic(topic="t", partitions=(part,))
    return FetchRequest(
        max_wait_ms=60_000,
        min_bytes=1,
        max_bytes=10**6,
        rack_id=rack,
        topics=(topic,),
        session_id=session.get("id", 0),
        session_epoch=session.get("epoch", -1),
    )


def read(cluster: VirtualCluster, rack: str, broker: int, version: int = 12, offset: int = 0) -> PartitionData:
    return cluster.call(fetched(rack, offset), version, broker=broker).responses[0].partitions[0]


def test_metadata_shows_racks(cluster: VirtualCluster) -> None:
    answer = cluster.call(MetadataRequest(topics=(MetadataRequestTopic(name="t"),)), 12)
    assert [each.rack for each in answer.brokers] == list(RACKS)


def test_the_leader_names_a_replica_in_the_rack_of_the_consumer(cluster: VirtualCluster) -> None:
    told = read(cluster, "b", 0)
    assert (told.preferred_read_replica, told.records, told.high_watermark) == (1, b"", 1)
    found = read(cluster, "b", 1)
    assert (found.preferred_read_replica, found.error_code) == (-1, 0)
    assert found.records


@pytest.mark.parametrize(("rack", "version"), [("a", 12), ("nowhere", 12), ("", 12), ("b", 10)])
def test_others_read_from_the_leader(cluster: VirtualCluster, rack: str, version: int) -> None:
    found = read(cluster, rack, 0, version)
    assert found.preferred_read_replica == -1
    assert found.records


def test_who_waits_for_records_is_told_at_once(cluster: VirtualCluster) -> None:
    begun = cluster.call(fetched("b", 1, epoch=0), 12)
    assert begun.responses[0].partitions[0].preferred_read_replica == 1
    again = cluster.call(fetched("b", 1, id=begun.session_id, epoch=1), 12)
    assert again.responses[0].partitions[0].preferred_read_replica == 1


def test_a_replica_that_does_not_run_is_not_named(cluster: VirtualCluster) -> None:
    cluster.cluster.kill_broker(1)
    assert read(cluster, "b", 0).preferred_read_replica == -1


def test_followers_serve_consumers_only_that_know_of_them(cluster: VirtualCluster) -> None:
    assert read(cluster, "", 2).records
    assert read(cluster, "", 2, version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    cluster.create("alone", replication_factor=1)


def test_without_a_selector_nobody_is_sent_away() -> None:
    cluster = VirtualCluster.start(brokers=2, racks=("a", "b"))
    cluster.create("t", replication_factor=2)
    MoveLeader("t", 0, 0).apply(cluster.cluster)
    cluster.produce("t", 0, batch(b"x"))
    assert read(cluster, "b", 0).records


def test_librdkafka_reads_from_the_replica_in_its_rack() -> None:
    with EmbeddedBroker(brokers=3, racks=RACKS, configs=SELECTOR) as broker:
        topic = new_topic(broker, replicas=3)
        broker.move_leader(topic, 0, 0)
        served: list[int] = []

        def note(call: ServerCall[Any], answer: object) -> None:
            if has_records(call.api_key, answer):
                served.append(call.session.broker_id)

        broker.run(lambda cluster: cluster.response_observers.append(note))
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce(topic, b"one tea")
        producer.flush()
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": "kitchen",
                "client.rack": "b",
                "auto.offset.reset": "earliest",
            }
        )
        try:
            consumer.subscribe([topic])
            message = consumer.poll(60)
            assert message is not None
            assert message.value() == b"one tea"
        finally:
            consumer.close()
        assert set(served) == {1}
        assert broker.problems == []


def has_records(api_key: int, answer: object) -> bool:
    if api_key != ApiKey.FETCH or not isinstance(answer, FetchResponse):
        return False
    return any(partition.records for topic in answer.responses for partition in topic.partitions)


def test_a_follower_lags_and_loses_old_records(cluster: VirtualCluster) -> None:
    """Offsets outside of its records are out of range there. The leader has all of them."""
    for value in (b"y", b"z"):
        cluster.produce("t", 0, batch(value))
    cluster.cluster.faults.apply(SetFollowerOffsets("t", 0, 1, start=1, end=2))
    (found,) = read_batches(bytes(read(cluster, "b", 1, offset=1).records or b""))
    assert isinstance(found, RecordBatch)
    assert found.base_offset == 1
    asked = cluster.ask(fetched("b", 2), 12, broker=1)
    cluster.advance(60_000)
    shown = cluster.decoded(asked, FetchResponse).responses[0].partitions[0]
    assert (shown.error_code, shown.log_start_offset, shown.high_watermark, shown.records) == (0, 1, 2, b"")
    assert {read(cluster, "b", 1, offset=offset).error_code for offset in (0, 3)} == {ErrorCode.OFFSET_OUT_OF_RANGE}
    assert read(cluster, "a", 0).high_watermark == 3
    cluster.cluster.faults.apply(SetFollowerOffsets("t", 0, 1))
    assert read(cluster, "b", 1, offset=0).high_watermark == 3
    cluster.cluster.faults.apply(SetFollowerOffsets("t", 0, 1, end=1))
    cluster.cluster.faults.apply(Heal())
    assert read(cluster, "b", 1, offset=2).error_code == 0


def test_a_broker_without_a_replica_is_no_follower(cluster: VirtualCluster) -> None:
    cluster.create("alone", replication_factor=1)
    state = cluster.cluster.image.topics["alone"].partitions[0]
    other = next(each for each in range(3) if each not in state.replicas)
    with pytest.raises(OptionError, match=f"the replicas are {state.replicas[0]}"):
        SetFollowerOffsets("alone", 0, other, 0, 1).apply(cluster.cluster)


def test_librdkafka_waits_for_a_follower_that_lags() -> None:
    with EmbeddedBroker(brokers=3, racks=RACKS, configs=SELECTOR) as broker:
        topic = new_topic(broker, "t", replicas=3)
        broker.move_leader(topic, 0, 0)
        broker.set_follower_offsets(topic, 0, 1, end=1)
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap_servers})
        for value in (b"0", b"1", b"2"):
            producer.produce(topic, value)
            producer.flush()
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "client.rack": "b"}
        consumer = confluent_kafka.Consumer(settings)
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        (first,) = consumer.consume(1, 30)
        assert first.value() == b"0"
        assert consumer.consume(1, 0.5) == []
        broker.set_follower_offsets(topic, 0, 1)
        assert [each.value() for each in consumer.consume(2, 30)] == [b"1", b"2"]
        consumer.close()
        assert broker.problems == []
