"""Producers against real brokers: Kafka's own consumer reads each record exactly once."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from kafka_msgs.admin import Admin
from kafka_msgs.client import AsyncProducer, Producer, TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.client.consumer.config import IsolationLevel
from kafka_msgs.client.producer import Delivery, partition_of_key
from kafka_msgs.client.producer.config import Acks
from kafka_msgs.errors import ProducerFencedError, RecordWriteError, UndeliveredError
from kafka_msgs.records import CompressionType
from tests.support.cluster_topics import new_topic
from tests.support.kafka_cluster import ClusterAddresses
from tests.support.shared_cluster import BreakableCluster

VALUES = [b"value %05d" % number for number in range(5000)]


def read_all(cluster: ClusterAddresses, topic: str, count: int, *, committed: bool = False) -> list[bytes | None]:
    """Read the expected number of values from a topic, and any further values within a second."""
    level: IsolationLevel = "read_committed" if committed else "read_uncommitted"
    with Consumer(cluster.bootstrap_servers, isolation_level=level, auto_offset_reset="earliest") as consumer:
        with Admin(cluster.bootstrap_servers) as admin:
            partitions = range(len(admin.describe_topics([topic])[topic].partitions))
        consumer.assign([(topic, number) for number in partitions])
        found: list[bytes | None] = []
        for _ in range(600):
            records = consumer.poll(1.0)
            found += [None if record.value is None else bytes(record.value) for record in records]
            if len(found) >= count and not records:
                return found
    raise AssertionError(f"{len(found)} of {count} records")


def console(cluster: ClusterAddresses, topic: str, count: int, *arguments: str) -> list[str]:
    """Read a topic with Kafka's console consumer."""
    printed = cluster.console_consumer(
        "--topic", topic, "--from-beginning", "--max-messages", str(count), "--timeout-ms", "30000", *arguments
    )
    return printed.splitlines()


@pytest.mark.parametrize("codec", CompressionType)
def test_kafkas_console_consumer_reads_what_is_written(kafka_cluster: ClusterAddresses, codec: CompressionType) -> None:
    topic = new_topic(kafka_cluster, partitions=1)
    with Producer(kafka_cluster.bootstrap_servers, compression=codec) as producer:
        deliveries = [producer.send(topic, value) for value in VALUES]
    assert [delivery.result().offset for delivery in deliveries] == list(range(len(VALUES)))
    assert console(kafka_cluster, topic, len(VALUES)) == [value.decode() for value in VALUES]


def test_keys_headers_timestamps_and_partitions_arrive(kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, 3)
    with Producer(kafka_cluster.bootstrap_servers) as producer:
        sent = producer.send(topic, b"v", key=b"customer-17", timestamp=1_700_000_000_123, headers=[("a", b"b")])
        found = sent.result()
    assert (found.partition, found.timestamp) == (partition_of_key(b"customer-17", 3), 1_700_000_000_123)
    properties = [f"--formatter-property=print.{name}=true" for name in ("timestamp", "key", "headers", "partition")]
    (line,) = console(kafka_cluster, topic, 1, *properties)
    assert line == f"CreateTime:1700000000123\tPartition:{found.partition}\ta:b\tcustomer-17\tv"


def test_the_time_of_the_broker_is_the_time_of_the_record(kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, 3, configs={"message.timestamp.type": "LogAppendTime"})
    with Producer(kafka_cluster.bootstrap_servers) as producer:
        assert producer.send(topic, b"v", timestamp=1000).result().timestamp > 1_700_000_000_000


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_every_kind_of_acknowledgement_writes_everything(kafka_cluster: ClusterAddresses, acks: Acks) -> None:
    topic = new_topic(kafka_cluster, 3)
    with Producer(kafka_cluster.bootstrap_servers, acks=acks) as producer:
        for value in VALUES:
            producer.send(topic, value)
    assert sorted(map(bytes, filter(None, read_all(kafka_cluster, topic, len(VALUES))))) == VALUES


def test_the_async_form_writes_from_many_tasks(kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, 3)

    async def main() -> list[int]:
        async with AsyncProducer(kafka_cluster.bootstrap_servers, compression="zstd") as producer:

            async def write(values: list[bytes]) -> int:
                found = [await producer.send(topic, value) for value in values]
                return sum([(await delivery).offset >= 0 for delivery in found])

            return await asyncio.gather(*(write(VALUES[start::10]) for start in range(10)))

    assert asyncio.run(main()) == [500] * 10
    assert sorted(map(bytes, filter(None, read_all(kafka_cluster, topic, len(VALUES))))) == VALUES


