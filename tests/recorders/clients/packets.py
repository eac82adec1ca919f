"""librdkafka clients for the recording of packets; the recorder runs them in an environment with confluent-kafka.

``packets.py shop HOST:PORT`` creates the topic ``orders``, writes to it with and without acknowledgements, reads it as
a group, and requests topics and groups that do not exist. ``packets.py sasl HOST:PORT`` logs in and lists the topics.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer
from confluent_kafka.admin import AdminClient, NewTopic

TOPIC = "orders"
SECONDS = 20
MESSAGES = 4


def ask(admin: AdminClient) -> None:
    created = admin.create_topics([NewTopic(TOPIC, num_partitions=2, replication_factor=1)])
    created[TOPIC].result(SECONDS)
    for asked in (
        admin.create_topics([NewTopic(TOPIC, num_partitions=1, replication_factor=1)])[TOPIC],
        admin.delete_topics(["nowhere"])["nowhere"],
        admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("nobody")])["nobody"],
    ):
        try:
            asked.result(SECONDS)
        except Exception as error:
            print(error)


def produce(config: dict[str, Any]) -> None:
    acknowledged = Producer({**config, "client.id": "till", "linger.ms": 20, "compression.type": "lz4"})
    for number in range(MESSAGES - 1):
        acknowledged.produce(TOPIC, key=str(number).encode(), value=b'{"item":"green tea"}', partition=0)
    acknowledged.flush(SECONDS)
    large = Producer({**config, "client.id": "archive", "compression.type": "none"})
    large.produce(TOPIC, value=b"oolong " * 3000, partition=0)
    large.flush(SECONDS)
    careless = Producer({**config, "client.id": "sensor", "acks": 0})
    careless.produce(TOPIC, value=b"21.5", partition=1)
    careless.flush(SECONDS)
    time.sleep(0.5)


def consume(config: dict[str, Any]) -> None:
    settings = {"group.id": "billing", "client.id": "billing-1", "auto.offset.reset": "earliest"}
    consumer = Consumer({**config, **settings, "enable.auto.commit": False, "fetch.wait.max.ms": 100})
    consumer.subscribe([TOPIC])
    deadline = time.monotonic() + SECONDS
    count = 0
    while count < MESSAGES + 1 and time.monotonic() < deadline:
        count += len(consumer.consume(MESSAGES, timeout=0.5))
    consumer.commit(asynchronous=False)
    consumer.close()


def main(session: str, bootstrap: str) -> None:
    config: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "socket.receive.buffer.bytes": 4096,
        "socket.send.buffer.bytes": 4096,
    }
    if session == "sasl":
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        admin = AdminClient({**config, **login, "sasl.username": "shop", "sasl.password": "open", "client.id": "shop"})
        admin.list_topics(timeout=SECONDS)
        return
    ask(AdminClient({**config, "client.id": "owner"}))
    produce(config)
    consume(config)


if __name__ == "__main__":
    main(*sys.argv[1:])
