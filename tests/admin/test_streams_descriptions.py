"""Listings and descriptions of streams groups (KIP-1071). The numbers in test names are requirement numbers.

The brokers are in memory, and the tests check every request.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from kafka_msgs.admin import (
    AclOperation,
    GroupState,
    GroupType,
    StreamsGroupDescription,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    TopicInfo,
)
from kafka_msgs.admin.groups import list_groups
from kafka_msgs.admin.streams_groups import describe_streams_groups
from kafka_msgs.errors import BrokerError
from kafka_msgs.messages import streams_group_describe_response as described
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from tests.support.simulated_cluster import SimulatedCluster

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


def test_h12_the_description_of_a_group() -> None:
    _, result = describe("app")
    group: StreamsGroupDescription = result["app"]
    assert (group.group_id, group.group_epoch, group.target_assignment_epoch, group.topology_epoch) == ("app", 7, 6, 2)
    assert group.group_state is GroupState.STABLE
    assert group.coordinator is not None
    assert (group.coordinator.id, group.coordinator.address.host) == (2, "broker-2")
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
