"""The embedded broker: startup time, the cost of a test, and throughput.

Answers five questions. How long does a start take after the import, and how much memory does the process use? How long
does a small test take, from the start of the broker to its end, compared with a real broker in its virtual machine? How
fast does librdkafka write and read a million records, compared with its own mock cluster and with a real broker? What
do the heartbeats of a large group cost? Embedded brokers run in a separate process, except for the first two questions.
Needs Java and Maven, and a system with ``/proc``.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import confluent_kafka
from confluent_kafka.admin import AdminClient, NewTopic
from rich.console import Console

from benchmarks.consume import TUNED
from benchmarks.report import Figure, Times, print_figures
from kafka_msgs import ConsumerGroupHeartbeatRequest
from kafka_msgs.admin import Admin
from kafka_msgs.admin import NewTopic as OurTopic
from kafka_msgs.client import Client, Consumer, Producer
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from tests.support.kafka_cluster import KafkaCluster

__all__ = ["run"]

RECORDS: Final = 1_000_000
VALUE: Final = bytes(range(100))
MEMBERS: Final = 1_000
HEARTBEATS: Final = 5
STARTS: Final = 10
PROTOCOL: Final = (
    "starts: median of {starts}; the small test: topic, 10 records, a group that reads and commits, describe, start "
    "included; a million records of 100 bytes, acks=all, by librdkafka; wall time, fastest of {rounds} rounds"
)
START: Final = """
import sys, time
import kafka_msgs.broker
from kafka_msgs.broker import EmbeddedBroker
import kafka_msgs.broker.cluster
begin = time.perf_counter()
with EmbeddedBroker() as broker:
    broker.bootstrap_servers
    ready = time.perf_counter() - begin
    resident = [line for line in open("/proc/self/status") if line.startswith("VmRSS")][0].split()[1]
    print(ready * 1000, int(resident) / 1024)
