"""Brokers that stop, crash and restart, and leaders that move: the metadata image, and the clients' view."""

from __future__ import annotations

import socket

import pytest

from kafka_msgs import FindCoordinatorRequest, MetadataRequest
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.controller.image import PartitionRegistration
from kafka_msgs.broker.faults import MoveController, MoveLeader
from kafka_msgs.broker.faults.cluster_changes import move_coordinator
from kafka_msgs.errors import OptionError
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from tests.support.virtual_brokers import VirtualCluster, batch


def state(cluster: VirtualCluster, partition: int = 0) -> PartitionRegistration:
    return cluster.cluster.image.topics["t"].partitions[partition]


def test_a_stopped_leader_gives_its_partitions_away_and_comes_back_in_sync() -> None:
    cluster = VirtualCluster.start(brokers=3)
    cluster.create("t", partitions=3, replication_factor=3)
    before = state(cluster)
    cluster.cluster.stop_broker(before.leader)
    after = state(cluster)
    assert (after.leader, after.leader_epoch) == (before.replicas[1], before.leader_epoch + 1)
    assert (set(after.isr), after.partition_epoch) == (set(before.isr) - {before.leader}, before.partition_epoch + 1)
    cluster.cluster.start_broker(before.leader)
    assert set(state(cluster).isr) == set(before.replicas)
    assert state(cluster).leader == after.leader
    assert cluster.cluster.image.brokers[before.leader].epoch > 0


def test_a_partition_without_replicas_that_run_has_no_leader_until_one_is_back() -> None:
    cluster = VirtualCluster.start(brokers=2)
    cluster.create("t")
    leader = state(cluster).leader
    cluster.produce("t", 0, batch(b"a"), broker=leader)
    cluster.cluster.kill_broker(leader)
    assert (state(cluster).leader, state(cluster).isr, state(cluster).eligible_leader_replicas) == (-1, (), (leader,))
    topics = (MetadataRequestTopic(name="t"),)
    answer = cluster.call(MetadataRequest(topics=topics), 13, broker=1 - leader)
    assert [broker.node_id for broker in answer.brokers] == [1 - leader]
    assert answer.topics[0].partitions[0].leader_id == -1
    assert answer.topics[0].partitions[0].offline_replicas == (leader,)
    cluster.cluster.start_broker(leader)
    assert (state(cluster).leader, state(cluster).isr, state(cluster).leader_epoch) == (leader, (leader,), 2)
    log = cluster.cluster.log_manager.get((cluster.topic_id("t"), 0))
    assert log is not None
    assert log.log_end_offset == 1


def test_too_few_replicas_in_sync_refuse_writes_and_become_eligible_leaders() -> None:
    cluster = VirtualCluster.start(brokers=3)
    cluster.create("t", replication_factor=3, min_insync_replicas="2")
    first, second, third = state(cluster).replicas
    cluster.cluster.kill_broker(first)
    cluster.cluster.kill_broker(second)
    assert (state(cluster).leader, state(cluster).isr, state(cluster).eligible_leader_replicas) == (
        third,
        (third,),
        (second,),
    )
    answer = cluster.produce("t", 0, batch(b"a"), broker=third).answer
    assert answer is not None
    part = answer.responses[0].partition_responses[0]  # type: ignore[attr-defined]
    assert part.error_code == 19


def test_a_leader_moves_to_a_replica_and_to_any_broker() -> None:
    cluster = VirtualCluster.start(brokers=3)
    cluster.create("t", replication_factor=2)
    first, second = state(cluster).replicas
    MoveLeader("t", 0, second).apply(cluster.cluster)
    assert (state(cluster).leader, state(cluster).leader_epoch) == (second, 1)
    (third,) = {0, 1, 2} - {first, second}
    MoveLeader("t", 0, third).apply(cluster.cluster)
    assert (state(cluster).leader, state(cluster).replicas) == (third, (third, second))
    cluster.cluster.kill_broker(first)
    for wrong in (("t", 9, second), ("t", 0, first), ("t", 0, 7)):
        with pytest.raises(OptionError):
            MoveLeader(*wrong).apply(cluster.cluster)


def test_the_controller_moves_and_outlives_its_broker() -> None:
    cluster = VirtualCluster.start(brokers=2)
    MoveController(1).apply(cluster.cluster)
    assert cluster.call(MetadataRequest(topics=()), 13).controller_id == 1
    cluster.cluster.kill_broker(1)
    assert cluster.call(MetadataRequest(topics=()), 13).controller_id == 0


@pytest.mark.parametrize(("kind", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
def test_coordinators_move_to_a_broker(kind: int, topic: str) -> None:
    cluster = VirtualCluster.start(brokers=3)
    for broker in (2, 1):
        move_coordinator(cluster.cluster, topic, "key", broker)
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=("key",))
        assert cluster.call(request, 6).coordinators[0].node_id == broker


def test_connections_of_a_killed_broker_are_reset_and_its_port_is_the_same_again() -> None:
    with EmbeddedBroker(brokers=2) as broker:
        host, _, port = broker.bootstrap_servers.split(",")[1].rpartition(":")
        address = host, int(port)
        with socket.create_connection(address, timeout=10) as connection:
            broker.kill_broker(1)
            with pytest.raises(ConnectionResetError):
                connection.recv(1)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address, timeout=10)
        broker.start_broker(1)
        with Admin(f"{host}:{port}") as admin:
            admin.create_topics([NewTopic("t", 2, 2)])
            broker.stop_broker(0)
            assert {partition.leader_id for partition in admin.list_topics()["t"].partitions} == {1}
        assert broker.problems == []
