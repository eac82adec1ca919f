"""Real clients and real brokers through the proxy: clients notice no change, and all traffic is decoded."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from kafka_msgs import IncrementalAlterConfigsRequest, MetadataResponse
from kafka_msgs.admin import Admin
from kafka_msgs.capture import Exchange
from kafka_msgs.capture.recording import read_recording
from kafka_msgs.cli.command_group import command
from kafka_msgs.client import TopicPartition as Place
from kafka_msgs.messages.incremental_alter_configs_request import AlterableConfig, AlterConfigsResource
from kafka_msgs.redaction import Redactor
from tests.recorders.broker import run_kafka_class
from tests.recorders.raw_client import Conversation
from tests.support.cluster_topics import new_topic
from tests.support.eventually import until
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.kafka_listeners import USERS, Listener
from tests.support.streams_application import streams_application
from tests.support.tap_process import TappedCluster

# Other clients use features that newer Python versions warn about.
pytestmark = pytest.mark.filterwarnings("ignore")

RECORDS = 300
GROUP_CONFIGS = 32
TOOLS = "org.apache.kafka.tools."


@pytest.fixture
def topic(kafka_cluster: ClusterAddresses) -> str:
    """A topic of three partitions, led by three nodes."""
    return new_topic(kafka_cluster, 3, replicas=3, prefix="tap")


@pytest.fixture
def tapped(kafka_cluster: ClusterAddresses, tmp_path: Path) -> Iterator[TappedCluster]:
    """The shared cluster behind the proxy; at the end of the test, all traffic must have been decoded."""
    with TappedCluster(kafka_cluster.bootstrap_servers, tmp_path / "tap.jsonl") as proxy:
        yield proxy
    assert proxy.problems() == []
    assert f"{len(proxy.exchanges)} exchanges, 0 faults" in proxy.report


def _values(count: int = RECORDS) -> list[bytes]:
    return [b"value %d" % number for number in range(count)]


def _consumed(bootstrap: str, topic: str, group: str, **more: Any) -> list[bytes]:
    """Return the values of a topic that a librdkafka group reads, after committing its offsets."""
    config = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest", **more}
    consumer = Consumer(config)
    consumer.subscribe([topic])
    found: list[bytes] = []
    for _ in range(60):
        found += [message.value() for message in consumer.consume(500, 1) if message.error() is None]
        if len(found) >= RECORDS:
            break
    consumer.commit(asynchronous=False)
    consumer.close()
    return sorted(found)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_librdkafka(kafka_cluster: ClusterAddresses, tapped: TappedCluster, topic: str, protocol: str) -> None:
    """It produces, consumes in a group of each protocol, and sends admin requests."""
    producer = Producer({"bootstrap.servers": tapped.bootstrap, "compression.type": "lz4", "enable.idempotence": True})
    for value in _values():
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    assert _consumed(tapped.bootstrap, topic, f"{topic}-g", **{"group.protocol": protocol}) == sorted(_values())
    seen = AdminClient({"bootstrap.servers": tapped.bootstrap}).list_topics(topic, timeout=30)
    assert set(seen.brokers) == set(kafka_cluster.nodes)
    ports = {kafka_cluster.port(node) for node in kafka_cluster.nodes}
    assert not ports & {broker.port for broker in seen.brokers.values()}
    direct = AdminClient({"bootstrap.servers": kafka_cluster.bootstrap_servers}).list_topics(topic, timeout=30)
    assert [_shape(each.topics[topic]) for each in (seen, direct)] == [_shape(direct.topics[topic])] * 2


def _shape(topic: Any) -> Any:
    return {number: (each.leader, each.replicas, each.isrs) for number, each in topic.partitions.items()}


def test_transactions_of_librdkafka(tapped: TappedCluster, topic: str) -> None:
    """Offsets are sent with a transaction; consumers do not receive aborted records."""
    producer = Producer({"bootstrap.servers": tapped.bootstrap, "transactional.id": f"{topic}-tx"})
    producer.init_transactions(30)
    consumer = Consumer({"bootstrap.servers": tapped.bootstrap, "group.id": f"{topic}-g"})
    for number, end in enumerate(
        (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    ):
        producer.begin_transaction()
        for value in _values(RECORDS // 2):
            producer.produce(topic, b"%d " % number + value)
        offsets = [TopicPartition(topic, 0, 1)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
        end(30)
    consumer.close()
    expected = sorted(b"%d " % number + value for number in (0, 2) for value in _values(RECORDS // 2))
    assert _consumed(tapped.bootstrap, topic, f"{topic}-r", **{"isolation.level": "read_committed"}) == expected


def test_aiokafka(tapped: TappedCluster, topic: str) -> None:
    """It produces, consumes in a group, and lists groups."""
    assert asyncio.run(_with_aiokafka(tapped.bootstrap, topic)) == sorted(_values())


async def _with_aiokafka(bootstrap: str, topic: str) -> list[bytes]:
    import aiokafka
    from aiokafka.admin import AIOKafkaAdminClient

    async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type="gzip") as producer:
        await asyncio.gather(*[await producer.send(topic, value) for value in _values()])
    found: list[bytes] = []
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, group_id=f"{topic}-g", auto_offset_reset="earliest"
    )
    async with consumer:
        async with asyncio.timeout(60):
            while len(found) < RECORDS:
                for records in (await consumer.getmany(timeout_ms=1000)).values():
                    found += [record.value for record in records]
        await consumer.commit()
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    assert (f"{topic}-g", "consumer") in [each[:2] for each in await admin.list_consumer_groups()]
    await admin.close()
    return sorted(found)


def test_kafka_python(tapped: TappedCluster, topic: str) -> None:
    """It produces, consumes in a group, and reads the offsets that it committed."""
    import kafka

    producer = kafka.KafkaProducer(bootstrap_servers=tapped.bootstrap)
    for value in _values():
        producer.send(topic, value)
    producer.flush(30)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, bootstrap_servers=tapped.bootstrap, group_id=f"{topic}-g", auto_offset_reset="earliest"
    )
    found: list[bytes] = []
    for _ in range(60):
        found += [record.value for records in consumer.poll(1000).values() for record in records]
        if len(found) >= RECORDS:
            break
    consumer.commit()
    assert sorted(found) == sorted(_values())
    assert sum(consumer.committed(kafka.TopicPartition(topic, number)) or 0 for number in range(3)) == RECORDS
    consumer.close()


def test_tools_of_kafka(kafka_cluster: ClusterAddresses, tapped: TappedCluster, topic: str) -> None:
    """The console producer and consumer, a share group, and the group tools' output work as without the proxy."""
    at = ["--bootstrap-server", tapped.bootstrap]
    lines = [value.decode() for value in _values()]
    run_kafka_class(f"{TOOLS}ConsoleProducer", [*at, "--topic", topic], stdin="\n".join(lines) + "\n", timeout=90)
    reading = ["--topic", topic, "--group", f"{topic}-g", "--from-beginning", "--max-messages", str(RECORDS)]
    out = run_kafka_class(f"{TOOLS}consumer.ConsoleConsumer", [*at, *reading], timeout=90)
    assert sorted(out.split("\n"))[1:] == sorted(lines)
    describe = ["--describe", "--group", f"{topic}-g", "--offsets"]
    tool = f"{TOOLS}consumer.group.ConsumerGroupCommand"
    described = [
        run_kafka_class(tool, [*where, *describe])
        for where in (at, ["--bootstrap-server", kafka_cluster.bootstrap_servers])
    ]
    assert described[0] == described[1]
    # When the consumer ends, it commits for the partitions that it has read: one or more of the three.
    assert f"{topic}-g" in described[0]
    _start_at_the_beginning(kafka_cluster, f"{topic}-s")
    sharing = ["--topic", topic, "--group", f"{topic}-s", "--max-messages", str(RECORDS), "--timeout-ms", "30000"]
    shared = run_kafka_class(f"{TOOLS}consumer.ConsoleShareConsumer", [*at, *sharing], timeout=90)
    assert sorted(shared.split("\n"))[1:] == sorted(lines)


