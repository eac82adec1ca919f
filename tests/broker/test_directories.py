"""Clusters in a directory: their state after a restart and after a crash, and agreement with our own readers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_msgs import DeleteTopicsRequest, ProduceResponse
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.controller.image import MetadataImage
from kafka_msgs.broker.controller.image_types import MetadataDelta
from kafka_msgs.broker.controller.image_writer import image_records
from kafka_msgs.broker.storage.metadata_batches import METADATA_TOPIC
from kafka_msgs.client import Consumer, Producer
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.log import LogDirectory, Partition
from kafka_msgs.log.small_files import read_meta_properties
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from kafka_msgs.records import ControlType, RecordBatch
from tests.support.virtual_brokers import VirtualCluster, batch

RECORDINGS = Path(__file__).parents[1] / "recordings"


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
    assert not list(tmp_path.glob("*/gone-0"))
    after.cluster.close()


def test_records_survive_a_cluster_that_was_never_closed(tmp_path: Path) -> None:
    cluster = opened(tmp_path / "crashed")
    cluster.create("t")
    cluster.produce("t", 0, batch(b"a"))
    shutil.copytree(tmp_path / "crashed", tmp_path / "copy")
    cluster.cluster.close()
    after = opened(tmp_path / "copy")
    log = after.cluster.log_manager.get((after.topic_id("t"), 0))
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
    after = opened(tmp_path / "broker-0")
    topics = after.cluster.image.topics
    assert {state.leader for topic in topics.values() for state in topic.partitions} == {0}
    assert [broker.id for broker in after.cluster.image.alive()] == [0]
    after.cluster.close()


def test_old_segments_are_removed_as_time_passes() -> None:
    cluster = VirtualCluster.start(
        configs={"log.initial.task.delay.ms": "1000", "log.retention.check.interval.ms": "1000"}
    )
    cluster.create("t", retention_ms="5000", file_delete_delay_ms="0")
    cluster.produce("t", 0, batch(b"a"))
    cluster.advance(5_001)
    log = cluster.cluster.log_manager.get((cluster.topic_id("t"), 0))
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset) == (1, 1)
    assert cluster.cluster.errors == []


SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "1"}


def image_of(directory: Path) -> MetadataImage:
    """Return the image of a directory's metadata records, without opening the directory as a broker."""
    image, delta = MetadataImage(), MetadataDelta()
    partition = next(each for each in LogDirectory(directory).partitions if each.topic == METADATA_TOPIC)
    batches = [*(partition.snapshots[-1].batches() if partition.snapshots else ())]
    start = partition.snapshots[-1].end_offset if partition.snapshots else 0
    batches += [each for each in partition.batches(start) if each.last_offset >= start]
    for record in decode_batches(METADATA_TOPIC, batches):
        if isinstance(record, TopicRecord) and isinstance(record.value, MetadataRecord):
            image.apply(record.value, delta)
    image.offset = 0
    return image


@pytest.mark.parametrize("name", ["logs", "tiered"])
def test_the_records_of_an_image_make_it_again(name: str, tmp_path: Path) -> None:
    image, again = image_of(RECORDINGS / name), MetadataImage()
    assert image.topics
    for record in image_records(image):
        again.apply(record, MetadataDelta())
    again.offset = 0
    assert again == image


def test_snapshots_keep_the_metadata_log_short(tmp_path: Path) -> None:
    cluster = opened(tmp_path, brokers=2, configs=SNAPSHOTS)
    for number in range(20):
        cluster.create(f"t{number}", partitions=3, replication_factor=2, retention_ms="-1")
    cluster.produce("t7", 0, batch(b"a"), broker=cluster.cluster.image.topics["t7"].partitions[0].leader)
    before = cluster.cluster
    before.close()
    for broker in ("broker-0", "broker-1"):
        partition = next(each for each in LogDirectory(tmp_path / broker).partitions if each.topic == METADATA_TOPIC)
        (snapshot,), (segment,) = partition.snapshots, partition.segments
        assert (segment.base_offset, segment.size) == (snapshot.end_offset, 0)
        assert image_of(tmp_path / broker).topics == before.image.topics
    # Offsets continue, so each registration has a higher epoch than the one before.
    for _ in range(2):
        epochs = {each.id: each.epoch for each in before.image.brokers.values()}
        after = opened(tmp_path, configs=SNAPSHOTS).cluster
        assert (after.image.configs, list(after.image.topics)) == (before.image.configs, list(before.image.topics))
        assert all(each.epoch > epochs[each.id] for each in after.image.brokers.values())
        before = after
        after.close()


def test_a_snapshot_holds_the_quorum_of_the_log(tmp_path: Path) -> None:
    """The voters of this recording are in its log (KIP-853)."""
    shutil.copytree(RECORDINGS / "tiered", tmp_path / "tiered")
    opened(tmp_path / "tiered", configs=SNAPSHOTS).cluster.close()
    (partition,) = (each for each in LogDirectory(tmp_path / "tiered").partitions if each.topic == METADATA_TOPIC)
    (snapshot,) = partition.snapshots
    first = next(snapshot.batches())
    assert isinstance(first, RecordBatch)
    kinds = [each.type for each in first.control_records()]
    assert kinds == [ControlType.SNAPSHOT_HEADER, ControlType.KRAFT_VERSION, ControlType.KRAFT_VOTERS]


def test_a_log_that_begins_at_the_snapshot_of_a_node_of_kafka_is_read(tmp_path: Path) -> None:
    path = tmp_path / "logs"
    shutil.copytree(RECORDINGS / "logs", path)
    log = path / f"{METADATA_TOPIC}-0"
    (snapshot,) = Partition(log).snapshots
    batches = [each for each in Partition(log).batches() if isinstance(each, RecordBatch)]
    for old in log.glob("00000000000000000000.*"):
        old.unlink()
    content = b"".join(bytes(each.stored_bytes) for each in batches if each.base_offset >= snapshot.end_offset)
    (log / f"{snapshot.end_offset:020}.log").write_bytes(content)
    whole = opened(shutil.copytree(RECORDINGS / "logs", tmp_path / "whole")).cluster
    trimmed = opened(path).cluster
    assert trimmed.image.topics.keys() == whole.image.topics.keys()
    assert trimmed.image.offset >= snapshot.end_offset
    for each in (whole, trimmed):
        each.close()
