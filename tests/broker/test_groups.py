"""Groups and transactions of real clients with an embedded broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, Literal, TypeAlias

import aiokafka
import confluent_kafka
import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer
from tests.support.cluster_topics import new_name
from tests.support.eventually import until

COUNT: Final = 60
PARTITIONS: Final = 3
WAIT: Final = 30
VALUES: Final = [b"value-%d" % number for number in range(COUNT)]

Reader: TypeAlias = Callable[[str, str, str], list[bytes]]
"""Reads all values of a topic in a group, and commits. Arguments: bootstrap servers, topic and group."""


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(brokers=3) as broker:
        yield broker
        assert broker.problems == []


@pytest.fixture
def admin(broker: EmbeddedBroker) -> Iterator[Admin]:
    with Admin(broker.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: Admin) -> str:
    name = new_name("topic")
    admin.create_topics([NewTopic(name, PARTITIONS, 3)])
    return name


def produce(servers: str, topic: str, values: list[bytes]) -> None:
    """Produce values to the partitions in turn."""
    with Producer(servers) as producer:
        for number, value in enumerate(values):
            producer.send(topic, value, partition=number % PARTITIONS)
        producer.flush()


def with_ours(protocol: Literal["classic", "consumer"]) -> Reader:
    def read(servers: str, topic: str, group: str) -> list[bytes]:
        with Consumer(servers, group_id=group, group_protocol=protocol, auto_offset_reset="earliest") as consumer:
            consumer.subscribe(topic)
            found: list[Any] = []
            while len(found) < COUNT:
                found += [each.value for each in consumer.poll(WAIT)]
            consumer.commit()
            return found

    return read


def with_librdkafka(protocol: str) -> Reader:
    def read(servers: str, topic: str, group: str) -> list[bytes]:
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([topic])
        found: list[bytes] = []
        try:
            while len(found) < COUNT:
                found += [each.value() for each in consumer.consume(COUNT, 1) if each.error() is None]
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        return found

    return read


def with_aiokafka(servers: str, topic: str, group: str) -> list[bytes]:
    async def main() -> list[bytes]:
        found: list[bytes] = []
        async with aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=servers, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False
        ) as consumer:
            while len(found) < COUNT:
                for records in (await consumer.getmany(timeout_ms=1000)).values():
                    found += [each.value for each in records]
            await consumer.commit()
        return found

    return asyncio.run(main())


READERS: Final[dict[str, Reader]] = {
    "ours, classic": with_ours("classic"),
    "ours, KIP-848": with_ours("consumer"),
    "librdkafka, classic": with_librdkafka("classic"),
    "librdkafka, KIP-848": with_librdkafka("consumer"),
    "aiokafka": with_aiokafka,
}


@pytest.mark.parametrize("reader", READERS)
def test_a_member_reads_everything_and_commits(broker: EmbeddedBroker, admin: Admin, topic: str, reader: str) -> None:
    produce(broker.bootstrap_servers, topic, VALUES)
    group = new_name("group")
    found = READERS[reader](broker.bootstrap_servers, topic, group)
    assert sorted(found) == sorted(VALUES)
    offsets = {each.partition: offset.offset for each, offset in admin.list_group_offsets(group).items()}
    assert offsets == dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS)
    assert [str(each.state) for each in admin.list_groups() if each.group_id == group] == ["Empty"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_partitions_move_to_members_that_come_and_from_those_that_go(
    broker: EmbeddedBroker, topic: str, protocol: str
) -> None:
    settings: dict[str, Any] = {"group_id": new_name("group"), "group_protocol": protocol}
    first = Consumer(broker.bootstrap_servers, **settings)
    second = Consumer(broker.bootstrap_servers, **settings)
    with first:
        first.subscribe(topic)
        with second:
            second.subscribe(topic)

            def divided() -> bool:
                first.poll(0.05)
                second.poll(0.05)
                both = first.assignment, second.assignment
                return all(both) and sum(map(len, both)) == PARTITIONS and not both[0] & both[1]

            until(divided)

        def alone() -> bool:
            first.poll(0.05)
            return len(first.assignment) == PARTITIONS

        until(alone)


def committed(servers: str, topic: str, count: int) -> list[bytes]:
    """Return the values that a read_committed consumer receives."""
    with Consumer(servers, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([(topic, partition) for partition in range(PARTITIONS)])
        found: list[bytes] = []
        while len(found) < count:
            found += [bytes(each.value or b"") for each in consumer.poll(WAIT)]
        return found


def test_transactions_of_librdkafka(broker: EmbeddedBroker, topic: str) -> None:
    settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": new_name("transactions")}
    producer = confluent_kafka.Producer(settings)
    producer.init_transactions(WAIT)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for number, value in enumerate(VALUES):
            producer.produce(topic, end.__name__.encode() + value, partition=number % PARTITIONS)
        assert producer.flush(WAIT) == 0
        end(WAIT)
    found = committed(broker.bootstrap_servers, topic, 2 * COUNT)
    assert sorted(found) == sorted([b"commit_transaction" + value for value in VALUES] * 2)


def test_offsets_that_are_committed_in_a_transaction(broker: EmbeddedBroker, admin: Admin, topic: str) -> None:
    """A librdkafka consumer passes its offsets to a producer. They take effect when the transaction commits."""
    servers, group = broker.bootstrap_servers, new_name("group")
    produce(servers, topic, VALUES)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": "false",
        }
    )
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": new_name("transactions")})
    consumer.subscribe([topic])
    try:
        read: list[Any] = []
        while len(read) < COUNT:
            read += [each for each in consumer.consume(COUNT, 1) if each.error() is None]
        producer.init_transactions(WAIT)
        for commits in (False, True):
            producer.begin_transaction()
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), WAIT)
            known = {offset.offset for offset in admin.list_group_offsets(group).values()}
            assert known == set(), "offsets of an open or aborted transaction"
            (producer.commit_transaction if commits else producer.abort_transaction)(WAIT)
        offsets = {each.partition: offset.offset for each, offset in admin.list_group_offsets(group).items()}
        assert offsets == dict.fromkeys(range(PARTITIONS), COUNT // PARTITIONS)
    finally:
        with suppress(RuntimeError):
            consumer.close()