def _start_at_the_beginning(cluster: ClusterAddresses, group: str) -> None:
    earliest = AlterableConfig(name="share.auto.offset.reset", value="earliest")
    resource = AlterConfigsResource(resource_type=GROUP_CONFIGS, resource_name=group, configs=(earliest,))
    with Conversation(cluster.port(1), client_id="settings") as conversation:
        answer = conversation.ask(IncrementalAlterConfigsRequest(resources=(resource,)), 1)
    assert answer.responses[0].error_code == 0


def test_an_application_of_kafka_streams(
    tapped: TappedCluster, kafka_cluster: ClusterAddresses, tmp_path: Path
) -> None:
    """A Streams application counts the topic's contents under the streams protocol, as a real member of its group."""
    orders = new_topic(kafka_cluster, 2, prefix="orders")
    producer = Producer({"bootstrap.servers": tapped.bootstrap})
    for number in range(20):
        producer.produce(
            orders, json.dumps({"order": number, "item": "tea", "quantity": 2}).encode(), f"order-{number}"
        )
    assert producer.flush(30) == 0
    group = f"totals-{uuid.uuid4().hex[:8]}"
    with Admin(kafka_cluster.bootstrap_servers) as admin:

        def counts() -> bool:
            changelog = [Place(f"{group}-totals-changelog", number) for number in range(2)]
            return any(each.offset > 0 for each in admin.list_offsets(dict.fromkeys(changelog, -1)).ok.values())

        with streams_application(tapped.bootstrap, group, tmp_path, orders):
            until(counts)
            describe = ["--bootstrap-server", tapped.bootstrap, "--describe", "--group", group, "--state"]
            assert group in run_kafka_class(f"{TOOLS}streams.StreamsGroupCommand", describe)
    assert _seen(tapped, "StreamsGroupHeartbeat")


