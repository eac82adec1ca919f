"""Reading a million records of 100 bytes from a real broker as a group member, compared with the peers.

Each library runs in a separate process: it joins a group, and the timing covers the first to the last record. Five
fields of every record are read. The same records are also read as Arrow tables; the peer converts its records to
columns for that. Needs Java and Maven for the broker, which listens on loopback and ends with the run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from rich.console import Console

from benchmarks.report import Figure, print_figures, rows_table

__all__ = ["TUNED", "run"]

RECORDS: Final = 1_000_000
PARTITIONS: Final = 4
SIZE: Final = 100
TOPIC: Final = "benchmark"
_SECONDS: Final = 240

TUNED: Final = {
    "queued.min.messages": 10_000_000,
    "queued.max.messages.kbytes": 1_048_576,
    "fetch.queue.backoff.ms": 5,
}
"""librdkafka properties. Without these, confluent-kafka stops fetching for a second whenever its queue is full."""

Batches = Iterator[list[Any]]

TARGETS: Final = {
    ("records", "aiokafka"): 4.0,
    ("records", "kafka-python"): 15.0,
    ("records", "confluent-kafka, tuned"): 2.0,
    ("tables", "confluent-kafka, tuned, tables"): 4.0,
    ("tables", "confluent-kafka, tables"): 10.0,
}

SHARES: Final = {
    ("kafka-msgs", "kafka-msgs, threadless"): 1.0,
    ("kafka-msgs", "confluent-kafka, tuned"): 0.6,
    ("kafka-msgs, tables", "confluent-kafka, tuned, tables"): 0.3,
}
"""The maximum CPU time of a reader, as a multiple of another reader's."""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    from tests.support.kafka_cluster import KafkaCluster

    rounds = min(rounds, 5)
    with KafkaCluster(nodes=1, settings=_ONE_NODE, heap_mb=768) as cluster:
        _fill(cluster.bootstrap_servers)
        walls = dict.fromkeys(READERS, float("inf"))
        processors = dict(walls)
        for number in range(rounds):
            for name in list(READERS)[:: 1 if number % 2 else -1]:
                wall, processor = _measured(name, cluster.bootstrap_servers)
                walls[name], processors[name] = min(walls[name], wall), min(processors[name], processor)
    shown = rows_table(
        f"{RECORDS:,} records of {SIZE} bytes, in a group", "library", "records/s", "processor µs/record"
    )
    for name in READERS:
        shown.add_row(name, f"{RECORDS / walls[name]:,.0f}", f"{processors[name] / RECORDS * 1e6:.2f}")
    console.print(shown)
    figures = [
        Figure(f"{ours}: CPU time, of {other}", processors[ours] / processors[other], target=target, at_most=True)
        for (ours, other), target in SHARES.items()
    ]
    for (form, peer), target in TARGETS.items():
        for ours in OURS[form]:
            figures.append(Figure(f"{ours} against {peer}", walls[peer] / walls[ours], target=target))
    protocol = f"a process each, interleaved, wall-clock or CPU time, fastest of {rounds} rounds"
    print_figures(console, "Consuming against the peers", protocol, figures)
    return figures


_ONE_NODE: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "num.io.threads": "4",
}

OURS: Final = {
    "records": ("kafka-msgs", "kafka-msgs, asyncio"),
    "tables": ("kafka-msgs, tables",),
}


