"""Clients stay behind the proxy when partition leaders move while they produce and consume."""

from __future__ import annotations

import time
import uuid
from pathlib import Path

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.shared_cluster import BreakableCluster
from tests.support.tap_process import TappedCluster

RECORDS = 400
PARTITIONS = 3


def test_a_broker_is_killed_and_its_clients_find_the_new_leaders_behind_the_proxy(
    breakable_kafka_cluster: BreakableCluster, tmp_path: Path
) -> None:
    """Every record arrives, all through the proxy: clients receive no broker address."""
    topic = f"tap-{uuid.uuid4().hex[:12]}"
    recording = tmp_path / "tap.jsonl"
    with TappedCluster(breakable_kafka_cluster.bootstrap_servers, recording, "--raw") as proxy:
        config = {"bootstrap.servers": proxy.bootstrap, "topic.metadata.refresh.interval.ms": 300_000}
        admin = AdminClient(config)
        admin.create_topics([NewTopic(topic, PARTITIONS, 3)])[topic].result(30)
        producer = Producer(config)
        consumer = Consumer(config | {"group.id": topic, "auto.offset.reset": "earliest"})
        consumer.subscribe([topic])
        for number in range(RECORDS):
            producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
            if number == RECORDS // 2:
                assert producer.flush(60) == 0
                breakable_kafka_cluster.stop(2)
        assert producer.flush(60) == 0
        found: set[bytes] = set()
        end = time.monotonic() + 60
        while len(found) < RECORDS and time.monotonic() < end:
            found |= {message.value() or b"" for message in consumer.consume(500, 1) if message.error() is None}
        consumer.close()
    assert found == {b"%d" % number for number in range(RECORDS)}
    assert [exchange.api for exchange in proxy.exchanges if exchange.problems] == []
    produced = {exchange.connection.server for exchange in proxy.exchanges if exchange.api == "Produce"}
    assert len(produced) == PARTITIONS  # each broker led one of them
