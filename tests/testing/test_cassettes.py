"""Cassettes: recorded against a cluster once, and played without it. The same client code runs both times."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import textwrap
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final

import aiokafka
import confluent_kafka
import pytest

from kafka_msgs import CreateTopicsRequest, ErrorCode, ListGroupsRequest, MetadataRequest
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Client, Consumer, Producer
from kafka_msgs.errors import CassetteError, ClientError, OptionError
from kafka_msgs.messages.create_topics_request import CreatableTopic
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.testing import Cassette, new_group, new_topic
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.tap_process import TappedCluster

VALUES: Final = [b"one tea", b"two teas", b"three teas"]
DEADLINE: Final = 60

Use = Callable[[str, str, str], list[bytes | None]]
"""Writes to a topic, reads it in a group, commits, and returns the records it read."""


def with_this_library(servers: str, topic: str, group: str) -> list[bytes | None]:
    with Producer(servers) as producer:
        for value in VALUES:
            producer.send(topic, value, partition=0).result(DEADLINE)
    read: list[bytes | None] = []
    with Consumer(servers, group_id=group, auto_offset_reset="earliest") as consumer:
        consumer.subscribe(topic)
        while len(read) < len(VALUES):
            read += [None if each.value is None else bytes(each.value) for each in consumer.poll(1)]
        consumer.commit()
    return read


def with_librdkafka(servers: str, topic: str, group: str) -> list[bytes | None]:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for value in VALUES:
        producer.produce(topic, value, partition=0)
        assert producer.flush(DEADLINE) == 0
    settings = {
        "bootstrap.servers": servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.subscribe([topic])
    read: list[bytes | None] = []
    try:
        while len(read) < len(VALUES):
            message = consumer.poll(DEADLINE)
            assert message is not None
            assert message.error() is None
            read.append(message.value())
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()
    return read


def with_aiokafka(servers: str, topic: str, group: str) -> list[bytes | None]:
    async def use() -> list[bytes | None]:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers) as producer:
            for value in VALUES:
                await producer.send_and_wait(topic, value, partition=0)
        async with aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        ) as consumer:
            read = [(await consumer.getone()).value for _ in VALUES]
            await consumer.commit()
            return read

    return asyncio.run(asyncio.wait_for(use(), 2 * DEADLINE))


CLIENTS: Final = [with_this_library, with_librdkafka, with_aiokafka]


def made_topic(servers: str) -> str:
    name = new_group().replace("group", "cassette")
    with Client(servers) as client:
        client.call(CreateTopicsRequest(topics=(CreatableTopic(name=name, num_partitions=1, replication_factor=1),)))
    return name


@pytest.mark.parametrize("use", CLIENTS)
def test_what_a_real_cluster_answered_is_played_without_it(
    use: Use, kafka_cluster: ClusterAddresses, tmp_path: Path
) -> None:
    topic, group, file = made_topic(kafka_cluster.bootstrap_servers), new_group(), tmp_path / "a.jsonl"
    with Cassette(file, kafka_cluster.bootstrap_servers) as cassette:
        assert cassette.recording
        assert use(cassette.bootstrap_servers, topic, group) == VALUES
    for _ in range(2):
        with Cassette(file, mode="none") as cassette:
            assert not cassette.recording
            assert use(cassette.bootstrap_servers, topic, group) == VALUES
            assert cassette.unplayed == []


@pytest.mark.parametrize("use", CLIENTS)
@pytest.mark.parametrize("recorded_pace", [False, True])
def test_a_recording_of_an_embedded_broker_is_played(use: Use, recorded_pace: bool, tmp_path: Path) -> None:
    group, file = new_group(), tmp_path / "deeper" / "a.jsonl"
    with EmbeddedBroker(brokers=3) as broker:
        topic = new_topic(broker)
        with Cassette(file, broker.bootstrap_servers) as cassette:
            assert use(cassette.bootstrap_servers, topic, group) == VALUES
    with Cassette(file, recorded_pace=recorded_pace) as cassette:
        assert use(cassette.bootstrap_servers, topic, group) == VALUES


def send(servers: str, topic: str, *values: bytes) -> None:
    with Producer(servers) as producer:
        for value in values:
            producer.send(topic, value, partition=0).result(DEADLINE)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A cassette of a client that wrote one record to the topic ``orders``."""
    file = tmp_path / "orders.jsonl"
    with EmbeddedBroker() as broker:
        new_topic(broker, "orders")
        with Cassette(file, broker.bootstrap_servers) as cassette:
            send(cassette.bootstrap_servers, "orders", b"one tea")
    return file


