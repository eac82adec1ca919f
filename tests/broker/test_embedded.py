"""Starting and stopping embedded brokers, with the blocking and the asyncio API."""

from __future__ import annotations

import asyncio
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from kafka_msgs import MetadataRequest
from kafka_msgs.admin import Admin, AsyncAdmin, NewTopic
from kafka_msgs.broker import AsyncEmbeddedBroker, BrokerConfig, EmbeddedBroker, ListenerConfig, ManualClock
from kafka_msgs.broker.accepted_connection import java_address
from kafka_msgs.broker.clock import SystemClock
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.broker.handlers.fetch_sessions import FetchSessionCache
from kafka_msgs.client import Consumer, Producer
from kafka_msgs.errors import BrokerStartError, OptionError
from kafka_msgs.testing import new_topic
from tests.support.raw_client import RawClient


def test_a_client_creates_a_topic_and_sees_its_leaders_on_all_brokers() -> None:
    with EmbeddedBroker(brokers=3) as broker, Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic("orders", 3, 2)])
        topic = admin.list_topics()["orders"]
        assert sorted(partition.leader_id for partition in topic.partitions) == [0, 1, 2]
        assert {len(partition.replica_nodes) for partition in topic.partitions} == {2}
        assert broker.problems == []


def test_the_form_for_asyncio_serves_the_same() -> None:
    async def main() -> None:
        async with AsyncEmbeddedBroker() as broker, AsyncAdmin(broker.bootstrap_servers) as admin:
            await admin.create_topics([NewTopic("orders", 1, 1)])
            assert "orders" in await admin.list_topics()

    asyncio.run(main())


def test_a_start_and_a_stop_leave_no_thread_and_no_port() -> None:
    before = threading.active_count()
    for _ in range(5):
        with EmbeddedBroker() as broker:
            host, _, port = broker.bootstrap_servers.rpartition(":")
            socket.create_connection((host, int(port))).close()
        assert threading.active_count() == before
        with socket.create_server((host, int(port))):
            pass


def test_a_broker_that_runs_is_not_started_again(tmp_path: Path) -> None:
    threads = threading.active_count()
    with EmbeddedBroker(directory=tmp_path) as broker:
        servers = broker.bootstrap_servers
        with pytest.raises(BrokerStartError, match="runs already"):
            broker.start()
        assert broker.bootstrap_servers == servers
        assert threading.active_count() == threads + 1
    assert threading.active_count() == threads
    with EmbeddedBroker(directory=tmp_path):
        pass


def test_a_broker_in_an_event_loop_is_not_started_again() -> None:
    async def main() -> None:
        async with AsyncEmbeddedBroker() as broker:
            with pytest.raises(BrokerStartError, match="runs already"):
                await broker.start()

    asyncio.run(main())


def test_a_port_that_is_taken_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        broker = EmbeddedBroker(listeners=(ListenerConfig(port=taken.getsockname()[1]),))
        with pytest.raises(BrokerStartError):
            broker.start()


def test_a_broker_whose_port_cannot_be_is_an_error() -> None:
    with pytest.raises(BrokerStartError):
        EmbeddedBroker(brokers=2, listeners=(ListenerConfig(port=65_535),)).start()


@pytest.mark.parametrize("settings", [{"brokers": 0}, {"release": "0.7"}, {"configs": {"no.such": "1"}}])
def test_wrong_settings_are_errors(settings: dict[str, Any]) -> None:
    with pytest.raises(OptionError), EmbeddedBroker(**settings):
        pass


def test_a_held_clock_runs_what_is_due_when_it_moves() -> None:
    clock = ManualClock(1000)
    ran: list[int] = []
    with EmbeddedBroker(BrokerConfig(), clock=clock) as broker:
        broker.run(lambda cluster: cluster.call_later(500, lambda: ran.append(cluster.now)))
        clock.advance(499)
        assert ran == []
        clock.advance(1)
        assert ran == [1500]