def test_a_record_that_the_broker_refuses_is_an_error_of_its_own(kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, 3, configs={"max.message.bytes": "2000"})
    with Producer(kafka_cluster.bootstrap_servers, linger=0.0) as producer:
        large = producer.send(topic, b"x" * 5000, partition=0)
        small = producer.send(topic, b"x" * 10, partition=1)
        with pytest.raises(UndeliveredError, match="MESSAGE_TOO_LARGE"):
            producer.flush()
        assert "MESSAGE_TOO_LARGE" in str(large.error)
        assert small.result().offset == 0
        with pytest.raises(RecordWriteError):
            producer.send(topic, b"x", partition=3)


def test_batches_larger_than_the_topic_allows_are_split(kafka_cluster: ClusterAddresses) -> None:
    topic = new_topic(kafka_cluster, partitions=1, configs={"max.message.bytes": "3000"})
    with Producer(kafka_cluster.bootstrap_servers, linger=0.5) as producer:
        deliveries = [producer.send(topic, value) for value in VALUES]
        producer.flush()
    assert [delivery.result().offset for delivery in deliveries] == list(range(len(VALUES)))
    assert read_all(kafka_cluster, topic, len(VALUES)) == VALUES


def test_readers_of_committed_records_see_only_those(kafka_cluster: ClusterAddresses) -> None:
    topic, name = new_topic(kafka_cluster, 3), f"writer-{uuid4().hex[:8]}"
    with Producer(kafka_cluster.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for value in VALUES[number * 100 : number * 100 + 100]:
                producer.send(topic, value)
            producer.flush()
            if number % 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
    wanted = [value for number in (0, 2, 4) for value in VALUES[number * 100 : number * 100 + 100]]
    assert sorted(map(bytes, filter(None, read_all(kafka_cluster, topic, 300, committed=True)))) == wanted
    assert len(read_all(kafka_cluster, topic, 600)) == 600
    lines = console(kafka_cluster, topic, 300, "--isolation-level", "read_committed")
    assert sorted(lines) == [value.decode() for value in wanted]


def test_offsets_of_a_group_are_committed_with_the_transaction(kafka_cluster: ClusterAddresses) -> None:
    topic, name = new_topic(kafka_cluster, 3), f"group-{uuid4().hex[:8]}"
    place = TopicPartition(topic, 0)
    with Admin(kafka_cluster.bootstrap_servers) as admin, Producer(admin.client, transactional_id=name) as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send(topic, b"a")
            producer.send_offsets_to_transaction({place: 17}, name)
        assert admin.list_group_offsets(name, [place], require_stable=True)[place].offset == 17

        def abort() -> None:
            with producer.transaction():
                producer.send_offsets_to_transaction({place: 99}, name)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            abort()
        assert admin.list_group_offsets(name, [place], require_stable=True)[place].offset == 17


def test_an_older_producer_is_fenced_off(kafka_cluster: ClusterAddresses) -> None:
    topic, name = new_topic(kafka_cluster, 3), f"writer-{uuid4().hex[:8]}"
    servers = kafka_cluster.bootstrap_servers
    with Producer(servers, transactional_id=name) as older, Producer(servers, transactional_id=name) as newer:
        older.init_transactions()
        older.begin_transaction()
        older.send(topic, b"old").result()
        newer.init_transactions()
        with newer.transaction():
            newer.send(topic, b"new")
        with pytest.raises(ProducerFencedError):
            older.commit_transaction()
    assert read_all(kafka_cluster, topic, 1, committed=True) == [b"new"]


def test_killed_leaders_lose_and_repeat_nothing(breakable_kafka_cluster: BreakableCluster) -> None:
    cluster = breakable_kafka_cluster
    topic = new_topic(cluster, partitions=3, replicas=3, configs={"min.insync.replicas": "2"})
    deliveries: list[Delivery] = []
    with Producer(cluster.bootstrap_servers, compression="lz4", linger=0.0) as producer:
        for number, value in enumerate(VALUES * 4):
            deliveries.append(producer.send(topic, b"%05d " % number + value))
            if number == 4000:
                cluster.kill(1)
            elif number == 9000:
                cluster.start(1)
                cluster.pause(2)
            elif number == 14000:
                cluster.resume(2)
        producer.flush()
        assert all(delivery.error is None for delivery in deliveries)
    found = read_all(cluster, topic, len(deliveries))
    assert sorted(int(value[:5]) for value in found if value) == list(range(len(deliveries)))