def test_another_request_is_one_error_that_says_what_differs(recorded: Path) -> None:
    with pytest.raises(CassetteError) as caught, Cassette(recorded) as cassette, pytest.raises(ClientError):
        send(cassette.bootstrap_servers, "orders", b"two teas")
    assert re.fullmatch(
        r".*orders\.jsonl: ProduceRequest v\d+ was not recorded; the nearest one, Produce v\d+ in line \d+, differs in "
        r"topic_data\[0\]\.partition_data\[0\]\.records\[0\]\.value: b'one tea' was recorded, b'two teas' is asked"
        r"( \(and \d+ more\))?",
        str(caught.value),
    )


def test_an_error_of_the_test_itself_goes_first_and_names_what_was_missing(recorded: Path) -> None:
    def fail() -> None:
        with Cassette(recorded) as cassette:
            with pytest.raises(ClientError):
                send(cassette.bootstrap_servers, "orders", b"two teas")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        fail()
    assert "ProduceRequest" in caught.value.__notes__[0]


def test_what_was_written_once_cannot_be_written_twice(recorded: Path) -> None:
    with Cassette(recorded) as cassette:
        send(cassette.bootstrap_servers, "orders", b"one tea")
        with pytest.raises(ClientError):
            send(cassette.bootstrap_servers, "orders", b"one tea")
        assert re.fullmatch(r"ProduceRequest v\d+ was recorded 1 times, and is asked once more", cassette.misses.pop())


def test_an_api_that_was_not_recorded_is_named(recorded: Path) -> None:
    with Cassette(recorded) as cassette, Client(cassette.bootstrap_servers) as client:
        assert client.call(ListGroupsRequest(), retry=False).error_code == ErrorCode.INVALID_REQUEST
        found = cassette.misses.pop()
    assert re.fullmatch(r"ListGroupsRequest v\d+ is asked, and no request of this api was recorded", found)


def test_topics_are_found_that_were_recorded_apart(recorded: Path) -> None:
    with Cassette(recorded) as cassette, Client(cassette.bootstrap_servers) as client:
        for topics in ((), None, (MetadataRequestTopic(name="orders"),)):
            answer = client.call(MetadataRequest(topics=topics))
            assert [topic.name for topic in answer.topics] == ([] if topics == () else ["orders"])
            assert cassette.bootstrap_servers not in {f"{each.host}:{each.port}" for each in answer.brokers}


def test_what_was_not_written_again_is_known(recorded: Path) -> None:
    with Cassette(recorded) as cassette:
        assert [each.partition(" ")[0] for each in cassette.unplayed] == ["Produce"]
        send(cassette.bootstrap_servers, "orders", b"one tea")
        assert cassette.unplayed == []


