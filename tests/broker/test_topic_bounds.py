"""Every request that creates topics respects the limits, permissions and quotas of CreateTopics."""

from __future__ import annotations

import pytest

from kafka_msgs import (
    AlterClientQuotasRequest,
    MetadataRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from kafka_msgs.broker.faults import MoveGroupCoordinator
from kafka_msgs.messages.alter_client_quotas_request import EntityData, EntryData, OpData
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.streams_group_heartbeat_request import Subtopology, TopicInfo, Topology
from tests.support.virtual_brokers import VirtualCluster

BOUND = 10_000
TOO_MANY = "Excessively large number of partitions per request."


def heartbeat(cluster: VirtualCluster, *counts: int, group: str = "app") -> StreamsGroupHeartbeatResponse:
    """Join a streams group that needs repartition topics with these partition counts."""
    topics = tuple(TopicInfo(name=f"{group}-{n}-repartition", partitions=each) for n, each in enumerate(counts))
    topology = Topology(
        epoch=0,
        subtopologies=(
            Subtopology(
                subtopology_id="0",
                source_topics=("orders",),
                repartition_sink_topics=tuple(each.name for each in topics),
            ),
            Subtopology(subtopology_id="1", repartition_source_topics=topics),
        ),
    )
    request = StreamsGroupHeartbeatRequest(
        group_id=group,
        member_id=f"{group}-member",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        topology=topology,
        active_tasks=(),
        standby_tasks=(),
        warmup_tasks=(),
        process_id="p",
        client_tags=(),
    )
    return cluster.call(request, 0)


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster.start()
    cluster.create("orders")
    MoveGroupCoordinator("app", 0).apply(cluster.cluster)
    return cluster


def partitions(cluster: VirtualCluster) -> int:
    return sum(len(topic.partitions) for name, topic in cluster.cluster.image.topics.items() if name[:2] != "__")


@pytest.mark.parametrize("counts", [(20_000,), (2**31 - 1,), (BOUND // 2, BOUND // 2 + 1)])
def test_a_streams_group_gets_no_more_partitions_than_a_request_may_create(
    cluster: VirtualCluster, counts: tuple[int, ...]
) -> None:
    answer = heartbeat(cluster, *counts)
    assert partitions(cluster) == 1
    assert [TOO_MANY in each.status_detail for each in answer.status or ()] == [True]


def test_a_streams_group_keeps_to_the_quota_of_its_client(cluster: VirtualCluster) -> None:
    limit(cluster, 2)
    heartbeat(cluster, 30)
    assert partitions(cluster) == 31
    answer = heartbeat(cluster, 5, group="other")
    assert partitions(cluster) == 31
    assert ["Creation failed" in each.status_detail for each in answer.status or ()] == [True]
    assert answer.throttle_time_ms == 0


def test_a_metadata_request_creates_no_more_partitions_than_create_topics(cluster: VirtualCluster) -> None:
    names = tuple(MetadataRequestTopic(name=f"t-{number}") for number in range(BOUND + 1))
    cluster.call(MetadataRequest(topics=names, allow_auto_topic_creation=True), 9)
    assert partitions(cluster) == 1


def test_a_metadata_request_keeps_to_the_quota_of_its_client(cluster: VirtualCluster) -> None:
    limit(cluster, 2)
    names = tuple(MetadataRequestTopic(name=f"t-{number}") for number in range(100))
    answer = cluster.call(MetadataRequest(topics=names, allow_auto_topic_creation=True), 9)
    assert {each.error_code for each in answer.topics} == {3}
    assert answer.throttle_time_ms == 0
    assert 1 < partitions(cluster) < 30


def limit(cluster: VirtualCluster, rate: float) -> None:
    entry = EntryData(
        entity=(EntityData(entity_type="client-id", entity_name="test"),),
        ops=(OpData(key="controller_mutation_rate", value=rate, remove=False),),
    )
    answer = cluster.call(AlterClientQuotasRequest(entries=(entry,), validate_only=False), 1)
    assert answer.entries[0].error_code == 0
