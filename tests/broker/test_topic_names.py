"""Topic names that no client may create, and names of maximum length."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kafka_msgs import CreateTopicsRequest, DeleteTopicsRequest, ErrorCode, MetadataRequest
from kafka_msgs.broker.controller.topics import TopicToCreate
from kafka_msgs.broker.faults import MoveGroupCoordinator
from kafka_msgs.broker.storage.log_directory_store import LogDirectoryStore
from kafka_msgs.broker.storage.metadata_batches import METADATA_TOPIC
from kafka_msgs.errors import LogFileError, RequestRefusedError
from kafka_msgs.log.small_files import MetaProperties
from kafka_msgs.messages.create_topics_request import CreatableTopic
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from tests.support.line_counter import lines_run
from tests.support.virtual_brokers import START, VirtualCluster

LONGEST = "x" * 249


def by_metadata(cluster: VirtualCluster, name: str) -> ErrorCode:
    request = MetadataRequest(topics=(MetadataRequestTopic(name=name),), allow_auto_topic_creation=True)
    return ErrorCode(cluster.call(request, 9).topics[0].error_code)


def by_create_topics(cluster: VirtualCluster, name: str) -> ErrorCode:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return ErrorCode(cluster.call(CreateTopicsRequest(topics=(topic,)), 7).topics[0].error_code)


def by_the_controller(cluster: VirtualCluster, name: str) -> ErrorCode:
    with pytest.raises(RequestRefusedError) as refused:
        cluster.cluster.create_topic(TopicToCreate(name=name, num_partitions=1, replication_factor=1))
    return ErrorCode(refused.value.error)


@pytest.mark.parametrize("brokers", [1, 3])
@pytest.mark.parametrize(
    ("create", "error"),
    [
        (by_metadata, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (by_create_topics, ErrorCode.INVALID_REQUEST),
        (by_the_controller, ErrorCode.INVALID_REQUEST),
    ],
)
def test_nobody_creates_the_topic_of_the_metadata_log(
    tmp_path: Path, create: Callable[[VirtualCluster, str], ErrorCode], error: ErrorCode, brokers: int
) -> None:
    cluster = VirtualCluster.start(directory=tmp_path, brokers=brokers)
    cluster.create("orders")
    assert create(cluster, METADATA_TOPIC) == error
    assert list(cluster.cluster.image.topics) == ["orders"]
    cluster.cluster.close()
    again = VirtualCluster.start(directory=tmp_path, brokers=brokers)
    assert list(again.cluster.image.topics) == ["orders"]
    assert not list(tmp_path.glob("**/*-stray"))
    again.cluster.close()


def test_the_directory_of_an_open_log_is_never_put_aside(tmp_path: Path) -> None:
    cluster = VirtualCluster.start(directory=tmp_path)
    directory = cluster.cluster.storage
    assert directory is not None
    store = directory._stores[0]
    with pytest.raises(LogFileError, match="open"):
        store.make(METADATA_TOPIC, cluster.cluster.new_id(), 0)
    assert (tmp_path / f"{METADATA_TOPIC}-0").exists()
    cluster.cluster.close()


@pytest.mark.parametrize("name", [LONGEST, "x" * 214, "short"])
def test_topics_of_all_lengths_are_deleted_and_created_again(tmp_path: Path, name: str) -> None:
    cluster = VirtualCluster.start(directory=tmp_path)
    for _ in range(2):
        assert by_create_topics(cluster, name) == ErrorCode.NONE
        answer = cluster.call(DeleteTopicsRequest(topics=(DeleteTopicState(name=name),)), 6)
        assert answer.responses[0].error_code == ErrorCode.NONE
    assert not list(tmp_path.glob("*x*-*"))
    cluster.cluster.close()


def test_a_directory_of_an_older_topic_with_the_longest_name_is_put_aside_twice(tmp_path: Path) -> None:
    properties = {"node.id": "0", "directory.id": "AAAAAAAAAAAAAAAAAAAAAQ", "version": "1", "cluster.id": "c"}
    meta = MetaProperties(version=1, cluster_id="c", node_id=0, directory_id=None, properties=properties)
    store = LogDirectoryStore(tmp_path, meta, now=START)
    ids = VirtualCluster.start().cluster
    for topic_id in (first := ids.new_id()), ids.new_id(), first, ids.new_id():
        store.make(LONGEST, topic_id, 0)
    aside = [path.name for path in tmp_path.glob("*-stray")]
    assert len(aside) == 3
    assert all(len(name) == 255 and "-0." in name for name in aside)
    store.close()


def test_names_collide_with_those_of_topics_that_are_there() -> None:
    cluster = VirtualCluster.start()
    cluster.create("a.b")
    assert by_create_topics(cluster, "a_b") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert by_create_topics(cluster, "a-b") == ErrorCode.NONE
    cluster.call(DeleteTopicsRequest(topics=(DeleteTopicState(name="a.b"),)), 6)
    assert by_create_topics(cluster, "a_b") == ErrorCode.NONE
    assert by_create_topics(cluster, "a.b") == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_the_work_for_a_new_topic_does_not_grow_with_the_topics_that_are_there() -> None:
    """The cluster has a group coordinator, whose image also gets the topic."""
    cluster = VirtualCluster.start()
    MoveGroupCoordinator("group", 0).apply(cluster.cluster)
    counts = []
    for more in (100, 900):
        for number in range(more):
            cluster.create(f"a.topic-{more}-{number}")
        counts.append(lines_run(partial(cluster.create, f"another.topic-{more}")))
    assert counts[1] < 1.2 * counts[0]
