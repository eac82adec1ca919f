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
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.groups.profiles import KIP_1071_PAGE, SHIPPED, Profile
from kafka_msgs.messages.delete_topics_request import DeleteTopicState
from kafka_msgs.messages.describe_producers_request import TopicRequest as ProducersTopic
from kafka_msgs.messages.describe_topic_partitions_request import TopicRequest
from kafka_msgs.messages.offset_for_leader_epoch_request import OffsetForLeaderPartition, OffsetForLeaderTopic
from kafka_msgs.messages.streams_group_heartbeat_request import Subtopology, Topology
from tests.support.virtual_brokers import VirtualCluster

TOPIC, CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
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
    rights = ((AclOperation.READ, ResourceType.GROUP), (operation, TOPIC), (AclOperation.CREATE, CLUSTER))
    cluster = allowing(*rights, profile=profile)
    cluster.cluster.move_coordinator("app", 0)
    topology = Topology(epoch=0, subtopologies=(Subtopology(subtopology_id="0", source_topics=("t",)),))
    request = StreamsGroupHeartbeatRequest(
        group_id="app",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        topology=topology,
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="p",
        client_tags=(),
    )
    assert cluster.call(request, 0).error_code == error


@pytest.mark.parametrize(
    ("profile", "error"),
    [(SHIPPED, ErrorCode.GROUP_ID_NOT_FOUND), (KIP_1071_PAGE, ErrorCode.GROUP_AUTHORIZATION_FAILED)],
)
def test_the_page_profile_has_its_own_rights_for_descriptions(profile: Profile, error: ErrorCode) -> None:
    cluster = allowing((DESCRIBE, ResourceType.GROUP), profile=profile)
    cluster.cluster.move_coordinator("app", 0)
    answer = cluster.call(StreamsGroupDescribeRequest(group_ids=("app",)), 0)
    assert answer.groups[0].error_code == error


def test_followers_describe_producers() -> None:
    cluster = VirtualCluster.start(brokers=3)
    cluster.create("t", replication_factor=2)
    replicas = cluster.cluster.image.topics["t"].partitions[0].replicas
    request = DescribeProducersRequest(topics=(ProducersTopic(name="t", partition_indexes=(0,)),))
    errors = {each: cluster.call(request, 0, broker=each).topics[0].partitions[0].error_code for each in range(3)}
    assert errors == {
        each: ErrorCode.NONE if each in replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER for each in range(3)
    }
