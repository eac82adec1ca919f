"""Offsets and deletion of streams groups (KIP-1071). The numbers in test names are requirement numbers.

The brokers are in memory, and the tests check every request.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_msgs.admin import (
    Admin,
    AsyncAdmin,
)
from kafka_msgs.admin.group_offsets import alter_group_offsets, delete_topic_offsets, list_offsets_of_groups
from kafka_msgs.admin.groups import delete_groups
from kafka_msgs.client import TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError
from kafka_msgs.messages import offset_commit_response as committed
from kafka_msgs.messages import offset_delete_response as deleted
from kafka_msgs.messages import offset_fetch_response as fetched
from kafka_msgs.messages.delete_groups_request import DeleteGroupsRequest
from kafka_msgs.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest
from kafka_msgs.messages.offset_delete_request import OffsetDeleteRequest
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from tests.support.simulated_cluster import SimulatedCluster

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


NOT_EMPTY = ErrorCode.UNKNOWN_MEMBER_ID


def commit_answer(errors: dict[TopicPartition, int]) -> Callable[[int, OffsetCommitRequest], Any]:
    def commit(node: int, request: OffsetCommitRequest) -> committed.OffsetCommitResponse:
        return committed.OffsetCommitResponse(
            topics=tuple(
                committed.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        committed.OffsetCommitResponsePartition(
                            partition_index=each.partition_index,
                            error_code=errors.get(TopicPartition(topic.name, each.partition_index), 0),
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
            )
        )

    return commit


def test_h1_offsets_are_altered_by_offset_commit_from_outside_of_the_group() -> None:
    cluster = SimulatedCluster({OffsetCommitRequest: commit_answer({T1: NOT_EMPTY})}, coordinators={"app": 2})
    result = cluster.network.run(alter_group_offsets(cluster.core, "app", {T0: 5, T1: 6}))
    ((node, request),) = cluster.asked(OffsetCommitRequest)
    assert (node, request.group_id, request.generation_id_or_member_epoch, request.member_id) == (2, "app", -1, "")
    assert [
        (topic.name, each.partition_index, each.committed_offset)
        for topic in request.topics
        for each in topic.partitions
    ] == [("t", 0, 5), ("t", 1, 6)]
    assert cluster.apis() == ["FindCoordinator", "OffsetCommit"]
    assert list(result.ok) == [T0]
    assert list(result.errors) == [T1]


def test_h7_a_partition_that_fails_fails_all_and_only_itself() -> None:
    cluster = SimulatedCluster({OffsetCommitRequest: commit_answer({T1: NOT_EMPTY})})
    result = cluster.network.run(alter_group_offsets(cluster.core, "app", {T0: 5, T1: 6}))
    assert result[T0] is None
    for fails in (lambda: result[T1], result.all):
        with pytest.raises(BrokerError) as raised:
            fails()
        assert (raised.value.error, raised.value.subject) == (NOT_EMPTY, T1)


def delete_answer(errors: dict[str, int], whole: int = 0) -> Callable[[int, OffsetDeleteRequest], Any]:
    def delete(node: int, request: OffsetDeleteRequest) -> deleted.OffsetDeleteResponse:
        return deleted.OffsetDeleteResponse(
            error_code=whole,
            topics=tuple(
                deleted.OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        deleted.OffsetDeleteResponsePartition(
                            partition_index=each.partition_index, error_code=errors.get(topic.name, 0)
                        )
                        for each in topic.partitions
                    ),
                )
                for topic in request.topics
                if not whole
            ),
        )

    return delete


def fetch_answer(
    stored: dict[str, dict[TopicPartition, int]], errors: dict[str, int] | None = None
) -> Callable[[int, OffsetFetchRequest], Any]:
    def group(group_id: str) -> fetched.OffsetFetchResponseGroup:
        return fetched.OffsetFetchResponseGroup(
            group_id=group_id,
            error_code=(errors or {}).get(group_id, 0),
            topics=tuple(
                fetched.OffsetFetchResponseTopics(
                    name=each.topic,
                    partitions=(
                        fetched.OffsetFetchResponsePartitions(partition_index=each.partition, committed_offset=offset),
                    ),
                )
                for each, offset in stored.get(group_id, {}).items()
            ),
        )

    return lambda node, request: fetched.OffsetFetchResponse(
        groups=tuple(group(each.group_id) for each in request.groups)
    )


def streams_topics(errors: dict[str, int], whole: int = 0) -> SimulatedCluster:
    """Return a cluster with two topics, and a group that also has a committed offset for a deleted topic."""
    return SimulatedCluster(
        {
            OffsetDeleteRequest: delete_answer(errors, whole),
            OffsetFetchRequest: fetch_answer({"app": {T0: 1, TopicPartition("gone", 4): 2}}),
        },
        topics={"t": 3, "u": 1},
    )


def test_h2_offsets_of_whole_topics_are_deleted_by_offset_delete() -> None:
    cluster = streams_topics({})
    cluster.network.run(delete_topic_offsets(cluster.core, "app", ["t", "gone"])).all()
    ((_, request),) = cluster.asked(OffsetDeleteRequest)
    assert {topic.name: [each.partition_index for each in topic.partitions] for topic in request.topics} == {
        "t": [0, 1, 2],
        "gone": [4],
    }


def test_h8_a_topic_that_fails_fails_all_and_only_itself() -> None:
    cluster = streams_topics({"u": ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC})
    result = cluster.network.run(delete_topic_offsets(cluster.core, "app", ["t", "u"]))
    assert result["t"] is None
    assert list(result.errors) == ["u"]
    with pytest.raises(BrokerError, match="GROUP_SUBSCRIBED_TO_TOPIC"):
        result.all()


def test_h8_an_error_of_the_group_is_raised() -> None:
    cluster = streams_topics({}, ErrorCode.GROUP_ID_NOT_FOUND)
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        cluster.network.run(delete_topic_offsets(cluster.core, "app", ["t"]))


def groups_deleted(node: int, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=tuple(
            DeletableGroupResult(group_id=name, error_code=69 if name == "missing" else 0)
            for name in request.groups_names
        )
    )


def test_h3_groups_are_deleted_by_delete_groups_at_each_coordinator() -> None:
    cluster = SimulatedCluster({DeleteGroupsRequest: groups_deleted}, coordinators={"a": 1, "b": 2, "c": 1})
    cluster.network.run(delete_groups(cluster.core, ["a", "b", "c"])).all()
    asked = {node: request.groups_names for node, request in cluster.asked(DeleteGroupsRequest)}
    assert asked == {1: ("a", "c"), 2: ("b",)}


def test_h9_a_missing_group_fails_all_and_only_itself() -> None:
    cluster = SimulatedCluster({DeleteGroupsRequest: groups_deleted})
    result = cluster.network.run(delete_groups(cluster.core, ["a", "missing"]))
    assert dict.fromkeys(result) == {"a": None, "missing": None}
    assert result["a"] is None
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        result.all()


def test_h5_offsets_are_listed_by_offset_fetch_and_unset_means_all() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: fetch_answer({"app": {T0: 1}, "two": {U0: 2}})})
    cluster.network.run(list_offsets_of_groups(cluster.core, {"app": None, "two": [U0]})).all()
    ((_, request),) = cluster.asked(OffsetFetchRequest)
    assert [each.topics and each.topics[0].name for each in request.groups] == [None, "u"]


def test_h11_offsets_are_by_group_and_partition_and_one_group_may_fail() -> None:
    stored = {"app": {T0: 1, U0: 3}, "two": {U0: 2}}
    cluster = SimulatedCluster({OffsetFetchRequest: fetch_answer(stored, {"two": 30})})
    result = cluster.network.run(list_offsets_of_groups(cluster.core, dict.fromkeys(stored)))
    assert {partition: each.offset for partition, each in result["app"].items()} == stored["app"]
    for fails in (lambda: result["two"], result.all):
        with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
            fails()


@pytest.mark.parametrize("shell", [Admin, AsyncAdmin])
def test_h16_members_of_streams_groups_are_not_removed(shell: type[Any]) -> None:
    assert [name for name in dir(shell) if "remove" in name and "stream" in name] == []


@pytest.mark.parametrize("shell", [Admin, AsyncAdmin])
def test_h19_the_names_are_plural(shell: type[Any]) -> None:
    assert {name for name in dir(shell) if "streams" in name} == {
        "alter_streams_group_offsets",
        "delete_streams_group_offsets",
        "delete_streams_groups",
        "describe_streams_groups",
        "list_streams_group_offsets",
    }
