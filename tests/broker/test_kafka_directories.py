"""Clusters in a directory with transactions and offsets, reopened by the embedded broker and by a Kafka node."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import pytest

from kafka_msgs.admin import Admin, ConfigResource, ConfigResourceType, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer, TopicPartition
from kafka_msgs.errors import LogFileError
from kafka_msgs.log import LogDirectory, check_offset_index, check_time_index, read_quorum_state
from tests.recorders.broker import run_kafka_class
from tests.support.kafka_directory import KafkaNodes, claim_for_node

TOPIC: Final = "orders"
GROUP: Final = "billing"
WAIT: Final = 30
PARTITIONS: Final = 2
SNAPSHOTS: Final = {"metadata.log.max.record.bytes.between.snapshots": "1"}
RECORDINGS: Final = Path(__file__).parents[1] / "recordings"


def write(servers: str, values: range) -> None:
    with Producer(servers) as producer:
        for value in values:
            producer.send(TOPIC, b"%d" % value, key=b"key-%d" % (value % 7) + bytes(300), partition=value % PARTITIONS)
        producer.flush()


def write_transactions(servers: str, values: range) -> None:
    """Commit the values, and abort the same number of other values."""
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "ledger"})
    producer.init_transactions(WAIT)
    for end, sign in ((producer.abort_transaction, b"-"), (producer.commit_transaction, b"")):
        producer.begin_transaction()
        for value in values:
            producer.produce(TOPIC, sign + b"%d" % value, partition=value % PARTITIONS)
        end(WAIT)


def committed(servers: str, count: int) -> list[int]:
    """Return the values that a read_committed consumer receives, at least this many."""
    with Consumer(servers, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([(TOPIC, partition) for partition in range(PARTITIONS)])
        found: list[int] = []
        while len(found) < count:
            found += [int(bytes(each.value or b"")) for each in consumer.poll(WAIT)]
        return sorted(found)


def commit_offsets(servers: str) -> None:
    with Admin(servers) as admin:
        admin.alter_group_offsets(GROUP, {TopicPartition(TOPIC, 0): 3, TopicPartition(TOPIC, 1): 5})


def state(servers: str) -> dict[str, Any]:
    """Return the state of a cluster as admin clients see it."""
    with Admin(servers) as admin:
        topic = admin.list_topics()[TOPIC]
        configs = admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)])
        offsets = admin.list_group_offsets(GROUP)
        return {
            "topic id": topic.topic_id,
            "leaders": [partition.leader_id for partition in topic.partitions],
            "retention": [
                entry.value for each in configs.values() for entry in each.values() if entry.name == "retention.ms"
            ],
            "offsets": {(each.topic, each.partition): offset.offset for each, offset in offsets.items()},
        }


def fill(servers: str) -> None:
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1, configs={"retention.ms": "123456789"})])
    write(servers, range(100))
    write_transactions(servers, range(100, 120))
    commit_offsets(servers)


@pytest.fixture
def kafka_node() -> None:
    """Require the environment of a Kafka node; otherwise the test is reported as not run."""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return a directory that an embedded broker closed, and its state as admin clients saw it. Its node id is 1."""
    directory = tmp_path_factory.mktemp("directories") / "filled"
    claim_for_node(directory)
    # On close, the broker writes a metadata snapshot.
    with EmbeddedBroker(directory=directory, configs=SNAPSHOTS) as broker:
        fill(broker.bootstrap_servers)
        seen = state(broker.bootstrap_servers)
        assert broker.problems == []
    return directory, seen


Filled = tuple[Path, dict[str, Any]]


def test_a_closed_cluster_is_opened_as_it_was(filled: Filled, tmp_path: Path) -> None:
    directory, seen = filled
    shutil.copytree(directory, tmp_path / "copy")
    with EmbeddedBroker(directory=tmp_path / "copy") as broker:
        assert state(broker.bootstrap_servers) == seen
        assert committed(broker.bootstrap_servers, 120) == list(range(120))
        write_transactions(broker.bootstrap_servers, range(120, 130))
        assert committed(broker.bootstrap_servers, 130) == list(range(130))
        assert broker.problems == []


