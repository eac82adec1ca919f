"""Clusters in a directory: what is there after a restart, and after a crash, and that our own readers agree."""

from __future__ import annotations

import shutil
from pathlib import Path

from kafka_msgs import DeleteTopicsRequest, ProduceResponse
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer
from kafka_msgs.log.files import read_meta_properties
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from tests.support.virtual_brokers import VirtualCluster, batch


def opened(path: Path, **settings: object) -> VirtualCluster:
    return VirtualCluster.start(directory=path, **settings)


def test_a_cluster_is_after_a_restart_what_it_was(tmp_path: Path) -> None:
    cluster = opened(tmp_path, brokers=2)
    cluster.create("t", partitions=2, replication_factor=2, retention_ms="-1")
    cluster.create("gone")
    leader = cluster.cluster.image.topics["t"].partitions[0].leader
    cluster.produce("t", 0, batch(b"a", b"b"), broker=leader)
    cluster.call(DeleteTopicsRequest(topics=(DeleteTopicState(name="gone"),)), 6)
    before = cluster.cluster
    before.close()

    after = opened(tmp_path, brokers=2)
    image = after.cluster.image
    assert (after.cluster.cluster_id, image.configs, list(image.topics)) == (
        before.cluster_id,
        before.image.configs,
        ["t"],
    )
    partition = image.topics["t"].partitions[0]
    assert (partition.replicas, set(partition.isr)) == (before.image.topics["t"].partitions[0].replicas, {0, 1})
    assert partition.leader_epoch > before.image.topics["t"].partitions[0].leader_epoch
    answer = after.decoded(after.produce("t", 0, batch(b"c"), broker=partition.leader), ProduceResponse)
    assert answer.responses[0].partition_responses[0].base_offset == 2
    assert not (tmp_path / "gone-0").exists()
    after.cluster.close()


def test_records_survive_a_cluster_that_was_never_closed(tmp_path: Path) -> None:
    cluster = opened(tmp_path / "crashed")
    cluster.create("t")
    cluster.produce("t", 0, batch(b"a"))
    shutil.copytree(tmp_path / "crashed", tmp_path / "copy")
    cluster.cluster.close()
    after = opened(tmp_path / "copy")
    log = after.cluster.partitions.get((after.topic_id("t"), 0))
    assert log is not None
    assert (log.log_end_offset, after.cluster.image.topics["t"].partitions[0].leader) == (1, 0)
    after.cluster.close()


def test_a_new_directory_says_who_it_belongs_to(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path, cluster_id="AAAAAAAAAAAAAAAAAAAAAQ"):
        meta = read_meta_properties(tmp_path / "meta.properties")
    assert (meta.cluster_id, meta.node_id) == ("AAAAAAAAAAAAAAAAAAAAAQ", 0)
    with EmbeddedBroker(directory=tmp_path) as broker:
        assert broker.run(lambda each: each.cluster_id) == meta.cluster_id


def test_clients_find_their_records_again(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1, 1)])
        with Producer(broker.bootstrap_servers) as producer:
            producer.send("t", b"value")
            producer.flush()
    with (
        EmbeddedBroker(directory=tmp_path) as broker,
        Consumer(broker.bootstrap_servers, group_id="group", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe(["t"])
        found: list[object] = []
        while not found:
            found += [record.value for record in consumer.poll(5)]
        assert found == [b"value"]
        assert broker.problems == []


def test_the_directory_of_one_node_of_several_is_led_by_who_is_there(tmp_path: Path) -> None:
    cluster = opened(tmp_path, brokers=3)
    cluster.create("t", partitions=3, replication_factor=1)
    cluster.create("u", replication_factor=3)
    cluster.cluster.close()
    after = opened(tmp_path)
    topics = after.cluster.image.topics
    assert {state.leader for topic in topics.values() for state in topic.partitions} == {0}
    assert [broker.id for broker in after.cluster.image.alive()] == [0]
    after.cluster.close()


def test_old_segments_are_removed_as_time_passes() -> None:
    cluster = VirtualCluster.start(configs={"log.retention.check.interval.ms": "1000"})
    cluster.create("t", retention_ms="5000", file_delete_delay_ms="0")
    cluster.produce("t", 0, batch(b"a"))
    cluster.advance(5_001)
    log = cluster.cluster.partitions.get((cluster.topic_id("t"), 0))
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    assert cluster.cluster.problems == []
