"""Processes that are stopped with SIGSTOP beyond each time-out and then continue: clients, members, brokers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.broker import EmbeddedBroker
from kafka_msgs.client import Consumer, Producer
from tests.support.cluster_topics import new_topic
from tests.support.shared_cluster import BreakableCluster
from tests.support.single_partition import values

COUNT = 400


@contextmanager
def python(code: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program, which ends at the end of the block at the latest."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def write_line(process: subprocess.Popen[str], text: str) -> None:
    """Write a line to the standard input of a process."""
    assert process.stdin is not None
    process.stdin.write(f"{text}\n")
    process.stdin.flush()


def read_line(process: subprocess.Popen[str]) -> str:
    """Return the next line of the standard output of a process, without its end."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


def stop_repeatedly(process: subprocess.Popen[str], times: int, seconds: float) -> None:
    """Stop a process several times."""
    for _ in range(times):
        time.sleep(0.15)
        if process.poll() is not None:
            return
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(process.pid, signal.SIGCONT)


@pytest.fixture
def servers() -> Iterator[str]:
    """An embedded broker with the topic ``t``."""
    with EmbeddedBroker(
        configs={"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "500"}
    ) as broker:
        with Admin(broker.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("t", 1)]).all()
        yield broker.bootstrap_servers


PRODUCE = f"""
import time
from kafka_msgs.client import Producer
options = dict(request_timeout=1.5, delivery_timeout=60.0, linger=0.0)
with Producer(input(), acks=ACKS, idempotence=IDEMPOTENCE, **options) as producer:
    for number in range({COUNT}):
        producer.send("t", b"%d" % number)
        time.sleep(0.005)
print("done")
"""


@pytest.mark.parametrize(("acks", "idempotence"), [(1, False), (-1, None)])
def test_a_producer_that_is_stopped_beyond_its_request_timeout_repeats_nothing(
    servers: str, acks: int, idempotence: bool | None
) -> None:
    """A response that arrived while the process was stopped is not late, even without idempotence."""
    code = PRODUCE.replace("ACKS", str(acks)).replace("IDEMPOTENCE", str(idempotence))
    with python(code) as process:
        write_line(process, servers)
        stop_repeatedly(process, 3, 2.0)
        assert read_line(process) == "done"
    assert values(servers, "t") == [b"%d" % number for number in range(COUNT)]


MEMBER = """
import sys
from kafka_msgs.client import Consumer
with Consumer(input(), group_id="g", auto_offset_reset="earliest", session_timeout=1.0, max_records=1) as consumer:
    consumer.subscribe(["t"])
    while True:
        for record in consumer.poll(0.2):
            print(record.offset, flush=True)
            if input() == "end":
                sys.exit()
"""


def test_a_member_that_is_stopped_beyond_its_session_returns_no_record_of_the_next_owner(servers: str) -> None:
    """The stopped member has records buffered. Another member gets the partition, and keeps it."""
    with Producer(servers) as producer:
        for number in range(10):
            producer.send("t", b"%d" % number)
    with python(MEMBER) as process, Consumer(servers, group_id="g", auto_offset_reset="earliest") as other:
        write_line(process, servers)
        assert read_line(process) == "0"
        os.kill(process.pid, signal.SIGSTOP)
        other.subscribe(["t"])
        found: list[int] = []
        deadline = time.monotonic() + 60
        while len(found) < 10:
            assert time.monotonic() < deadline
            found += [record.offset for record in other.poll(0.5)]
        other.commit()
        os.kill(process.pid, signal.SIGCONT)
        write_line(process, "next")
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.append(read_line(process)), daemon=True)
        reader.start()
        end = time.monotonic() + 3
        while time.monotonic() < end:
            other.poll(0.2)
        assert lines == []
    reader.join()


BROKER = """
from kafka_msgs.broker import EmbeddedBroker
with EmbeddedBroker() as broker:
    print(broker.bootstrap_servers, flush=True)
    input()
"""


def test_a_broker_that_is_stopped_beyond_every_timeout_costs_no_record() -> None:
    """Requests expire, connections are replaced, and the broker answers the old requests afterwards."""
    with python(BROKER) as process:
        servers = read_line(process)
        with Admin(servers) as admin:
            admin.create_topics([NewTopic("t", 1)]).all()
        stopper = threading.Thread(target=stop_repeatedly, args=(process, 3, 1.5))
        with Producer(servers, request_timeout=0.4, connect_timeout=1.0, delivery_timeout=60.0, linger=0.0) as producer:
            stopper.start()
            deliveries = []
            for number in range(COUNT):
                deliveries.append(producer.send("t", b"%d" % number))
                time.sleep(0.005)
            producer.flush()
            stopper.join()
        assert values(servers, "t") == [b"%d" % number for number in range(COUNT)]
        assert [each.result().offset for each in deliveries] == list(range(COUNT))


class GroupReader(threading.Thread):
    """A group member in a separate thread, which reads and commits until it has ``count`` records."""

    def __init__(self, servers: str, topic: str, **options: Any) -> None:
        super().__init__(daemon=True)
        self._servers, self._topic, self._options = servers, topic, options
        self.count = sys.maxsize
        self.found: list[tuple[int, bytes]] = []

    def run(self) -> None:
        options = {"group_id": f"{self._topic}-group", "auto_offset_reset": "earliest", **self._options}
        with Consumer(self._servers, **options) as consumer:
            consumer.subscribe(self._topic)
            deadline = time.monotonic() + 120
            while len(self.found) < self.count and time.monotonic() < deadline:
                records = consumer.poll(0.5)
                self.found += [(record.partition, bytes(record.value or b"")) for record in records]
                if records:
                    consumer.commit(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_node_of_kafka_that_is_stopped_beyond_every_timeout_costs_no_record(
    breakable_kafka_cluster: BreakableCluster, protocol: str
) -> None:
    """Each node stops in turn, beyond its own session and the time-outs of the clients, and then continues.

    One of them coordinates the group. Its records arrive once, and in order in each partition.
    """
    cluster = breakable_kafka_cluster
    topic = new_topic(cluster, 3, replicas=3, configs={"min.insync.replicas": "2"})
    times: dict[str, Any] = {"request_timeout": 2.0, "connect_timeout": 2.0}
    stop, number = threading.Event(), 0

    def stop_nodes() -> None:
        for node in cluster.nodes:
            cluster.pause(node)
            time.sleep(8.0)
            cluster.resume(node)
            time.sleep(4.0)
        stop.set()

    stopper = threading.Thread(target=stop_nodes, daemon=True)
    with Producer(cluster.bootstrap_servers, linger=0.0, delivery_timeout=90.0, **times) as producer:
        reader = GroupReader(cluster.bootstrap_servers, topic, group_protocol=protocol, **times)
        reader.start()
        stopper.start()
        while not stop.is_set():
            producer.send(topic, b"%06d" % number, partition=number % 3)
            number += 1
            time.sleep(0.005)
        producer.flush()
    reader.count = number
    reader.join(120)
    for partition in range(3):
        expected = [b"%06d" % each for each in range(partition, number, 3)]
        assert [value for part, value in reader.found if part == partition] == expected
