"""Writing records to a broker with acknowledgement by all replicas, lz4, and a result for each record.

Uses one real node on loopback, and a topic of four partitions. Every client writes the same records of 100 bytes and
reads the result of each. All use the level of Kafka's producer, the fast compressor of lz4, except aiokafka and
kafka-python, which cannot configure it: aiokafka uses level 9 of its library, kafka-python the library's default.
All use batches of up to 256 KiB and 5 ms of linger; the queue of confluent-kafka holds all records. Slow clients
get fewer records. Needs Java and Maven.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from rich.console import Console

from benchmarks.report import Figure, Times, print_figures
from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.client import AsyncProducer, Producer
from tests.support.kafka_cluster import KafkaCluster

__all__ = ["run"]

RECORDS: Final = 1_000_000
FEWER: Final = {"aiokafka": 5, "kafka-python": 10}
"""The divisor of the number of records."""
BATCH: Final = 1 << 18
LINGER_MS: Final = 5
TARGETS: Final = {"aiokafka": 4.0, "kafka-python": 8.0, "confluent-kafka": 1.3}
OURS: Final = ("blocking", "asyncio", "tables")
SHARES: Final = {
    ("blocking", "threadless"): 1.1,
    ("blocking", "confluent-kafka"): 1.0,
    ("tables", "confluent-kafka"): 0.3,
}
"""The maximum CPU time of a case, as a multiple of another case's."""
PROTOCOL: Final = (
    "1 M records of 100 bytes, acks=all, lz4 (fast level; aiokafka 9), results read; wall time for a record, "
    "or CPU time of the process, connections included, fastest of {rounds} rounds, interleaved"
)
VALUES: Final = tuple((b"%d:" % number + bytes(range(97, 123)) * 4)[:100] for number in range(1000))

_names = count()


def run(out: Console, rounds: int) -> list[Figure]:
    """Measure all clients in turns; return the figures."""
    rounds = max(2, rounds // 5)
    cases: dict[str, Callable[[str, str, int], int]] = {
        "blocking": _blocking,
        "threadless": _threadless,
        "asyncio": _asyncio,
        "tables": _tables,
        "confluent-kafka": _confluent,
        "aiokafka": _aiokafka,
        "kafka-python": _kafka_python,
    }
    walls = dict.fromkeys(cases, float("inf"))
    processors = dict(walls)
    with KafkaCluster(nodes=1, heap_mb=768) as cluster:
        for number in range(rounds):
            for case in list(cases)[:: 1 if number % 2 else -1]:
                wall, processor = _timed(cases[case], cluster.bootstrap_servers, case)
                walls[case], processors[case] = min(walls[case], wall), min(processors[case], processor)
    times, cpu = Times(walls), Times(processors)
    figures = [
        Figure(f"{ours}: {peer} takes", times.ratio(peer, ours), target=target)
        for ours in OURS
        for peer, target in TARGETS.items()
    ]
    figures += [
        Figure(f"{ours}: CPU time, of {other}", cpu.ratio(ours, other), target=target, at_most=True)
        for (ours, other), target in SHARES.items()
    ]
    figures += [Figure(f"{case}: thousand records a second", 1e-3 / walls[case], "") for case in cases]
    figures += [Figure(f"{case}: CPU time of a record", 1e6 * processors[case], "us") for case in cases]
    print_figures(out, "produce", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _timed(case: Callable[[str, str, int], int], servers: str, name: str) -> tuple[float, float]:
    """Return the wall-clock and CPU seconds of a record."""
    topic = f"produce-{next(_names)}"
    with Admin(servers) as admin:
        admin.create_topics([NewTopic(topic, 4, 1)]).all()
    records = RECORDS // FEWER.get(name, 1)
    start, processor = time.perf_counter(), time.process_time()
    delivered = case(servers, topic, records)
    seconds, used = time.perf_counter() - start, time.process_time() - processor
    assert delivered == records, f"{name} delivered {delivered} of {records}"
    with Admin(servers) as admin:
        admin.delete_topics([topic]).all()
    return seconds / records, used / records


def _threadless(servers: str, topic: str, records: int) -> int:
    return _blocking(servers, topic, records, threadless=True)


def _blocking(servers: str, topic: str, records: int, *, threadless: bool = False) -> int:
    with Producer(servers, compression="lz4", batch_size=BATCH, threadless=threadless) as producer:
        send = producer.send
        deliveries = [send(topic, value) for _ in range(records // len(VALUES)) for value in VALUES]
        producer.flush()
        return sum(delivery.error is None for delivery in deliveries)


def _tables(servers: str, topic: str, records: int) -> int:
    import pyarrow as pa

    table = pa.table({"value": pa.array(VALUES * (records // len(VALUES)), pa.binary())})
    with Producer(servers, compression="lz4", batch_size=BATCH) as producer:
        return int(producer.send_table(topic, table).num_rows)


def _asyncio(servers: str, topic: str, records: int) -> int:
    async def write() -> int:
        async with AsyncProducer(servers, compression="lz4", batch_size=BATCH) as producer:
            send = producer.send
            deliveries = [await send(topic, value) for _ in range(records // len(VALUES)) for value in VALUES]
            await producer.flush()
            return sum(delivery.error is None for delivery in deliveries)

    return asyncio.run(write())


def _confluent(servers: str, topic: str, records: int) -> int:
    from confluent_kafka import Producer as Confluent

    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "compression.type": "lz4",
        "acks": "all",
        "enable.idempotence": True,
        "batch.size": BATCH,
        "linger.ms": LINGER_MS,
        "queue.buffering.max.messages": 2 * RECORDS,
        "queue.buffering.max.kbytes": 1 << 20,
    }
    producer = Confluent(settings)
    delivered = 0

    def note(error: object, message: object) -> None:
        nonlocal delivered
        delivered += error is None

    for _ in range(records // len(VALUES)):
        for value in VALUES:
            producer.produce(topic, value, on_delivery=note)
        producer.poll(0)
    producer.flush()
    return delivered


def _aiokafka(servers: str, topic: str, records: int) -> int:
    from aiokafka import AIOKafkaProducer

    async def write() -> int:
        producer = AIOKafkaProducer(
            bootstrap_servers=servers,
            compression_type="lz4",
            acks="all",
            enable_idempotence=True,
            max_batch_size=BATCH,
            linger_ms=LINGER_MS,
        )
        await producer.start()
        try:
            futures = [await producer.send(topic, value) for _ in range(records // len(VALUES)) for value in VALUES]
            await producer.flush()
            return sum(future.exception() is None for future in futures)
        finally:
            await producer.stop()

    return asyncio.run(write())


def _kafka_python(servers: str, topic: str, records: int) -> int:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=servers,
        compression_type="lz4",
        acks="all",
        enable_idempotence=True,
        batch_size=BATCH,
        linger_ms=LINGER_MS,
    )
    futures = [producer.send(topic, value) for _ in range(records // len(VALUES)) for value in VALUES]
    producer.flush()
    producer.close()
    return sum(future.succeeded() for future in futures)