def test_the_modes(recorded: Path, tmp_path: Path) -> None:
    before = recorded.read_bytes()
    with pytest.raises(CassetteError, match="there is no recording to play"):
        Cassette(tmp_path / "other.jsonl", mode="none").start()
    with pytest.raises(CassetteError, match="there is no cluster to record"):
        Cassette(tmp_path / "other.jsonl").start()
    with pytest.raises(OptionError):
        Cassette(recorded, mode="some")  # type: ignore[arg-type]
    with EmbeddedBroker() as broker:
        new_topic(broker, "orders")
        with pytest.raises(ZeroDivisionError), Cassette(recorded, broker.bootstrap_servers, mode="all"):
            raise ZeroDivisionError
        assert recorded.read_bytes() == before
        with Cassette(recorded, lambda: broker.bootstrap_servers, mode="all") as cassette:
            send(cassette.bootstrap_servers, "orders", b"two teas")
    assert recorded.read_bytes() != before
    with Cassette(recorded) as cassette:
        send(cassette.bootstrap_servers, "orders", b"two teas")
    assert [path.name for path in tmp_path.iterdir()] == ["orders.jsonl"]


@pytest.mark.parametrize("text", ["", "nowhere", "host:x", "host:99999", ":1"])
def test_addresses_that_are_none(text: str, tmp_path: Path) -> None:
    with pytest.raises(CassetteError):
        Cassette(tmp_path / "a.jsonl", text).start()


def test_a_file_that_is_no_recording_has_no_answers(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(b"\xff\n{}\n" * 10)
    with Cassette(file) as cassette, Client(cassette.bootstrap_servers, timeout=5) as client:
        with pytest.raises(ClientError):
            client.call(MetadataRequest(topics=()), retry=False)
        assert "no request of this api was recorded" in cassette.misses[0]
        cassette.misses.clear()


def test_the_fixture_records_once_and_plays_in_parallel(tmp_path: Path) -> None:
    (tmp_path / "test_orders.py").write_text(
        textwrap.dedent(
            """
            import pytest
            from kafka_msgs.client import Producer

            @pytest.mark.parametrize("value", [b"a", b"b"])
            def test_orders(kafka_cassette, value):
                with Producer(kafka_cassette.bootstrap_servers) as producer:
                    producer.send("orders", value, partition=0).result(60)

            @pytest.mark.kafka_cassette("named.jsonl", recorded_pace=True)
            def test_named(kafka_cassette):
                with Producer(kafka_cassette.bootstrap_servers) as producer:
                    producer.send("orders", b"c", partition=0).result(60)
            """
        )
    )
    with EmbeddedBroker() as broker:
        new_topic(broker, "orders")
        outcome = pytest_in(tmp_path, "--kafka-cluster", broker.bootstrap_servers)
    assert "3 passed" in outcome
    found = sorted(path.relative_to(tmp_path / "cassettes").as_posix() for path in tmp_path.rglob("*.jsonl"))
    assert found == ["named.jsonl", "test_orders/test_orders-a.jsonl", "test_orders/test_orders-b.jsonl"]
    assert "3 passed" in pytest_in(tmp_path, "--kafka-record", "none", "-n2")


def pytest_in(folder: Path, *options: str) -> str:
    """Run the tests in a folder with the plugin, and return the output."""
    plugin = ["-p", "kafka_msgs.testing.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *plugin, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False).stdout


class PlayedCase(unittest.TestCase):
    """A ``unittest`` test that needs no plugin. It runs inside another test."""

    __test__ = False
    file: ClassVar[Path]

    def test_orders(self) -> None:
        cassette = self.enterContext(Cassette(self.file, mode="none"))
        send(cassette.bootstrap_servers, "orders", b"one tea")


def test_cassettes_need_no_pytest(recorded: Path) -> None:
    PlayedCase.file = recorded
    result = unittest.TestResult()
    unittest.TestLoader().loadTestsFromTestCase(PlayedCase).run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])


def test_the_command_records_what_a_cassette_plays(tmp_path: Path) -> None:
    file = tmp_path / "tapped.jsonl"
    with EmbeddedBroker() as broker:
        new_topic(broker, "orders")
        with TappedCluster(broker.bootstrap_servers, file) as tapped:
            send(tapped.bootstrap, "orders", b"one tea")
    with Cassette(file) as cassette:
        send(cassette.bootstrap_servers, "orders", b"one tea")
