"""Third-party clients with an embedded broker: topics, producing, and consuming from assigned partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import aiokafka
import confluent_kafka
import confluent_kafka.admin
import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer

COUNT = 200
WAIT = 30
VALUES = [b"value-%d" % number for number in range(COUNT)]


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(brokers=2, configs={"num.partitions": "1"}) as broker:
        yield broker
        assert broker.problems == []


def produce_ours(servers: str, topic: str) -> None:
    with Producer(servers, idempotence=False) as producer:
        for value in VALUES:
            producer.send(topic, value)
        producer.flush()


def produce_librdkafka(servers: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for value in VALUES:
        producer.produce(topic, value)
    assert producer.flush(WAIT) == 0


def produce_aiokafka(servers: str, topic: str) -> None:
    async def main() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers) as producer:
            for value in VALUES:
                await producer.send(topic, value)
            await producer.flush()

    asyncio.run(main())


def consume_ours(servers: str, topic: str) -> list[bytes | memoryview | None]:
    with Consumer(servers, auto_offset_reset="earliest") as consumer:
        consumer.assign([(topic, 0)])
        found: list[bytes | memoryview | None] = []
        while len(found) < COUNT:
            found += [bytes(record.value or b"") for record in consumer.poll(WAIT)]
        return found


def consume_librdkafka(servers: str, topic: str) -> list[bytes | memoryview | None]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": "unused"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    found = consumer.consume(COUNT, WAIT)
    consumer.close()
    return [message.value() for message in found]


def consume_aiokafka(servers: str, topic: str) -> list[bytes | memoryview | None]:
    async def main() -> list[bytes | memoryview | None]:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=servers) as consumer:
            partition = aiokafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            return [(await consumer.getone()).value for _ in range(COUNT)]

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("produce", "consume"),
    [
        (produce_ours, consume_librdkafka),
        (produce_librdkafka, consume_ours),
        (produce_ours, consume_aiokafka),
        (produce_aiokafka, consume_aiokafka),
    ],
)
def test_what_one_client_produces_another_consumes(
    broker: EmbeddedBroker,
    produce: Callable[[str, str], None],
    consume: Callable[[str, str], list[bytes | memoryview | None]],
) -> None:
    topic = f"{produce.__name__}-{consume.__name__}"
    with Admin(broker.bootstrap_servers) as admin:
        admin.create_topics([NewTopic(topic, 1, 1)])
    produce(broker.bootstrap_servers, topic)
    assert consume(broker.bootstrap_servers, topic) == VALUES
