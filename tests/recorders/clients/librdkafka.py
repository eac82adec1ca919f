"""librdkafka clients for the recording; the recorder runs them in an environment with confluent-kafka.

``librdkafka.py HOST:PORT`` creates a topic, writes to it with every compression, commits and aborts a transaction that
includes offsets, and reads as a static member of a group of each protocol.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "payments"
SOURCE_TOPIC = "orders"
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
POLL_SECONDS = 20


def create_topic(config: dict[str, Any]) -> AdminClient:
    admin = AdminClient({**config, "client.id": "payments-admin"})
    topic = NewTopic(TOPIC, num_partitions=1, replication_factor=1, config={"retention.ms": "3600000"})
    for created in admin.create_topics([topic]).values():
        created.result(POLL_SECONDS)
    return admin


def produce_compressed(config: dict[str, Any]) -> None:
    for compression in COMPRESSIONS:
        producer = Producer({**config, "client.id": f"payments-{compression}", "compression.type": compression})
        for cents in (250, 250, 1250):
            producer.produce(TOPIC, key=b"cents", value=f"{cents:>40}".encode(), headers={"via": b"card"})
        producer.flush(POLL_SECONDS)


def consume(config: dict[str, Any], group: str, protocol: str, count: int) -> Consumer:
    settings = {
        "group.id": group,
        "client.id": f"{group}-client",
        "group.protocol": protocol,
        "group.instance.id": f"{group}-1",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = Consumer({**config, **settings})
    consumer.subscribe([SOURCE_TOPIC])
    deadline = time.monotonic() + POLL_SECONDS
    while count and time.monotonic() < deadline:
        count -= len(consumer.consume(count, timeout=0.5))
    return consumer


def transact(config: dict[str, Any], consumer: Consumer) -> None:
    settings = {"client.id": "payments-transactional", "transactional.id": "payments-1", "linger.ms": 50}
    producer = Producer({**config, **settings})
    producer.init_transactions(POLL_SECONDS)
    for number, finish in enumerate((producer.commit_transaction, producer.abort_transaction), start=1):
        producer.begin_transaction()
        producer.produce(TOPIC, key=b"transaction", value=str(number).encode())
        offsets = [TopicPartition(SOURCE_TOPIC, 0, number)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), POLL_SECONDS)
        finish(POLL_SECONDS)


def main(bootstrap: str) -> None:
    config = {"bootstrap.servers": bootstrap}
    admin = create_topic(config)
    produce_compressed(config)
    for group, protocol in (("ledger", "classic"), ("stock", "consumer")):
        consumer = consume(config, group, protocol, 4)
        consumer.commit(asynchronous=False)
        transact(config, consumer)
        admin.describe_consumer_groups([group])[group].result(POLL_SECONDS)
        consumer.close()


if __name__ == "__main__":
    main(sys.argv[1])