def _fill(servers: str) -> None:
    """Write the records: 100 random bytes each."""
    import random

    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "queue.buffering.max.messages": 2_000_000,
            "linger.ms": 50,
            "batch.size": 200_000,
        }
    )
    source = random.Random(7)
    content = [source.randbytes(SIZE) for _ in range(1000)]
    for number in range(RECORDS):
        producer.produce(TOPIC, content[number % 1000], partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def _measured(name: str, servers: str) -> tuple[float, float]:
    """Run one reader in a separate process; return its wall-clock and CPU seconds."""
    command = [sys.executable, "-m", "benchmarks.consume", name, servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    wall, processor = json.loads(done.stdout.splitlines()[-1])
    return wall, processor


def _timed(batches: Iterator[int]) -> tuple[float, float]:
    """Read all records; return the wall-clock and CPU seconds from the first record to the last."""
    left = RECORDS - next(batches)
    wall, processor = time.perf_counter(), time.process_time()
    for count in batches:
        left -= count
        if left <= 0:
            break
    return time.perf_counter() - wall, time.process_time() - processor


def _group() -> str:
    return f"g{time.time_ns()}"


def _ours(servers: str, *, threadless: bool = False) -> Iterator[int]:
    from kafka_msgs.client.consumer import Consumer

    with Consumer(servers, group_id=_group(), auto_offset_reset="earliest", threadless=threadless) as consumer:
        consumer.subscribe(TOPIC)
        while True:
            records = consumer.poll(1.0)
            for record in records:
                _ = record.topic, record.partition, record.offset, record.timestamp, record.value
            if records:
                yield len(records)


def _ours_tables(servers: str) -> Iterator[int]:
    from kafka_msgs.client.consumer import Consumer

    columns = ("offset", "timestamp", "key", "value")
    with Consumer(servers, group_id=_group(), auto_offset_reset="earliest", max_records=100_000) as consumer:
        consumer.subscribe(TOPIC)
        while True:
            if count := consumer.poll_table(1.0, columns=columns).num_rows:
                yield count


def _ours_async(servers: str) -> Iterator[int]:
    import asyncio

    from kafka_msgs.client.consumer import AsyncConsumer

    with asyncio.Runner() as runner:
        consumer: Any = runner.run(
            _made(lambda: AsyncConsumer(servers, group_id=_group(), auto_offset_reset="earliest"))
        )
        consumer.subscribe(TOPIC)

        async def some() -> int:
            records = await consumer.poll(1.0)
            for record in records:
                _ = record.topic, record.partition, record.offset, record.timestamp, record.value
            return len(records)

        while True:
            if count := runner.run(some()):
                yield count


async def _made(make: Callable[[], Any]) -> Any:
    return make()


def _aiokafka(servers: str) -> Iterator[int]:
    import asyncio

    from aiokafka import AIOKafkaConsumer

    with asyncio.Runner() as runner:

        def make() -> Any:
            return AIOKafkaConsumer(
                TOPIC, bootstrap_servers=servers, group_id=_group(), auto_offset_reset="earliest",
                enable_auto_commit=False,
            )  # fmt: skip

        consumer = runner.run(_made(make))
        runner.run(consumer.start())

        async def some() -> int:
            found = await consumer.getmany(timeout_ms=1000, max_records=10_000)
            count = 0
            for records in found.values():
                for record in records:
                    _ = record.topic, record.partition, record.offset, record.timestamp, record.value
                count += len(records)
            return count

        while True:
            if count := runner.run(some()):
                yield count


def _kafka_python(servers: str) -> Iterator[int]:
    from kafka import KafkaConsumer

    consumer = KafkaConsumer(
        TOPIC, bootstrap_servers=servers, group_id=_group(), auto_offset_reset="earliest", enable_auto_commit=False
    )
    while True:
        count = 0
        for records in consumer.poll(1000, max_records=10_000).values():
            for record in records:
                _ = record.topic, record.partition, record.offset, record.timestamp, record.value
            count += len(records)
        if count:
            yield count


def _confluent_consumer(servers: str, tuned: bool) -> Any:
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": servers, "group.id": _group(), "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False, **(TUNED if tuned else {})})
    consumer.subscribe([TOPIC])
    return consumer


def _confluent(servers: str, tuned: bool = False) -> Iterator[int]:
    consumer = _confluent_consumer(servers, tuned)
    while True:
        records = consumer.consume(10_000, 0.1)
        for record in records:
            _ = record.topic(), record.partition(), record.offset(), record.timestamp(), record.value()
        if records:
            yield len(records)


def _confluent_tables(servers: str, tuned: bool = False) -> Iterator[int]:
    import pyarrow as pa

    consumer = _confluent_consumer(servers, tuned)
    while True:
        records = consumer.consume(100_000, 0.1)
        table = pa.table(
            {
                "topic": pa.array([record.topic() for record in records], pa.string()),
                "partition": pa.array([record.partition() for record in records], pa.int32()),
                "offset": pa.array([record.offset() for record in records], pa.int64()),
                "timestamp": pa.array([record.timestamp()[1] for record in records], pa.timestamp("ms", "UTC")),
                "key": pa.array([record.key() for record in records], pa.binary()),
                "value": pa.array([record.value() for record in records], pa.binary()),
            }
        )
        if table.num_rows:
            yield table.num_rows


READERS: Final[dict[str, Callable[[str], Iterator[int]]]] = {
    "kafka-msgs": _ours,
    "kafka-msgs, threadless": lambda servers: _ours(servers, threadless=True),
    "kafka-msgs, asyncio": _ours_async,
    "kafka-msgs, tables": _ours_tables,
    "aiokafka": _aiokafka,
    "kafka-python": _kafka_python,
    "confluent-kafka": _confluent,
    "confluent-kafka, tuned": lambda servers: _confluent(servers, tuned=True),
    "confluent-kafka, tables": _confluent_tables,
    "confluent-kafka, tuned, tables": lambda servers: _confluent_tables(servers, tuned=True),
}


if __name__ == "__main__":
    print(json.dumps(_timed(READERS[sys.argv[1]](sys.argv[2]))), flush=True)
    sys.stdout.flush()
    import os

    os._exit(0)  # do not wait for the peers' threads before the next round
