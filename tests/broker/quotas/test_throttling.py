"""Clients that exceed their quotas: the responses they get, and when the broker reads their next requests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_msgs import CreateTopicsRequest, ErrorCode, FetchRequest, HeartbeatRequest, MetadataRequest
from kafka_msgs.broker import EmbeddedBroker, ManualClock
from kafka_msgs.broker.quotas import ClientQuotaManager, Window
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.message import Request
from kafka_msgs.messages.client_quota_record import ClientQuotaRecord, EntityData
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from kafka_msgs.testing import new_topic
from kafka_msgs.wire import encode_request, join_frames
from tests.broker.quotas.asking import altered, created, entry, produced, quota
from tests.recorders.raw_client import Conversation
from tests.support.eventually import until
from tests.support.virtual_brokers import VirtualCluster, batch

DATA = batch(bytes(10_000))


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    cluster = VirtualCluster.start(brokers=2)
    cluster.create("t")
    yield cluster
    assert cluster.cluster.errors == []


def fetched(epoch: int = -1, session: int = 0, offset: int = 0, replica_id: int = -1) -> FetchRequest:
    part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10**6)
    topics = (FetchTopic(topic="t", partitions=(part,)),)
    return FetchRequest(max_bytes=10**6, topics=topics, session_id=session, session_epoch=epoch, replica_id=replica_id)


def test_without_quotas_nobody_waits_and_nothing_is_measured(cluster: VirtualCluster) -> None:
    assert cluster.call(produced("t", DATA), 9).throttle_time_ms == 0
    assert cluster.cluster.brokers[0].meters.produce._measured == {}


def test_a_fetch_that_is_too_large_gets_nothing_and_no_session(cluster: VirtualCluster) -> None:
    cluster.call(produced("t", DATA), 9)
    cluster.call(quota("test", "consumer_byte_rate", 500), 1)
    refused = cluster.call(fetched(epoch=0), 12)
    assert refused.throttle_time_ms > 10_000
    assert (refused.error_code, refused.session_id, refused.responses) == (0, 0, ())
    cluster.call(quota("test", "consumer_byte_rate", 5000), 1)
    assert cluster.call(fetched(epoch=0), 12).responses[0].partitions[0].records


def test_a_throttled_fetch_keeps_its_session(cluster: VirtualCluster) -> None:
    first = cluster.call(fetched(epoch=0), 12)
    cluster.call(produced("t", DATA), 9)
    cluster.call(quota("test", "consumer_byte_rate", 500), 1)
    throttled = cluster.call(fetched(epoch=1, session=first.session_id), 12)
    assert (throttled.session_id, throttled.responses) == (first.session_id, ())
    assert throttled.throttle_time_ms > 0
    cluster.call(quota("test", "consumer_byte_rate", None), 1)
    again = cluster.call(fetched(epoch=2, session=first.session_id), 12)
    assert again.responses[0].partitions[0].records


def test_a_fetch_gets_as_much_as_the_window_allows(cluster: VirtualCluster) -> None:
    for _ in range(10):
        cluster.call(produced("t", DATA), 9)
    cluster.call(quota("test", "consumer_byte_rate", 3000), 1)
    answer = cluster.call(fetched(), 12)
    records = answer.responses[0].partitions[0].records
    assert records is not None
    assert len(DATA) <= len(records) <= 30_000
    assert answer.throttle_time_ms == 0


def test_followers_do_not_wait(cluster: VirtualCluster) -> None:
    cluster.call(produced("t", DATA), 9)
    cluster.call(quota("test", "consumer_byte_rate", 1), 1)
    answer = cluster.call(fetched(replica_id=1), 11)
    assert answer.throttle_time_ms == 0
    assert answer.responses[0].partitions[0].records


def test_a_quota_is_for_each_broker(cluster: VirtualCluster) -> None:
    cluster.cluster.stopwatch = iter(range(0, 10**12, 10**9)).__next__
    cluster.call(altered(entry({"user": "ANONYMOUS"}, ("request_percentage", 0.1))), 1)
    waits = [cluster.call(MetadataRequest(topics=()), 12, broker=broker).throttle_time_ms for broker in (0, 1)]
    assert waits[0] == waits[1] > 0
    cluster.cluster.stop_broker(1)
    cluster.cluster.start_broker(1)
    assert cluster.call(MetadataRequest(topics=()), 12, broker=1).throttle_time_ms == waits[1]


def test_the_time_of_requests_counts_and_waits_are_bounded(cluster: VirtualCluster) -> None:
    cluster.cluster.stopwatch = iter(range(0, 10**12, 10**9)).__next__
    cluster.call(quota("test", "request_percentage", 1), 1)
    assert cluster.call(MetadataRequest(topics=()), 12).throttle_time_ms == 1000
    heartbeat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert cluster.call(heartbeat, 4).throttle_time_ms == 1000
    assert cluster.call(heartbeat, 4, client_id="other").throttle_time_ms == 0


def test_topics_of_one_request_are_refused_one_by_one(cluster: VirtualCluster) -> None:
    cluster.call(quota("test", "controller_mutation_rate", 1), 1)
    both = CreateTopicsRequest(topics=(*created("a", 20).topics, *created("b", 1).topics))
    answer = cluster.call(both, 7)
    assert [each.error_code for each in answer.topics] == [0, ErrorCode.THROTTLING_QUOTA_EXCEEDED]
    assert answer.throttle_time_ms == 9000
    cluster.advance(8999)
    assert cluster.call(created("b", 1), 7).throttle_time_ms == 1
    cluster.advance(1)
    assert cluster.call(created("b", 1), 7).topics[0].error_code == 0


@pytest.mark.parametrize("acks", [1, 0])
def test_the_connection_is_mute_as_long_as_the_client_must_wait(acks: int) -> None:
    clock, answered = ManualClock(), list[tuple[str | None, int]]()
    with EmbeddedBroker(clock=clock) as broker:
        topic, port = new_topic(broker), int(broker.bootstrap_servers.rpartition(":")[2])
        broker.run(lambda cluster: cluster.response_observers.append(lambda call, _: note(answered, call)))
        with Conversation(port, client_id="admin") as admin, socket.create_connection(("127.0.0.1", port)) as slow:
            admin.ask(quota("slow", "producer_byte_rate", 100), 1)
            slow.settimeout(60)
            slow.sendall(framed(produced(topic, DATA, acks), 9) + framed(MetadataRequest(topics=()), 12))
            until(lambda: bool(answered) and answered[-1][0] == "slow")
            wait = answered.pop()[1]
            assert wait == (len(framed(produced(topic, DATA), 9)) - 4) * 10 - 10_000
            clock.advance(wait - 1)
            for _ in range(10):
                admin.ask(MetadataRequest(topics=()), 12)
            assert [each for each in answered if each[0] == "slow"] == []
            clock.advance(1)
            until(lambda: ("slow", 0) in answered)
        assert broker.problems == []


def test_an_address_that_connects_too_often_is_not_heard_and_later_closed() -> None:
    clock = ManualClock()
    with EmbeddedBroker(clock=clock, configs={"quota.window.num": "2"}) as broker:
        port = int(broker.bootstrap_servers.rpartition(":")[2])

        def connect(source: str) -> socket.socket:
            connection = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
            connection.sendall(framed(MetadataRequest(topics=()), 12))
            return connection

        with Conversation(port, client_id="admin") as admin:
            admin.ask(altered(entry({"ip": "127.0.0.7"}, ("connection_creation_rate", 1.0))), 1)
            with connect("127.0.0.7") as first, connect("127.0.0.7") as second, connect("127.0.0.8") as other:
                assert first.recv(1)
                assert other.recv(1)
                until(lambda: broker.run(lambda cluster: len(cluster.brokers[0].sessions)) == 4)
                clock.advance(1000)
                assert was_closed(second)
            clock.advance(2000)
            with connect("127.0.0.7") as third:
                assert third.recv(1)
            admin.ask(altered(entry({"ip": "127.0.0.7"}, ("connection_creation_rate", None))), 1)
            with connect("127.0.0.7") as fourth, connect("127.0.0.7") as fifth:
                assert fourth.recv(1)
                assert fifth.recv(1)
        assert broker.problems == []


def was_closed(connection: socket.socket) -> bool:
    """Return whether a connection ends without a response. Unread request bytes turn the end into a reset."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize(
    ("limited", "connecting", "delays"),
    [
        (None, "127.0.0.1", [0, 0, 1000, 1000]),
        ("localhost", "127.0.0.1", [0, 0, 1000, 1000]),
        ("::1", "0:0:0:0:0:0:0:1", [0, 0, 1000, 1000]),
        ("10.0.0.1", "10.0.0.2", [0, 0, 0, 0]),
        ("broker.example", "10.0.0.2", [0, 0, 0, 0]),
    ],
)
def test_connections_of_an_address_are_counted(limited: str | None, connecting: str, delays: list[int]) -> None:
    quotas = ClientQuotaManager(Window(5, 1000), Window(5, 1000))
    meter = quotas.new_meters().connection
    assert meter.open(connecting, 0) == 0
    entity = (EntityData(entity_type="ip", entity_name=limited),)
    quotas.follow([ClientQuotaRecord(entity=entity, key="connection_creation_rate", value=0.5)])
    assert [meter.open(connecting, 10_000) for _ in delays] == delays
    quotas.follow([ClientQuotaRecord(entity=entity, key="connection_creation_rate", remove=True)])
    assert meter.open(connecting, 10_000) == 0


def note(answered: list[tuple[str | None, int]], call: ServerCall[Any]) -> None:
    answered.append((call.client_id, call.throttle_time_ms))


def framed(request: Request[Any], version: int) -> bytes:
    return join_frames(encode_request(request, version, correlation_id=1, client_id="slow"))
