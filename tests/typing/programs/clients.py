"""Blocking and asyncio clients, consumers and producers have the same methods, with typed arguments and values."""

from __future__ import annotations

from typing import assert_type

from kafka_msgs import MetadataRequest, MetadataResponse
from kafka_msgs.client import AsyncClient, AsyncConsumer, AsyncProducer, Client, Consumer, Producer, TopicPartition
from kafka_msgs.client.producer import AsyncDelivery, Delivery, RecordMetadata
from kafka_msgs.records import ConsumerRecord


def blocking(client: Client, consumer: Consumer, producer: Producer) -> None:
    assert_type(client.call(MetadataRequest(topics=None), timeout=1.0), MetadataResponse)
    assert_type(consumer.poll(1.0, max_records=5), list[ConsumerRecord])
    assert_type(consumer.position(TopicPartition("t", 0)), int)
    assert_type(consumer.close(timeout=1.0), None)
    assert_type(producer.send("t", b"v", key=b"k"), Delivery)
    assert_type(producer.send("t").result(), RecordMetadata)
    assert_type(producer.flush(2.0), None)
    with consumer as same, producer.transaction() as transactional:
        assert_type(same, Consumer)
        assert_type(transactional, Producer)
    consumer.poll("soon")  # refused
    consumer.poll(1.0, 5)  # refused
    consumer.commit({"t": 1})  # refused
    consumer.no_such_method()  # refused
    producer.flush(until=1.0)  # refused


async def on_asyncio(client: AsyncClient, consumer: AsyncConsumer, producer: AsyncProducer) -> None:
    assert_type(await client.call(MetadataRequest(topics=None)), MetadataResponse)
    assert_type(await consumer.poll(1.0, max_records=5), list[ConsumerRecord])
    assert_type(await consumer.position(("t", 0)), int)
    consumer.seek({TopicPartition("t", 0): 5})
    async for record in consumer:
        assert_type(record, ConsumerRecord)
    assert_type(await producer.send("t", b"v"), AsyncDelivery)
    assert_type(await (await producer.send("t")), RecordMetadata)
    assert_type(await producer.flush(2.0), None)
    async with consumer as same, producer.transaction() as transactional:
        assert_type(same, AsyncConsumer)
        assert_type(transactional, AsyncProducer)
    await consumer.poll("soon")  # refused
    await producer.flush(until=1.0)  # refused


def made() -> None:
    Consumer("localhost:9092", group_id="g", client_id="me", timeout=1.0)
    Consumer(Client({"bootstrap.servers": "localhost:9092"}), group_id="g")
    Producer("localhost:9092", acks="all", compression="lz4", client_id=None)
    Consumer("localhost:9092", group="g")  # refused
    Producer("localhost:9092", acks="some")  # refused
    Consumer(3)  # refused


def not_mixed(client: Client, on_loop: AsyncClient, consumer: AsyncConsumer) -> None:
    AsyncConsumer(on_loop)
    AsyncConsumer(client)  # refused
    Producer(on_loop)  # refused
    records: list[ConsumerRecord] = consumer.poll()  # refused
    print(records)
