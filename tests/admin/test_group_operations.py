"""Listing, describing and deleting groups while some groups or brokers fail. The brokers are in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_msgs.admin import (
    GroupDescription,
    GroupState,
    GroupType,
    MemberToRemove,
    StreamsGroupDescription,
)
from kafka_msgs.admin.groups import describe_consumer_groups, describe_groups, list_groups, remove_group_members
from kafka_msgs.api_keys import ApiKey
from kafka_msgs.client import TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError
from kafka_msgs.message import Request, Response
from kafka_msgs.messages import consumer_group_describe_response as consumer
from kafka_msgs.messages import describe_groups_response as classic
from kafka_msgs.messages import leave_group_response as leave
from kafka_msgs.messages import share_group_describe_response as share
from kafka_msgs.messages import streams_group_describe_response as streams
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_msgs.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_msgs.messages.consumer_protocol_assignment import TopicPartition as Assigned
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.describe_groups_request import DescribeGroupsRequest
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest
from kafka_msgs.messages.list_groups_request import ListGroupsRequest
from kafka_msgs.messages.list_groups_response import ListedGroup, ListGroupsResponse
from kafka_msgs.messages.share_group_describe_request import ShareGroupDescribeRequest
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_msgs.versioned import encode_versioned
from tests.support.simulated_cluster import SimulatedCluster

Answers = dict[type[Request[Any]], Callable[[int, Any], Response]]


T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


LISTED = {
    1: (ListedGroup(group_id="classic", protocol_type="consumer", group_state="Stable", group_type="classic"),),
    2: (
        ListedGroup(group_id="new", protocol_type="consumer", group_state="Stable", group_type="consumer"),
        ListedGroup(group_id="app", protocol_type="streams", group_state="Empty", group_type="streams"),
    ),
    3: (ListedGroup(group_id="queue", protocol_type="share", group_state="Empty", group_type="share"),),
}


def listing(node: int, request: ListGroupsRequest) -> ListGroupsResponse:
    return ListGroupsResponse(groups=LISTED[node])


def test_groups_are_listed_at_every_broker() -> None:
    cluster = SimulatedCluster({ListGroupsRequest: listing})
    groups = cluster.network.run(list_groups(cluster.core))
    assert [(each.group_id, each.type) for each in groups] == [
        ("classic", GroupType.CLASSIC),
        ("new", GroupType.CONSUMER),
        ("app", GroupType.STREAMS),
        ("queue", GroupType.SHARE),
    ]


def test_a_broker_that_is_gone_is_missing_from_the_list_and_named() -> None:
    cluster = SimulatedCluster({ListGroupsRequest: listing})
    cluster.network.stop(cluster.brokers[2])
    groups = cluster.network.run(list_groups(cluster.core, timeout=2.0))
    assert [each.group_id for each in groups.items] == ["classic", "queue"]
    assert list(groups.errors) == [2]
    with pytest.raises(Exception, match="broker-2"):
        groups.all()


MEMBER = classic.DescribedGroupMember(
    member_id="m",
    client_id="c",
    client_host="/127.0.0.1",
    member_metadata=encode_versioned(ConsumerProtocolSubscription(topics=("t",)), 1),
    member_assignment=encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=(Assigned(topic="t", partitions=(0, 2)),)), 1
    ),
)


def classic_answer(node: int, request: DescribeGroupsRequest) -> classic.DescribeGroupsResponse:
    return classic.DescribeGroupsResponse(
        groups=tuple(
            classic.DescribedGroup(
                group_id=each,
                group_state="Stable",
                protocol_type="consumer",
                protocol_data="range",
                members=(MEMBER,),
                error_code=69 if each == "missing" else 0,
            )
            for each in request.groups
        )
    )


def consumer_answer(node: int, request: ConsumerGroupDescribeRequest) -> consumer.ConsumerGroupDescribeResponse:
    topics = (consumer.TopicPartitions(topic_name="t", partitions=(1,)),)
    member = consumer.Member(
        member_id="m", member_epoch=3, assignment=consumer.Assignment(topic_partitions=topics), member_type=1
    )
    return consumer.ConsumerGroupDescribeResponse(
        groups=tuple(
            consumer.DescribedGroup(group_id=each, group_state="Stable", group_epoch=3, members=(member,))
            if each == "new"
            else consumer.DescribedGroup(group_id=each, error_code=69)
            for each in request.group_ids
        )
    )


DESCRIBE: Answers = {
    ListGroupsRequest: listing,
    DescribeGroupsRequest: classic_answer,
    ConsumerGroupDescribeRequest: consumer_answer,
    ShareGroupDescribeRequest: lambda node, request: share.ShareGroupDescribeResponse(
        groups=tuple(share.DescribedGroup(group_id=each, group_state="Empty") for each in request.group_ids)
    ),
    StreamsGroupDescribeRequest: lambda node, request: streams.StreamsGroupDescribeResponse(
        groups=tuple(streams.DescribedGroup(group_id=each, group_state="Empty") for each in request.group_ids)
    ),
}


def test_groups_of_any_type_are_described_each_by_its_own_api() -> None:
    cluster = SimulatedCluster(DESCRIBE)
    groups = cluster.network.run(describe_groups(cluster.core, ["classic", "new", "app", "queue", "missing"]))
    assert isinstance(groups["app"], StreamsGroupDescription)
    assert {name: each.type for name, each in groups.ok.items() if isinstance(each, GroupDescription)} == {
        "classic": GroupType.CLASSIC,
        "new": GroupType.CONSUMER,
        "queue": GroupType.SHARE,
    }
    assert list(groups.errors) == ["missing"]
    assert [request.groups for _, request in cluster.asked(DescribeGroupsRequest)] == [("classic", "missing")]
    assert [request.group_ids for _, request in cluster.asked(ConsumerGroupDescribeRequest)] == [("new",)]


def test_consumers_of_both_protocols_have_one_description() -> None:
    cluster = SimulatedCluster(DESCRIBE)
    groups = cluster.network.run(describe_consumer_groups(cluster.core, ["new", "classic"])).all()
    new, old = groups["new"], groups["classic"]
    assert (new.type, new.epoch, new.members[0].assignment, new.members[0].classic) == (
        GroupType.CONSUMER,
        3,
        (T1,),
        False,
    )
    assert (old.type, old.epoch, old.members[0].assignment, old.members[0].classic) == (
        GroupType.CLASSIC,
        None,
        (T0, T2),
        True,
    )
    assert (old.assignor, old.state, old.members[0].subscribed_topics) == ("range", GroupState.STABLE, ("t",))


def test_a_broker_without_consumer_groups_is_asked_for_classic_ones() -> None:
    cluster = SimulatedCluster(DESCRIBE, limits={69: None})
    groups = cluster.network.run(describe_consumer_groups(cluster.core, ["classic"]))
    assert groups["classic"].type is GroupType.CLASSIC
    assert cluster.apis() == ["FindCoordinator", "DescribeGroups"]


def test_a_malformed_member_is_described_with_its_fault() -> None:
    def answer(node: int, request: DescribeGroupsRequest) -> classic.DescribeGroupsResponse:
        member = classic.DescribedGroupMember(member_id="m", member_metadata=b"\x00\x01\x00", member_assignment=b"")
        group = classic.DescribedGroup(group_id="classic", protocol_type="consumer", members=(member,))
        return classic.DescribeGroupsResponse(groups=(group,))

    cluster = SimulatedCluster({**DESCRIBE, DescribeGroupsRequest: answer})
    (member,) = cluster.network.run(describe_groups(cluster.core, ["classic"]))["classic"].members
    assert getattr(member, "problem", None)


def test_all_members_of_a_group_are_removed_static_ones_by_their_instance() -> None:
    def answer(node: int, request: DescribeGroupsRequest) -> classic.DescribeGroupsResponse:
        members = (
            classic.DescribedGroupMember(member_id="m-1", group_instance_id="static"),
            classic.DescribedGroupMember(member_id="m-2"),
        )
        return classic.DescribeGroupsResponse(groups=(classic.DescribedGroup(group_id="g", members=members),))

    def left(node: int, request: LeaveGroupRequest) -> leave.LeaveGroupResponse:
        codes = (0, ErrorCode.UNKNOWN_MEMBER_ID)
        return leave.LeaveGroupResponse(members=tuple(leave.MemberResponse(error_code=each) for each in codes))

    cluster = SimulatedCluster({DescribeGroupsRequest: answer, LeaveGroupRequest: left})
    results = cluster.network.run(remove_group_members(cluster.core, "g", reason="maintenance"))
    ((_, request),) = cluster.asked(LeaveGroupRequest)
    assert [(each.member_id, each.group_instance_id, each.reason) for each in request.members] == [
        ("", "static", "maintenance"),
        ("m-2", None, "maintenance"),
    ]
    assert list(results.ok) == [MemberToRemove(instance_id="static")]
    assert list(results.errors) == [MemberToRemove("m-2")]


def test_a_filter_that_brokers_do_not_know_is_never_dropped() -> None:
    cluster = SimulatedCluster({ListGroupsRequest: listing}, limits={ApiKey.LIST_GROUPS: (0, 3)})
    groups = cluster.network.run(list_groups(cluster.core, states=[GroupState.EMPTY]))
    assert groups.items == ()
    assert groups.errors.keys() == {1, 2, 3}
    assert cluster.asked(ListGroupsRequest) == []


def test_a_group_whose_type_could_not_be_found_out_is_not_said_to_be_missing() -> None:
    def partly(node: int, request: ListGroupsRequest) -> ListGroupsResponse:
        return (
            listing(node, request)
            if node == 1
            else ListGroupsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        )

    cluster = SimulatedCluster({**DESCRIBE, ListGroupsRequest: partly})
    groups = cluster.network.run(describe_groups(cluster.core, ["classic", "queue"]))
    assert list(groups.ok) == ["classic"]
    with pytest.raises(BrokerError, match="CLUSTER_AUTHORIZATION_FAILED"):
        _ = groups["queue"]