def test_a_group_without_a_delay_does_not_wait_for_a_held_clock() -> None:
    """The clock starts at the system time by default, so the broker accepts records with clients' timestamps."""
    with EmbeddedBroker(clock=ManualClock()) as broker:
        topic = new_topic(broker)
        with Producer(broker.bootstrap_servers) as producer:
            assert producer.send(topic, b"one").result().offset == 0
        with Consumer(
            broker.bootstrap_servers, group_id="g", group_protocol="classic", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe([topic])
            found: list[Any] = []
            while not found:
                found = list(consumer.poll(1))
        assert broker.problems == []


def test_bytes_that_are_not_kafka_end_only_their_connection() -> None:
    with EmbeddedBroker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert connection.recv(1) == b""
        with Admin(broker.bootstrap_servers) as admin:
            assert admin.list_topics() == {}
        assert broker.problems == []


def test_a_consumer_closes_its_fetch_session_beside_a_long_poll_that_never_ends() -> None:
    clock = ManualClock(SystemClock().now())
    with EmbeddedBroker(BrokerConfig(), clock=clock) as broker:
        topic = new_topic(broker)
        with Producer(broker.bootstrap_servers) as producer:
            assert producer.send(topic, b"one").result().offset == 0
        with Consumer(broker.bootstrap_servers, auto_offset_reset="earliest") as consumer:
            consumer.assign([(topic, 0)])
            while not consumer.poll(1):
                pass
            assert consumer.poll(0.1) == []
            assert broker.run(_fetch_sessions) == 1
        assert broker.run(_fetch_sessions) == 0


def _fetch_sessions(cluster: Cluster) -> int:
    return len(cluster.brokers[0].components[FetchSessionCache])


def test_clients_of_each_listener_are_sent_to_its_advertised_addresses() -> None:
    listeners = (
        ListenerConfig(name="INSIDE", host="0.0.0.0"),
        ListenerConfig(name="PROXY", advertised_host="proxy.example", advertised_port=19_092),
    )
    with EmbeddedBroker(brokers=2, listeners=listeners) as broker:
        ports = broker.run(lambda cluster: [each.addresses["INSIDE"][1] for each in cluster.brokers.values()])
        assert broker.bootstrap_servers == ",".join(f"127.0.0.1:{port}" for port in ports)
        assert broker.bootstrap_of("PROXY") == "proxy.example:19092,proxy.example:19093"
        with Admin(broker.bootstrap_servers) as admin:
            nodes = admin.describe_cluster().nodes.values()
            assert {(each.host, each.port) for each in nodes} == {("127.0.0.1", port) for port in ports}
        with RawClient(broker, listener="PROXY") as client:
            brokers = client.call(MetadataRequest(topics=()), 9).brokers
            assert [(each.host, each.port) for each in brokers] == [
                ("proxy.example", 19_092),
                ("proxy.example", 19_093),
            ]
        broker.kill_broker(1)
        broker.start_broker(1)
        assert broker.bootstrap_of("PROXY") == "proxy.example:19092,proxy.example:19093"


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_no_client_is_sent_to_all_interfaces(host: str) -> None:
    with pytest.raises(OptionError, match="cannot connect"):
        ListenerConfig(advertised_host=host)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("fe80::ab%eth0", "fe80:0:0:0:0:0:0:ab%eth0"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
    ],
)
def test_addresses_have_the_form_that_acls_have_in_java(address: str, shown: str) -> None:
    assert java_address(address) == shown


@pytest.mark.parametrize(
    ("frame", "answered"),
    [
        ("0012 0006 00000007 ffff 00", True),
        ("0012 7fff 00000007 ffff 00", True),
        ("0012 ffff 00000007 ffff", True),
        ("0012 0006 00000007 ffff", False),
        ("0012 7fff 00000007 ffff", False),
    ],
)
def test_api_versions_of_an_unknown_version_is_answered_if_its_header_is_whole(frame: str, answered: bool) -> None:
    """The header of later versions ends with tagged fields; Kafka reads it before it looks at the version."""
    payload = bytes.fromhex(frame)
    with EmbeddedBroker() as broker, RawClient(broker) as client:
        client.socket.sendall(len(payload).to_bytes(4, "big") + payload)
        assert (client.socket.recv(4) != b"") == answered
