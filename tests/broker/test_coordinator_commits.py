"""Coordinators respond when their records are committed, and fail a partition whose log cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.coordinators.leadership import find_log
from kafka_msgs.broker.faults import MoveGroupCoordinator
from kafka_msgs.broker.faults.cluster_changes import move_coordinator
from kafka_msgs.broker.storage import AppendOrigin
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.message import Request
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.initialize_share_group_state_request import (
    InitializeShareGroupStateRequest,
    InitializeStateData,
    PartitionData,
)
from kafka_msgs.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.virtual_brokers import START, VirtualCluster, batch

GROUP = "workers"
STATE_TOPICS = {
    OffsetCommitRequest: "__consumer_offsets",
    InitProducerIdRequest: "__transaction_state",
    InitializeShareGroupStateRequest: "__share_group_state",
}


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster.start()
    cluster.create("orders")
    return cluster


def request(cluster: VirtualCluster, cls: type[Request[Any]]) -> tuple[Request[Any], int]:
    """Return a request to a coordinator that writes a record, and its version."""
    if cls is InitProducerIdRequest:
        return InitProducerIdRequest(transactional_id=GROUP, transaction_timeout_ms=60_000), 4
    if cls is OffsetCommitRequest:
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
        topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
        return OffsetCommitRequest(group_id=GROUP, topics=(topic,)), 8
    part = PartitionData(partition=0, state_epoch=0, start_offset=0)
    state = InitializeStateData(topic_id=cluster.topic_id("orders"), partitions=(part,))
    return InitializeShareGroupStateRequest(group_id=GROUP, topics=(state,)), 0


def stop_replication(cluster: VirtualCluster, topic: str) -> None:
    """Create an internal topic whose records are not committed from now on."""
    move_coordinator(cluster.cluster, topic, GROUP, 0)
    for log in cluster.cluster.log_manager:
        if log.topic == topic:
            log.cap_high_watermark(log.log_end_offset)


@pytest.mark.parametrize("cls", STATE_TOPICS, ids=lambda cls: cls.__name__)
def test_a_response_waits_until_its_record_is_committed(cluster: VirtualCluster, cls: type[Request[Any]]) -> None:
    stop_replication(cluster, STATE_TOPICS[cls])
    waiting = cluster.ask(*request(cluster, cls))
    assert waiting.answer is None
    for log in cluster.cluster.log_manager:
        log.cap_high_watermark(None)
    cluster.cluster.settle()
    assert waiting.answer is not None
    assert cluster.cluster.errors == []


def test_a_write_that_is_never_committed_fails(cluster: VirtualCluster) -> None:
    stop_replication(cluster, "__consumer_offsets")
    waiting = cluster.ask(*request(cluster, OffsetCommitRequest))
    cluster.advance(5_000)
    answer: Any = waiting.answer
    assert answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_partition_whose_log_cannot_be_read_has_no_coordinator(cluster: VirtualCluster) -> None:
    """Without this, its clients would receive COORDINATOR_LOAD_IN_PROGRESS forever."""
    core = cluster.cluster
    MoveGroupCoordinator(GROUP, 0).apply(core)
    partition = GroupCoordinatorService.of_broker(core, 0).coordinator.partition_for(GROUP)
    log = find_log(core, "__consumer_offsets", partition)
    assert log is not None
    log.append(batch(b"not a record of the topic"), leader_epoch=0, now=START, origin=AppendOrigin.COORDINATOR)
    core.kill_broker(0)
    core.start_broker(0)
    answer: Any = cluster.ask(HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="m"), 4).answer
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
    assert len(core.errors) == 1
