"""librdkafka clients for the recording of a remote tier; runs in an environment with confluent-kafka.

``remote_tier.py HOST:PORT create`` creates the topic, ``write N`` writes its Nth part, ``keep`` keeps segments on the
broker's disk from now on, ``cut PARTITION OFFSET`` deletes the records before an offset, ``open`` begins a transaction
that does not end, and ``read`` prints the records that consumers of both isolation levels receive, as JSON lines.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

TOPIC = "orders"
PARTITIONS = 2
SECONDS = 30
CONFIG = {
    "remote.storage.enable": "true",
    "internal.segment.bytes": "1300",
    "index.interval.bytes": "200",
    "local.retention.ms": "1000",
    "retention.ms": "-1",
}
ISOLATIONS = ("read_uncommitted", "read_committed")


def create(bootstrap: str) -> None:
    topic = NewTopic(TOPIC, num_partitions=PARTITIONS, replication_factor=1, config=CONFIG)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([topic])[TOPIC].result(SECONDS)


def write(bootstrap: str, part: str) -> None:
    plain = Producer({"bootstrap.servers": bootstrap})
    writer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "writer"})
    writer.init_transactions(SECONDS)
    for number in range(6):
        for partition in range(PARTITIONS):
            send(plain, partition, f"part {part}, plain {number}")
        end = writer.abort_transaction if number % 2 else writer.commit_transaction
        writer.begin_transaction()
        for step in range(2 if number % 3 else 3):
            for partition in range(PARTITIONS):
                send(writer, partition, f"part {part}, {end.__name__} {number}.{step}")
        end(SECONDS)


def send(producer: Producer, partition: int, text: str) -> None:
    for number in range(2):
        headers = [("part", text.encode())] if number else None
        producer.produce(TOPIC, key=f"key {number}", value=text, partition=partition, headers=headers)
    producer.flush(SECONDS)


def keep(bootstrap: str) -> None:
    entry = ConfigEntry("local.retention.ms", "3600000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, TOPIC, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(SECONDS)


def cut(bootstrap: str, partition: str, offset: str) -> None:
    place = TopicPartition(TOPIC, int(partition), int(offset))
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_records([place])[place].result(SECONDS)


def leave_open(bootstrap: str) -> None:
    late = Producer({"bootstrap.servers": bootstrap, "transactional.id": "late", "transaction.timeout.ms": 600000})
    late.init_transactions(SECONDS)
    late.begin_transaction()
    send(late, 1, "open")
    plain = Producer({"bootstrap.servers": bootstrap})
    send(plain, 1, "after open")
    # Neither close nor destroy it: either would abort the transaction.
    os._exit(0)


def read(bootstrap: str) -> None:
    for isolation in ISOLATIONS:
        for partition in range(PARTITIONS):
            for record in consumed(bootstrap, isolation, partition):
                print(json.dumps({"isolation": isolation, "partition": partition, **record}))


def consumed(bootstrap: str, isolation: str, partition: int) -> list[dict[str, Any]]:
    settings = {"group.id": "reader", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": bootstrap, "enable.auto.commit": False, **settings})
    consumer.assign([TopicPartition(TOPIC, partition, OFFSET_BEGINNING)])
    found: list[dict[str, Any]] = []
    while (message := consumer.poll(SECONDS)) is not None:
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            consumer.close()
            return found
        if error is not None:
            raise RuntimeError(error)
        headers = [[name, value.decode()] for name, value in message.headers() or ()]
        facts = {"offset": message.offset(), "timestamp": message.timestamp()[1], "leaderEpoch": message.leader_epoch()}
        found.append(facts | {"key": message.key().decode(), "value": message.value().decode(), "headers": headers})
    raise RuntimeError("the consumer got nothing any more")


COMMANDS: dict[str, Callable[..., None]] = {
    "create": create,
    "write": write,
    "keep": keep,
    "cut": cut,
    "open": leave_open,
    "read": read,
}

if __name__ == "__main__":
    COMMANDS[sys.argv[2]](sys.argv[1], *sys.argv[3:])
