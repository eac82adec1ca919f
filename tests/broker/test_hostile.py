"""Malicious clients: random requests of all APIs with and without permissions, and idle connections."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from random import Random
from typing import Any, Final
from uuid import UUID

import pytest

from kafka_msgs import ErrorCode, MetadataRequest, WriteTxnMarkersRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.faults import MoveGroupCoordinator
from kafka_msgs.broker.share import ShareCoordinator, ShareCoordinatorConfig, SharePartitionKey
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.output import MarkerAppend, RecordAppend
from kafka_msgs.messages.write_txn_markers_request import WritableTxnMarker, WritableTxnMarkerTopic
from tests.support.hostile_requests import hostile_request
from tests.support.raw_client import RawClient
from tests.support.virtual_brokers import VirtualCluster

REQUESTS: Final = 1500
CONNECTIONS: Final = 10_000


def hostile_requests(cluster: VirtualCluster, pick: Random) -> Iterator[tuple[Any, int]]:
    """Yield random requests of all APIs, in all versions that the cluster offers."""
    dispatch = cluster.cluster.dispatch
    offered = {dispatch.handler(key).request: (each.lowest, each.highest) for key, each in dispatch.offered.items()}
    for _ in range(REQUESTS):
        ids = [topic.id for topic in cluster.cluster.image.topics.values()] or [UUID(int=1)]
        yield hostile_request(offered, ids, pick)


@pytest.mark.parametrize("rights", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_random_requests_find_no_fault_of_the_broker(seed: int, rights: float) -> None:
    """``rights`` is the probability that an operation is allowed. Partitions, sessions and problems stay bounded."""
    pick = Random(seed)
    cluster = VirtualCluster.start(brokers=2, seed=seed)
    cluster.create("t", partitions=2)
    MoveGroupCoordinator("g", 0).apply(cluster.cluster)
    if rights < 1:
        cluster.cluster.authorizer = lambda session, operation, kind, name: pick.random() < rights
    for number, (request, version) in enumerate(hostile_requests(cluster, pick)):
        cluster.ask(request, version, broker=pick.randrange(2))
        assert not cluster.cluster.errors, (request, version)
        if number % 50 == 0:
            cluster.advance(pick.choice((1, 1000, 100_000)))
    assert len(cluster.cluster.brokers[0].sessions) <= 1


def test_ten_thousand_connections_that_do_nothing_are_bounded() -> None:
    """The broker keeps the maximum number of connections open, and serves other clients meanwhile."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(CONNECTIONS, (limit[1] if limit[1] != resource.RLIM_INFINITY else CONNECTIONS * 3) // 3)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limit[0], min(limit[1], 3 * wanted)), limit[1]))
    try:
        with (
            EmbeddedBroker(configs={"max.connections": "500"}) as broker,
            ExitStack() as stack,
            RawClient(broker) as client,
        ):
            address = broker.run(lambda cluster: cluster.brokers[0].addresses["PLAINTEXT"])
            for number in range(wanted):
                connection = stack.enter_context(socket.create_connection(address, timeout=60))
                if number % 3 == 0:
                    connection.sendall(b"\x00\x00")
            assert client.call(MetadataRequest(topics=()), 9).cluster_id
            assert broker.run(sessions) <= 500
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)


def sessions(cluster: Cluster) -> int:
    return len(cluster.brokers[0].sessions)


@pytest.mark.parametrize(("producer_id", "epoch"), [(-2, 0), (5, -2), (-(2**63), 3)])
def test_a_marker_that_no_log_can_hold_is_refused(producer_id: int, epoch: int) -> None:
    cluster = VirtualCluster.start()
    MoveGroupCoordinator("g", 0).apply(cluster.cluster)
    topic = WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=(0,))
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        transaction_result=True,
        topics=(topic,),
        coordinator_epoch=0,
    )
    answer = cluster.call(WriteTxnMarkersRequest(markers=(marker,)), 1)
    assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_share_state_waits_for_replicas_in_sync() -> None:
    """Snapshots of cold partitions that cannot be written now are written in a later round."""
    written: list[RecordAppend | MarkerAppend] = []

    def append(batch: RecordAppend | MarkerAppend) -> int:
        if refusing:
            raise RequestRefusedError(error=ErrorCode.NOT_ENOUGH_REPLICAS)
        written.append(batch)
        coordinator.committed(batch.partition, len(written))
        return len(written)

    refusing: list[bool] = []
    key = SharePartitionKey("g", UUID(int=1), 0)
    config = ShareCoordinatorConfig(snapshot_interval_ms=1000)
    coordinator = ShareCoordinator(append, lambda topic_id: 1, lambda partition, offset: None, config=config)
    partition = coordinator.partition_for(key)
    coordinator.elect(partition, 0, now=0)
    coordinator.loaded(partition, now=0)
    coordinator.initialize_state(key, state_epoch=0, start_offset=0, now=0).result()
    refusing.append(True)
    coordinator.tick(5000)
    coordinator.forget_topics({key.topic_id})
    coordinator.take_output(now=5000)
    assert len(written) == 1
    refusing.clear()
    coordinator.tick(6000)
    coordinator.forget_topics({key.topic_id})
    coordinator.take_output(now=6000)
    assert len(written) == 3
