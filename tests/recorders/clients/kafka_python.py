"""kafka-python clients for the recording; the recorder runs them in an environment with kafka-python.

``kafka_python.py orders HOST:PORT`` writes, reads and inspects as the group ``audit``. ``kafka_python.py offsets
HOST:PORT`` prints the records of ``__consumer_offsets`` as JSON lines, with keys and values in hexadecimal.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.structs import OffsetAndMetadata

CLIENT_ID = "audit-client"
GROUP = "audit"
TOPIC = "orders"
POLL_SECONDS = 20


def produce(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=CLIENT_ID, linger_ms=50)
    for number in (2001, 2002, 2003):
        headers = [("source", b"returns"), ("attempt", bytes([number - 2000]))]
        producer.send(TOPIC, key=f"order-{number}".encode(), value=b'{"returned":true}', headers=headers)
    producer.close(timeout=10)


def poll_once(consumer: KafkaConsumer) -> dict[TopicPartition, list[Any]]:
    deadline = time.monotonic() + POLL_SECONDS
    while time.monotonic() < deadline:
        records: dict[TopicPartition, list[Any]] = consumer.poll(timeout_ms=500)
        if records:
            return records
    raise SystemExit("no records arrived")


def commit(consumer: KafkaConsumer, records: dict[TopicPartition, list[Any]]) -> None:
    ends = {partition: batch[-1].offset + 1 for partition, batch in records.items()}
    consumer.commit({partition: OffsetAndMetadata(end, "checked to here", -1) for partition, end in ends.items()})


def inspect(admin: KafkaAdminClient) -> None:
    admin.list_groups()
    admin.describe_groups([GROUP])
    admin.list_group_offsets({GROUP: None})
    admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC)], config_filter="all")
    admin.describe_cluster()


def orders(bootstrap: str) -> None:
    produce(bootstrap)
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id=CLIENT_ID)
    consumer = KafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        client_id=CLIENT_ID,
        group_id=GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        heartbeat_interval_ms=500,
    )
    commit(consumer, poll_once(consumer))
    inspect(admin)
    time.sleep(1.2)
    consumer.close()
    admin.delete_group_offsets(GROUP, [TopicPartition(TOPIC, 1)])
    inspect(admin)
    admin.close()


def describe(record: Any) -> dict[str, Any]:
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": record.key.hex(),
        "value": None if record.value is None else record.value.hex(),
    }


def offsets(bootstrap: str) -> None:
    partition = TopicPartition("__consumer_offsets", 0)
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, client_id="offsets-reader", enable_auto_commit=False)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    consumer.seek_to_beginning(partition)
    deadline = time.monotonic() + POLL_SECONDS
    while consumer.position(partition) < end and time.monotonic() < deadline:
        for record in consumer.poll(timeout_ms=500).get(partition, []):
            print(json.dumps(describe(record)))
    consumer.close()


if __name__ == "__main__":
    {"orders": orders, "offsets": offsets}[sys.argv[1]](sys.argv[2])
