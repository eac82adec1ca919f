"""Administration of streams groups (KIP-1071). The names of tests give the numbers of requirements.

The first half runs on brokers in memory, and sees every request. The second half runs on a real cluster: with a member
that this library plays, and with an application of Kafka Streams.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from kafka_msgs.admin import (
    AclOperation,
    Admin,
    AsyncAdmin,
    GroupState,
    GroupType,
    StreamsGroupDescription,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    TopicInfo,
)
from kafka_msgs.admin.group_offsets import alter_group_offsets, delete_topic_offsets, list_offsets_of_groups
from kafka_msgs.admin.groups import delete_groups, list_groups
from kafka_msgs.admin.streams_groups import describe_streams_groups
from kafka_msgs.client import TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError
from kafka_msgs.messages import offset_commit_response as committed
from kafka_msgs.messages import offset_delete_response as deleted
from kafka_msgs.messages import offset_fetch_response as fetched
from kafka_msgs.messages import streams_group_describe_response as described
from kafka_msgs.messages.delete_groups_request import DeleteGroupsRequest
from kafka_msgs.messages.delete_groups_response import DeletableGroupResult, DeleteGroupsResponse
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest
from kafka_msgs.messages.offset_delete_request import OffsetDeleteRequest
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
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
    """Return a cluster with two topics, and a group that also has an offset of a topic which is gone."""
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


MEMBER = described.Member(
    member_id="m-1",
    member_epoch=4,
    instance_id="static-1",
    rack_id="rack-1",
    client_id="app-client",
    client_host="/127.0.0.1",
    topology_epoch=2,
    process_id="process-1",
    user_endpoint=described.Endpoint(host="localhost", port=8080),
    client_tags=(described.KeyValue(key="zone", value="eu"),),
    task_offsets=(described.TaskOffset(subtopology_id="0", partition=1, offset=10),),
    task_end_offsets=(described.TaskOffset(subtopology_id="0", partition=1, offset=12),),
    assignment=described.Assignment(active_tasks=(described.TaskIds(subtopology_id="0", partitions=(0, 1)),)),
    target_assignment=described.Assignment(standby_tasks=(described.TaskIds(subtopology_id="1", partitions=(2,)),)),
    is_classic=True,
)
SUBTOPOLOGY = described.Subtopology(
    subtopology_id="0",
    source_topics=("orders",),
    repartition_sink_topics=("by-item",),
    state_changelog_topics=(
        described.TopicInfo(
            name="totals-changelog",
            partitions=3,
            replication_factor=2,
            topic_configs=(described.KeyValue(key="cleanup.policy", value="compact"),),
        ),
    ),
    repartition_source_topics=(described.TopicInfo(name="by-item", partitions=3),),
)


def describe_answer(node: int, request: StreamsGroupDescribeRequest) -> described.StreamsGroupDescribeResponse:
    bits = 1 << 3 | 1 << 8 if request.include_authorized_operations else -(2**31)
    group = described.DescribedGroup(
        group_state="Stable",
        group_epoch=7,
        assignment_epoch=6,
        topology=described.Topology(epoch=2, subtopologies=(SUBTOPOLOGY,)),
        members=(MEMBER,),
        authorized_operations=bits,
    )
    changes: dict[str, dict[str, Any]] = {
        "missing": {"error_code": 69, "topology": None, "members": ()},
        "future": {"group_state": "Foo", "topology": None},
        "uninitialised": {"topology": described.Topology(epoch=1, subtopologies=None)},
    }
    return described.StreamsGroupDescribeResponse(
        groups=tuple(
            described.DescribedGroup(**{**fields_of(group), "group_id": each, **changes.get(each, {})})
            for each in request.group_ids
        )
    )


def fields_of(group: described.DescribedGroup) -> dict[str, Any]:
    names = ("group_state", "group_epoch", "assignment_epoch", "topology", "members", "authorized_operations")
    return {name: getattr(group, name) for name in names}


def describe(*groups: str, **options: bool) -> tuple[SimulatedCluster, Any]:
    cluster = SimulatedCluster({StreamsGroupDescribeRequest: describe_answer}, coordinators={"app": 2})
    return cluster, cluster.network.run(describe_streams_groups(cluster.core, groups, **options))


@pytest.mark.parametrize("asked", [False, True])
def test_h4_authorized_operations_are_asked_for(asked: bool) -> None:
    cluster, result = describe("app", include_authorized_operations=asked)
    ((_, request),) = cluster.asked(StreamsGroupDescribeRequest)
    assert request.include_authorized_operations is asked
    expected = frozenset({AclOperation.READ, AclOperation.DESCRIBE}) if asked else None
    assert result["app"].authorized_operations == expected


def test_h5_offsets_are_listed_by_offset_fetch_and_unset_means_all() -> None:
    cluster = SimulatedCluster({OffsetFetchRequest: fetch_answer({"app": {T0: 1}, "two": {U0: 2}})})
    cluster.network.run(list_offsets_of_groups(cluster.core, {"app": None, "two": [U0]})).all()
    ((_, request),) = cluster.asked(OffsetFetchRequest)
    assert [each.topics and each.topics[0].name for each in request.groups] == [None, "u"]


def test_h6_defaults_are_the_same_as_options_that_say_so() -> None:
    plain, explicit = describe("app"), describe("app", include_authorized_operations=False)
    assert [request for _, request in plain[0].requests] == [request for _, request in explicit[0].requests]


def test_h10_descriptions_are_by_group_and_one_may_fail() -> None:
    _, result = describe("app", "missing")
    assert result["app"].group_id == "app"
    assert set(result) == {"app", "missing"}
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        result.all()
    assert describe("app")[1].all().keys() == {"app"}


def test_h11_offsets_are_by_group_and_partition_and_one_group_may_fail() -> None:
    stored = {"app": {T0: 1, U0: 3}, "two": {U0: 2}}
    cluster = SimulatedCluster({OffsetFetchRequest: fetch_answer(stored, {"two": 30})})
    result = cluster.network.run(list_offsets_of_groups(cluster.core, dict.fromkeys(stored)))
    assert {partition: each.offset for partition, each in result["app"].items()} == stored["app"]
    for fails in (lambda: result["two"], result.all):
        with pytest.raises(BrokerError, match="GROUP_AUTHORIZATION_FAILED"):
            fails()


def test_h12_the_description_of_a_group() -> None:
    _, result = describe("app")
    group: StreamsGroupDescription = result["app"]
    assert (group.group_id, group.group_epoch, group.target_assignment_epoch, group.topology_epoch) == ("app", 7, 6, 2)
    assert group.group_state is GroupState.STABLE
    assert group.coordinator is not None
    assert (group.coordinator.node, group.coordinator.address.host) == (2, "broker-2")
    assert (len(group.members), len(group.subtopologies)) == (1, 1)


def test_h12_an_unknown_state_and_no_topology() -> None:
    _, result = describe("future", "uninitialised")
    assert result["future"].group_state is GroupState.UNKNOWN
    assert (result["future"].topology_epoch, result["future"].subtopologies) == (-1, ())
    assert (result["uninitialised"].topology_epoch, result["uninitialised"].subtopologies) == (1, ())


def test_h13_the_description_of_a_member() -> None:
    _, result = describe("app")
    (member,) = result["app"].members
    assert member == StreamsGroupMemberDescription(
        member_id="m-1",
        member_epoch=4,
        instance_id="static-1",
        rack_id="rack-1",
        client_id="app-client",
        client_host="/127.0.0.1",
        topology_epoch=2,
        process_id="process-1",
        user_endpoint=described.Endpoint(host="localhost", port=8080),
        client_tags={"zone": "eu"},
        task_offsets=MEMBER.task_offsets,
        task_end_offsets=MEMBER.task_end_offsets,
        assignment=MEMBER.assignment,
        target_assignment=MEMBER.target_assignment,
        is_classic=True,
    )
    assert len(inspect.signature(StreamsGroupMemberDescription).parameters) == 15


def test_h14_the_nested_types() -> None:
    def arguments(cls: type[Any]) -> list[str]:
        return [name for name in inspect.signature(cls).parameters if name != "unknown_tagged_fields"]

    assert arguments(described.TaskOffset) == ["subtopology_id", "partition", "offset"]
    assert arguments(described.TaskIds) == ["subtopology_id", "partitions"]
    assert arguments(described.Assignment) == ["active_tasks", "standby_tasks", "warmup_tasks"]
    assert arguments(TopicInfo) == ["partitions", "topic_configs"]


def test_h15_the_description_of_a_subtopology() -> None:
    _, result = describe("app")
    assert result["app"].subtopologies == (
        StreamsGroupSubtopologyDescription(
            subtopology_id="0",
            source_topics=("orders",),
            repartition_sink_topics=("by-item",),
            state_changelog_topics={
                "totals-changelog": TopicInfo(partitions=3, topic_configs={"cleanup.policy": "compact"})
            },
            repartition_source_topics={"by-item": TopicInfo(partitions=3, topic_configs={})},
        ),
    )


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


def test_h17_the_type_of_a_group() -> None:
    assert str(GroupType.STREAMS) == "Streams"
    assert GroupType.parse("STREAMS") is GroupType.parse("streams") is GroupType.STREAMS
    assert GroupType.parse("of the future") is GroupType.UNKNOWN


@pytest.mark.parametrize("text", ["NotReady", "Not Ready", "NOT_READY", "not-ready"])
def test_h18_the_state_of_a_group_that_is_not_ready(text: str) -> None:
    assert GroupState.parse(text) is GroupState.NOT_READY
    assert str(GroupState.NOT_READY) == "NotReady"


def test_h18_groups_are_listed_with_their_states() -> None:
    listed = (
        ListedGroup(group_id="app", protocol_type="streams", group_state="NotReady", group_type="streams"),
        ListedGroup(group_id="old", protocol_type="consumer", group_state="PreparingRebalance", group_type="classic"),
    )
    cluster = SimulatedCluster(
        {ListGroupsRequest: lambda node, request: ListGroupsResponse(groups=listed if node == 1 else ())}
    )
    groups = cluster.network.run(list_groups(cluster.core, types=[GroupType.STREAMS], states=[GroupState.NOT_READY]))
    assert [(each.group_id, each.type, each.state) for each in groups] == [
        ("app", GroupType.STREAMS, GroupState.NOT_READY),
        ("old", GroupType.CLASSIC, GroupState.PREPARING_REBALANCE),
    ]
    requests = cluster.asked(ListGroupsRequest)
    assert {node for node, _ in requests} == {1, 2, 3}
    assert all((each.types_filter, each.states_filter) == (("Streams",), ("NotReady",)) for _, each in requests)
