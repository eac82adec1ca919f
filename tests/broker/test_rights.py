"""Error codes for clients with limited permissions, as in Kafka."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from kafka_msgs import (
    DeleteTopicsRequest,
    DescribeProducersRequest,
    DescribeTopicPartitionsRequest,
    ErrorCode,
    OffsetForLeaderEpochRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
)
from kafka_msgs.broker.faults import MoveGroupCoordinator
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.groups.page import KIP_1071_PAGE
from kafka_msgs.groups.profiles import SHIPPED, Profile
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from kafka_msgs.messages.describe_producers_request import TopicRequest as ProducersTopic
from kafka_msgs.messages.describe_topic_partitions_request import TopicRequest
from kafka_msgs.messages.offset_for_leader_epoch_request import OffsetForLeaderPartition, OffsetForLeaderTopic
from kafka_msgs.messages.streams_group_heartbeat_request import Subtopology, TopicInfo, Topology
from tests.support.virtual_brokers import VirtualCluster

TOPIC, CLUSTER, GROUP = ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.GROUP
READ = AclOperation.READ
DESCRIBE, DELETE, CLUSTER_ACTION = AclOperation.DESCRIBE, AclOperation.DELETE, AclOperation.CLUSTER_ACTION
UNSET = -(2**31)


def allowing(*rights: tuple[AclOperation, ResourceType], **settings: Any) -> VirtualCluster:
    cluster = VirtualCluster.start(**settings)
    cluster.create("t")
    cluster.cluster.authorizer = lambda session, operation, kind, name: (operation, kind) in rights
    return cluster


@pytest.mark.parametrize(
    ("rights", "error", "named"),
    [
        ((), ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
        (((DESCRIBE, TOPIC),), ErrorCode.TOPIC_AUTHORIZATION_FAILED, True),
        (((DESCRIBE, TOPIC), (DELETE, TOPIC)), ErrorCode.NONE, True),
        (((DELETE, CLUSTER),), ErrorCode.NONE, True),
    ],
)
def test_a_deletion_by_id_tells_the_name_to_those_who_may_know_it(rights: Any, error: ErrorCode, named: bool) -> None:
    cluster = allowing(*rights)
    topic_id = cluster.topic_id("t")
    (answer,) = cluster.call(DeleteTopicsRequest(topics=(DeleteTopicState(name=None, topic_id=topic_id),)), 6).responses
    assert (answer.error_code, answer.topic_id, answer.name) == (error, topic_id, "t" if named else None)


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        (DeleteTopicState(name="missing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (DeleteTopicState(name=None, topic_id=UUID(int=5)), ErrorCode.UNKNOWN_TOPIC_ID),
        (DeleteTopicState(name="t"), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_a_deletion_with_the_right_to_describe_alone(wanted: DeleteTopicState, error: ErrorCode) -> None:
    cluster = allowing((DESCRIBE, TOPIC))
    assert cluster.call(DeleteTopicsRequest(topics=(wanted,)), 6).responses[0].error_code == error


@pytest.mark.parametrize(("rights", "operations"), [((), UNSET), (((DESCRIBE, TOPIC),), 1 << DESCRIBE)])
def test_the_rights_on_a_hidden_topic_are_not_shown(rights: Any, operations: int) -> None:
    cluster = allowing(*rights)
    request = DescribeTopicPartitionsRequest(topics=(TopicRequest(name="t"),))
    assert cluster.call(request, 0).topics[0].topic_authorized_operations == operations


@pytest.mark.parametrize(
    ("rights", "error"),
    [
        ((), ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (((DESCRIBE, TOPIC),), ErrorCode.NONE),
        (((CLUSTER_ACTION, CLUSTER),), ErrorCode.NONE),
    ],
)
def test_brokers_and_those_who_may_describe_get_the_end_of_an_epoch(rights: Any, error: ErrorCode) -> None:
    cluster = allowing(*rights)
    partition = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(topics=(OffsetForLeaderTopic(topic="t", partitions=(partition,)),))
    assert cluster.call(request, 4).topics[0].partitions[0].error_code == error


def streams_heartbeat(member_id: str = "m", changelog: str | None = None) -> StreamsGroupHeartbeatRequest:
    """Return the first heartbeat of a member, whose topology may need a changelog topic."""
    changelogs = () if changelog is None else (TopicInfo(name=changelog),)
    subtopology = Subtopology(subtopology_id="0", source_topics=("t",), state_changelog_topics=changelogs)
    return StreamsGroupHeartbeatRequest(
        group_id="app",
        member_id=member_id,
        member_epoch=0,
        rebalance_timeout_ms=1000,
        topology=Topology(epoch=0, subtopologies=(subtopology,)),
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="p",
        client_tags=(),
    )


@pytest.mark.parametrize(
    ("profile", "operation", "error"),
    [
        (SHIPPED, DESCRIBE, ErrorCode.NONE),
        (KIP_1071_PAGE, DESCRIBE, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (KIP_1071_PAGE, AclOperation.DESCRIBE_CONFIGS, ErrorCode.NONE),
    ],
)
def test_the_page_profile_has_its_own_rights_for_topics(
    profile: Profile, operation: AclOperation, error: ErrorCode
) -> None:
    rights = ((READ, GROUP), (operation, TOPIC), (AclOperation.CREATE, CLUSTER))
    cluster = allowing(*rights, profile=profile)
    MoveGroupCoordinator("app", 0).apply(cluster.cluster)
    assert cluster.call(streams_heartbeat(), 0).error_code == error


@pytest.mark.parametrize("hidden", ["t", "c"])
@pytest.mark.parametrize(("profile", "needed"), [(SHIPPED, DESCRIBE), (KIP_1071_PAGE, AclOperation.DESCRIBE_CONFIGS)])
def test_e23_g16_7_topics_need_permissions(profile: Profile, needed: AclOperation, hidden: str) -> None:
    """All topics of the topology do: source topics and changelogs."""
    cluster = allowing(profile=profile)
    cluster.cluster.authorizer = lambda session, operation, kind, name: (operation, name) != (needed, hidden)
    MoveGroupCoordinator("app", 0).apply(cluster.cluster)
    assert cluster.call(streams_heartbeat(changelog="c"), 0).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE])
def test_e23_y33_g16_6_a_group_needs_the_permission_to_read_it(profile: Profile) -> None:
    rights = [(READ, GROUP), (DESCRIBE, GROUP), (DESCRIBE, TOPIC), (AclOperation.DESCRIBE_CONFIGS, TOPIC)]
    cluster = allowing(profile=profile)
    cluster.cluster.authorizer = lambda session, operation, kind, name: (operation, kind) in rights
    MoveGroupCoordinator("app", 0).apply(cluster.cluster)
    assert cluster.call(streams_heartbeat(), 0).error_code == ErrorCode.NONE
    needed = READ if profile is KIP_1071_PAGE else DESCRIBE
    rights.remove((needed, GROUP))
    answer = cluster.call(StreamsGroupDescribeRequest(group_ids=("app",)), 0)
    assert answer.groups[0].error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    rights[:] = [each for each in rights if each != (READ, GROUP)]
    assert cluster.call(streams_heartbeat("other"), 0).error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED


@pytest.mark.parametrize(
    ("created", "rights"),
    [(False, ()), (True, ((AclOperation.CREATE, CLUSTER),)), (True, ((AclOperation.CREATE, TOPIC),))],
)
@pytest.mark.parametrize("profile", [SHIPPED, KIP_1071_PAGE])
def test_e23_g6_11_g16_7_topics_are_not_created_without_the_permission(
    created: bool, rights: tuple[tuple[AclOperation, ResourceType], ...], profile: Profile
) -> None:
    """The status names the missing permission."""
    seen = ((READ, GROUP), (DESCRIBE, TOPIC), (AclOperation.DESCRIBE_CONFIGS, TOPIC))
    cluster = allowing(*seen, *rights, profile=profile)
    MoveGroupCoordinator("app", 0).apply(cluster.cluster)
    response = cluster.call(streams_heartbeat(changelog="c"), 0)
    assert response.error_code == ErrorCode.NONE
    assert ("c" in cluster.cluster.image.topics) == created
    assert any("Unauthorized" in each.status_detail for each in response.status or ()) != created


def test_followers_describe_producers() -> None:
    cluster = VirtualCluster.start(brokers=3)
    cluster.create("t", replication_factor=2)
    replicas = cluster.cluster.image.topics["t"].partitions[0].replicas
    request = DescribeProducersRequest(topics=(ProducersTopic(name="t", partition_indexes=(0,)),))
    errors = {each: cluster.call(request, 0, broker=each).topics[0].partitions[0].error_code for each in range(3)}
    assert errors == {
        each: ErrorCode.NONE if each in replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER for each in range(3)
    }
