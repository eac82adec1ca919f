"""Requests that wait for an earlier request on their connection, while the broker serves many connections."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import pytest

from kafka_msgs import ApiVersionsRequest, FetchRequest, MetadataRequest, ProduceRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.message import Request
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.testing import new_topic
from kafka_msgs.wire import ClientConnection
from tests.support.virtual_brokers import batch

CONNECTIONS = 300
TIMEOUT = 60


def connect(broker: EmbeddedBroker) -> socket.socket:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=TIMEOUT)


def frames(*requests: tuple[Request[Any], int]) -> bytes:
    client = ClientConnection(client_id="test")
    return b"".join(client.send(request, version) for request, version in requests)


def poll(topic: str) -> tuple[Request[Any], int]:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=2**20)
    topics = (FetchTopic(topic=topic, partitions=(partition,)),)
    return FetchRequest(max_wait_ms=30_000, min_bytes=1, max_bytes=2**20, topics=topics), 11


def waiting(cluster: Cluster) -> int:
    return sum(len(watches) for watches in cluster.log_manager.watches.values())


def read_frame(connection: socket.socket) -> None:
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    assert len(connection.recv(size, socket.MSG_WAITALL)) == size


def test_many_long_polls_with_a_request_behind_them_are_all_answered() -> None:
    with EmbeddedBroker() as broker, ExitStack() as stack:
        topic = new_topic(broker)
        produced = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=0, records=batch(b"one")),))
        write: tuple[Request[Any], int] = (ProduceRequest(acks=1, timeout_ms=1000, topic_data=(produced,)), 9)
        connections = [stack.enter_context(connect(broker)) for _ in range(CONNECTIONS)]
        for connection in connections:
            connection.sendall(frames(poll(topic), write))
        while broker.run(waiting) < CONNECTIONS:
            pass
        with connect(broker) as producer:
            producer.sendall(frames(write))
            read_frame(producer)
        for connection in connections:
            read_frame(connection)
            read_frame(connection)
        assert broker.problems == []


def test_a_client_with_many_requests_lets_others_have_their_turn() -> None:
    order: list[str] = []

    def observe(call: Any, response: Any) -> None:
        order.append(call.request.INFO.name)

    with EmbeddedBroker() as broker, connect(broker) as greedy, connect(broker) as other:
        broker.run(lambda cluster: cluster.response_observers.append(observe))
        many, one = frames(*[(ApiVersionsRequest(), 0)] * 2000), frames((MetadataRequest(topics=()), 9))

        def send_both(cluster: Cluster) -> None:
            greedy.sendall(many)
            other.sendall(one)

        broker.run(send_both)
        read_frame(other)
        for _ in range(2000):
            read_frame(greedy)
        assert order.index("MetadataRequest") < 1000


def test_requests_of_a_client_that_is_gone_are_not_answered(caplog: pytest.LogCaptureFixture) -> None:
    """The first response breaks the connection; asyncio would log each later one."""
    with EmbeddedBroker() as broker, connect(broker) as gone, connect(broker) as other:

        def send_and_leave(cluster: Cluster) -> None:
            gone.sendall(frames(*[(ApiVersionsRequest(), 0)] * 16))
            gone.close()

        broker.run(send_and_leave)
        other.sendall(frames((MetadataRequest(topics=()), 9)))
        read_frame(other)
        assert broker.problems == []
    assert [record for record in caplog.records if record.name == "asyncio"] == []
