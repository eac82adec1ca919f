"""librdkafka clients for the recording of groups; runs in an environment with confluent-kafka.

``group_members.py past HOST:PORT`` creates and fills the topics, and leaves groups without members, and offsets from
committed and uncommitted transactions. ``group_members.py present HOST:PORT`` starts permanent members and a
transaction that stays open; it prints ``ready`` once every member has its partitions, and runs until it is killed.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

SECONDS = 30
ROLL_SECONDS = 3.2
TOPICS = {"orders": 2, "payments": 2}
Member = tuple[str, str, str, str, dict[str, str]]
# Group, protocol, member, subscription, and further settings.
LIVE: tuple[Member, ...] = (
    ("billing", "classic", "billing-a", "orders", {"group.instance.id": "till-1"}),
    ("billing", "classic", "billing-b", "orders", {}),
    ("shipping", "consumer", "shipping-a", "orders", {}),
    ("shipping", "consumer", "shipping-b", "orders", {"client.rack": "north"}),
    ("watch", "consumer", "watch-a", "^pay.*", {}),
)
LEFT: tuple[Member, ...] = (
    ("audit", "classic", "audit-a", "orders", {}),
    ("inspection", "consumer", "inspection-a", "payments", {}),
)


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, num_partitions=count, replication_factor=1) for name, count in TOPICS.items()]
    for created in admin.create_topics(topics).values():
        created.result(SECONDS)


def produce(bootstrap: str, topic: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    items = itertools.cycle(("green tea", "oolong", "mint", "cocoa"))
    for number, item in zip(range(first, first + count), items, strict=False):
        value = f'{{"order":{number},"item":"{item}"}}'
        producer.produce(topic, key=f"order-{number}", value=value, partition=number % 2)
    producer.flush(SECONDS)


def member(bootstrap: str, group: str, protocol: str, name: str, topic: str, settings: dict[str, str]) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([topic])
    return consumer


def settle(consumers: Sequence[Consumer]) -> None:
    """Poll until every member has partitions, and for a while no member has received a record or an assignment."""
    quiet_since = time.monotonic()
    held: list[tuple[str, ...]] = []
    while time.monotonic() - quiet_since < ROLL_SECONDS or not all(held):
        read = [consumer.poll(0.1) for consumer in consumers]
        now_held = [tuple(map(str, consumer.assignment())) for consumer in consumers]
        if any(read) or now_held != held:
            quiet_since = time.monotonic()
        held = now_held


def commit(consumers: Sequence[Consumer]) -> None:
    for consumer in consumers:
        positions = consumer.position(consumer.assignment())
        consumer.commit(offsets=[each for each in positions if each.offset >= 0], asynchronous=False)


def transaction(producer: Producer, consumer: Consumer, offset: int) -> None:
    producer.begin_transaction()
    for number in range(2):
        producer.produce("payments", key=f"order-{offset + number}", value=b'{"paid":true}', partition=number)
    offsets = [TopicPartition("orders", 0, offset), TopicPartition("orders", 1, offset + 1)]
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), SECONDS)
    producer.flush(SECONDS)


def transactional(bootstrap: str, name: str) -> tuple[Producer, Consumer]:
    settings: dict[str, str | int] = {"transactional.id": name, "transaction.timeout.ms": 300_000}
    producer = Producer({"bootstrap.servers": bootstrap, **settings})
    producer.init_transactions(SECONDS)
    return producer, Consumer({"bootstrap.servers": bootstrap, "group.id": "settlement"})


def past(bootstrap: str) -> None:
    create_topics(bootstrap)
    produce(bootstrap, "orders", 1000, 8)
    produce(bootstrap, "payments", 1000, 4)
    gone = [member(bootstrap, *each) for each in LEFT]
    settle(gone)
    commit(gone)
    for consumer in gone:
        consumer.close()
    producer, consumer = transactional(bootstrap, "settlement-writer")
    transaction(producer, consumer, 1)
    producer.commit_transaction(SECONDS)
    transaction(producer, consumer, 2)
    producer.abort_transaction(SECONDS)


def present(bootstrap: str) -> None:
    live = [member(bootstrap, *each) for each in LIVE]
    for first in (1008, 1012, 1016):
        produce(bootstrap, "orders", first, 4)
        settle(live)
        commit(live)
    producer, consumer = transactional(bootstrap, "settlement-late")
    transaction(producer, consumer, 3)
    print("ready", flush=True)
    while True:
        for each in live:
            each.poll(0.1)


if __name__ == "__main__":
    {"past": past, "present": present}[sys.argv[1]](sys.argv[2])