def test_a_cluster_that_was_not_closed_is_opened_as_it_was(filled: Filled, tmp_path: Path) -> None:
    directory, seen = filled
    shutil.copytree(directory, tmp_path / "running")
    with EmbeddedBroker(directory=tmp_path / "running") as broker:
        write(broker.bootstrap_servers, range(120, 150))
        shutil.copytree(tmp_path / "running", tmp_path / "crashed")
    with EmbeddedBroker(directory=tmp_path / "crashed") as broker:
        assert state(broker.bootstrap_servers) == seen
        assert committed(broker.bootstrap_servers, 150) == list(range(150))
        assert broker.problems == []


@pytest.mark.parametrize("name", ["logs", "tiered"])
def test_a_recorded_directory_of_a_node_of_kafka_is_opened(name: str, tmp_path: Path) -> None:
    """One recording lists the quorum voters in its configs; the other one has them in its log (KIP-853)."""
    directory = tmp_path / name
    shutil.copytree(RECORDINGS / name, directory)
    ends = {
        f"{partition.topic}-{partition.partition}": max(batch.last_offset for batch in partition.batches()) + 1
        for partition in LogDirectory(directory).partitions
        if partition.topic != "__cluster_metadata"
    }
    quorum = (directory / "__cluster_metadata-0" / "quorum-state").read_text()
    for _ in range(2):
        with EmbeddedBroker(directory=directory) as broker:
            assert broker.run(lambda cluster: {log.name: log.log_end_offset for log in cluster.log_manager}) == ends
            assert broker.problems == []
    version, state = read_quorum_state(directory / "__cluster_metadata-0" / "quorum-state")
    assert f'"data_version":{version}' in quorum
    assert (state.leader_id, state.leader_epoch) == (1, 3)


def test_a_directory_has_one_broker_at_a_time(tmp_path: Path) -> None:
    with (
        EmbeddedBroker(directory=tmp_path / "data"),
        pytest.raises(LogFileError, match="another broker"),
        EmbeddedBroker(directory=tmp_path / "data"),
    ):
        pass


def test_a_deleted_topic_leaves_no_files(tmp_path: Path) -> None:
    with EmbeddedBroker(directory=tmp_path / "data") as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
        assert list((tmp_path / "data").glob(f"{TOPIC}-*"))
        admin.delete_topics([TOPIC])
        assert not list((tmp_path / "data").glob(f"{TOPIC}-*"))


@pytest.mark.usefixtures("kafka_node")
def test_our_readers_and_kafkas_find_no_fault_in_the_files(filled: Filled) -> None:
    directory, _ = filled
    partitions = LogDirectory(directory).partitions
    indexes = []
    for partition in partitions:
        for segment in partition.segments:
            assert not [each for each in segment.walk_batches() if isinstance(each, LogFileError)]
            checks = (
                check_offset_index(segment.path.with_suffix(".index")),
                check_time_index(segment.path.with_suffix(".timeindex")),
            )
            assert not [each for check in checks for each in check if isinstance(each, LogFileError)]
            if segment.size and partition.topic == TOPIC:
                indexes.append(str(segment.path.with_suffix(".index")))
    files = ["--index-sanity-check", "--files", ",".join(indexes)]
    said = run_kafka_class("org.apache.kafka.tools.DumpLogSegments", files)
    assert said.count("passed sanity check") == len(indexes) == PARTITIONS


@pytest.mark.usefixtures("kafka_node")
def test_a_node_of_kafka_opens_our_directory_and_we_open_its(filled: Filled, tmp_path: Path) -> None:
    directory, seen = filled
    with KafkaNodes(directory) as node:
        assert state(node.bootstrap_servers) == seen
        assert committed(node.bootstrap_servers, 120) == list(range(120))
        write_transactions(node.bootstrap_servers, range(120, 130))
        shutil.copytree(node.stopped(), tmp_path / "kafka")
    with EmbeddedBroker(directory=tmp_path / "kafka") as broker:
        assert state(broker.bootstrap_servers) == seen
        assert committed(broker.bootstrap_servers, 130) == list(range(130))
        write_transactions(broker.bootstrap_servers, range(130, 140))
        assert committed(broker.bootstrap_servers, 140) == list(range(140))
        assert broker.problems == []