def _seen(proxy: TappedCluster, api: str) -> bool:
    """Return whether the recording contains an API; each exchange is written when it is complete."""
    with proxy.recording.open("rb") as file:
        return any(isinstance(item, Exchange) and item.api == api for item in read_recording(file))


def test_logging_in_leaves_no_password_behind(kafka_cluster: ClusterAddresses, topic: str, tmp_path: Path) -> None:
    """PLAIN and SCRAM work; the recording and the output contain neither password nor proof."""
    password = kafka_cluster.users["alice"]
    servers = kafka_cluster.bootstrap(Listener.SASL_PLAINTEXT)
    with TappedCluster(servers, tmp_path / "tap.jsonl", "--bodies") as proxy:
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            login = {"sasl.mechanism": mechanism, "sasl.username": "alice", "sasl.password": password}
            at = {"bootstrap.servers": proxy.bootstrap, "security.protocol": "sasl_plaintext"}
            admin = AdminClient({**at, **login})
            assert topic in admin.list_topics(timeout=30).topics
    text = proxy.recording.read_text()
    assert proxy.problems() == []
    assert "SaslAuthenticate" in proxy.apis()
    assert password not in text
    assert password.encode().hex() not in text


def test_tls_on_both_sides(kafka_cluster: ClusterAddresses, topic: str, tmp_path: Path) -> None:
    """The proxy terminates TLS on both sides, so it reads all traffic; the login passes through to the broker."""
    files = kafka_cluster.certificates
    config = tmp_path / "broker.properties"
    config.write_text(
        f"security.protocol=SASL_SSL\nssl.truststore.type=PEM\nssl.truststore.location={files.authority}\n"
    )
    options = ("--certificate", str(files.server), "--command-config", str(config))
    with TappedCluster(kafka_cluster.bootstrap(Listener.SASL_SSL), tmp_path / "tap.jsonl", *options) as proxy:
        login = {"sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "admin", "sasl.password": USERS["admin"]}
        trust = {"security.protocol": "sasl_ssl", "ssl.ca.location": str(files.authority)}
        producer = Producer({"bootstrap.servers": proxy.bootstrap, **trust, **login})
        for value in _values():
            producer.produce(topic, value)
        assert producer.flush(30) == 0
        assert _consumed(proxy.bootstrap, topic, f"{topic}-g", **trust, **login) == sorted(_values())
    assert proxy.problems() == []
    assert {"SaslAuthenticate", "Produce", "Fetch", "OffsetCommit"} <= proxy.apis()


def test_recordings_are_replayed_and_redacted(tapped: TappedCluster, topic: str) -> None:
    """The capture command reads them; redacted exchanges decode, keep their lengths, and lose their secrets."""
    producer = Producer({"bootstrap.servers": tapped.bootstrap, "compression.type": "zstd", "client.id": "till-7"})
    for value in _values():
        producer.produce(topic, value)
    assert producer.flush(30) == 0
    assert _consumed(tapped.bootstrap, topic, f"{topic}-g") == sorted(_values())
    tapped.stop()
    replay = CliRunner().invoke(command, ["capture", str(tapped.recording), "--bodies", "--output", "jsonl"])
    assert replay.exit_code == 0
    lines = [json.loads(line) for line in replay.stdout.splitlines()]
    replayed = [line for line in lines if line["kind"] == "exchange"]
    assert len(replayed) == len(tapped.exchanges)
    assert any(line["api"] == "Fetch" and line["response"]["responses"] for line in replayed)
    redaction = Redactor()
    for exchange in tapped.exchanges:
        hidden = redaction.redact(exchange)
        assert isinstance(hidden, Exchange)
        assert hidden.problems == ()
        assert hidden.errors == exchange.errors
        everything = hidden.request.payload + (hidden.response.payload if hidden.response else b"")
        assert [word for word in (topic.encode(), b"value 1", b"till-7") if word in everything] == []
        assert abs(hidden.request.size - exchange.request.size) <= 8
        if isinstance(exchange.response_message, MetadataResponse):
            assert hidden.response is not None
            assert exchange.response is not None
            assert hidden.response.size == exchange.response.size