"""

_names = count()


def run(out: Console, rounds: int) -> list[Figure]:
    """Measure everything; return the figures."""
    rounds = max(1, rounds // 10)
    figures = [*_starts(), *_small_test(rounds), *_load(rounds), *_storm()]
    print_figures(out, "broker", PROTOCOL.format(rounds=rounds, starts=STARTS), figures)
    return figures


def _starts() -> Iterator[Figure]:
    lines = [subprocess.check_output([sys.executable, "-c", START], text=True).split() for _ in range(STARTS)]
    yield Figure("ready after", statistics.median(float(line[0]) for line in lines), "ms", 100, at_most=True)
    yield Figure("resident memory", statistics.median(float(line[1]) for line in lines), "MB", 60, at_most=True)


# A small test


def _small_test(rounds: int) -> Iterator[Figure]:
    best = {
        "real": min(_timed(lambda: KafkaCluster(nodes=1)) for _ in range(rounds)),
        "embedded": min(_timed(_embedded_here) for _ in range(rounds + 2)),
    }
    yield Figure("a small test: a real broker takes", Times(best).ratio("real", "embedded"), target=20)
    yield Figure("a small test", best["embedded"] * 1000, "ms", at_most=True)


def _embedded_here() -> AbstractContextManager[Any]:
    from kafka_msgs.broker import EmbeddedBroker

    return EmbeddedBroker()


def _timed(start: Callable[[], AbstractContextManager[Any]]) -> float:
    begin = time.perf_counter()
    with start() as broker:
        servers, topic = broker.bootstrap_servers, f"small-{next(_names)}"
        with Admin(servers) as admin:
            admin.create_topics([OurTopic(topic, 1, 1)]).all()
            with Producer(servers) as producer:
                deliveries = [producer.send(topic, VALUE) for _ in range(10)]
                producer.flush()
            assert all(each.error is None for each in deliveries)
            with Consumer(servers, group_id=topic, auto_offset_reset="earliest") as consumer:
                consumer.subscribe(topic)
                found = 0
                while found < len(deliveries):
                    found += len(consumer.poll(5))
                consumer.commit()
            admin.describe_groups([topic]).all()
    return time.perf_counter() - begin


# A million records


def _load(rounds: int) -> Iterator[Figure]:
    best: dict[str, tuple[float, float]] = {}
    for _ in range(rounds):
        for name, start in {"embedded": _embedded, "mock": _mock, "real": _real}.items():
            with start() as servers:
                taken = _written(servers, creates=name != "mock"), _read(servers)
            before = best.get(name, taken)
            best[name] = min(before[0], taken[0]), min(before[1], taken[1])
    for index, what in enumerate(("write", "read")):
        times = Times({name: taken[index] for name, taken in best.items()})
        yield Figure(f"{what}: share of the speed of the mock cluster", times.ratio("mock", "embedded"), target=0.3)
        yield Figure(f"{what}: share of the speed of a real broker", times.ratio("real", "embedded"), target=0.2)
        yield Figure(f"{what}: thousand records a second", RECORDS / best["embedded"][index] / 1000, "")


@contextmanager
def _embedded() -> Iterator[str]:
    with _process() as (servers, _):
        yield servers


@contextmanager
def _process() -> Iterator[tuple[str, int]]:
    """Run an embedded broker in a separate process; yield its address and the process id."""
    command = [sys.executable, "-m", "kafka_msgs", "broker", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def _mock() -> Iterator[str]:
    host = confluent_kafka.Producer({"test.mock.num.brokers": 1})
    brokers = host.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{each.host}:{each.port}" for each in brokers)
    del host


@contextmanager
def _real() -> Iterator[str]:
    with KafkaCluster(nodes=1, heap_mb=768) as cluster:
        yield cluster.bootstrap_servers


_TOPIC: Final = "load"


def _written(servers: str, *, creates: bool) -> float:
    """Write all records and return the seconds. The mock cluster creates topics on request."""
    admin = AdminClient({"bootstrap.servers": servers})
    if creates:
        admin.create_topics([NewTopic(_TOPIC, 1, 1)])[_TOPIC].result(30)
    admin.list_topics(_TOPIC, timeout=10)
    failed = 0

    def delivered(error: Any, message: Any) -> None:
        nonlocal failed
        failed += error is not None

    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "linger.ms": 5, "queue.buffering.max.messages": RECORDS + 1}
    )
    begin = time.perf_counter()
    for number in range(RECORDS):
        producer.produce(_TOPIC, VALUE, partition=0, on_delivery=delivered)
        if number % 10_000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0
    taken = time.perf_counter() - begin
    assert failed == 0
    return taken


def _read(servers: str) -> float:
    """Read the existing records; return the seconds scaled to all written records, since the mock cluster keeps few."""
    settings = {"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest", **TUNED}
    consumer = confluent_kafka.Consumer(settings)
    first: int
    end: int
    first, end = consumer.get_watermark_offsets(confluent_kafka.TopicPartition(_TOPIC, 0), timeout=10)
    consumer.assign([confluent_kafka.TopicPartition(_TOPIC, 0, first)])
    begin = time.perf_counter()
    found = 0
    while found < end - first:
        found += len(consumer.consume(10_000, 1))
    taken = time.perf_counter() - begin
    consumer.close()
    return taken * RECORDS / (end - first)


# A storm of heartbeats


def _storm() -> Iterator[Figure]:
    """Measure the broker's CPU share with a thousand members in one group, each sending one heartbeat per second."""
    with _process() as (servers, process), Client(servers) as client:
        group = "storm"
        client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=(group,)))
        with Admin(servers) as admin:
            admin.create_topics([OurTopic("storm", 100, 1)]).all()
        epochs = {name: _heartbeat(client, group, name, 0) for name in (f"member-{n}" for n in range(MEMBERS))}
        before, begin = _processor_seconds(process), time.perf_counter()
        for number in range(HEARTBEATS):
            for name in epochs:
                epochs[name] = _heartbeat(client, group, name, epochs[name])
            time.sleep(max(0.0, begin + number + 1 - time.perf_counter()))
        share = (_processor_seconds(process) - before) / (time.perf_counter() - begin)
    yield Figure(f"{MEMBERS} members, a heartbeat a second each: of a core", share * 100, "%", 100, at_most=True)


def _heartbeat(client: Client, group: str, member: str, epoch: int) -> int:
    joins = epoch == 0
    answer = client.call(
        ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member,
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if joins else -1,
            subscribed_topic_names=("storm",) if joins else None,
            topic_partitions=() if joins else None,
        ),
        retry=False,
    )
    assert not answer.error_code, answer
    return answer.member_epoch


def _processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
