"""The cost of the proxy: added time per exchange, the remaining throughput of real clients, CPU time and memory.

Uses one real node on loopback; a client in this process connects to it directly and through ``kafka-msgs tap`` in
another process, in turns. Small exchanges are sequential Metadata requests. Five librdkafka consumers, which read a
topic of 1 MB batches at the same time, show the remaining throughput. The speed of the proxy alone is measured by a
loop that reads responses of a megabyte and drops them, with several requests in flight: 64 MB at a time, and if the
proxy records, also 256 MB at a time, which exceeds its recording queue. Compared with a broker, which sends files
without copying them, such a loop measures copies and no client. The proxy shows nothing, or records everything into a
file, in either format. Needs Java and Maven, and a system with ``/proc``.
"""

from __future__ import annotations

import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from attrs import frozen
from confluent_kafka import Consumer, TopicPartition
from rich.console import Console

from benchmarks.consume import TUNED
from benchmarks.report import Figure, print_figures
from kafka_msgs import ApiKey, FetchRequest, FetchResponse, MetadataRequest, ProduceRequest, ProduceResponse, Request
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.records import BatchBuilder
from kafka_msgs.wire import SIZE_BYTES, decode_response, encode_request, join_frames
from tests.recorders.raw_client import Conversation
from tests.support.kafka_cluster import KafkaCluster

__all__ = ["run"]

EXCHANGES: Final = 3_000
WARM_UP: Final = 500
MEGABYTE: Final = 2**20
TOTAL: Final = 64 * MEGABYTE
MORE: Final = 256 * MEGABYTE
FEW_ROUNDS: Final = 3
TOPIC: Final = "load"
BATCHES: Final = 128
RECORD: Final = bytes(1000)
IN_FLIGHT: Final = 4
PROTOCOL: Final = (
    f"wall time, direct and through the proxy in turns: quantiles of {EXCHANGES} exchanges each; fastest reading by "
    f"five consumers; fastest loop over {TOTAL >> 20} or {MORE >> 20} MB, with {IN_FLIGHT} requests in flight; "
    "processor time of the proxy alone"
)
MODES: Final[dict[str, tuple[str, ...]]] = {
    "showing nothing": (),
    "recording raw": ("--record", "tap.jsonl", "--raw"),
    "recording": ("--record", "tap.jsonl"),
}
SHARES: Final = {"showing nothing": 0.85, "recording raw": 0.75}
"""The targets of the share that real clients keep. Hexadecimal digits have none: they are for small recordings."""
CONSUMERS: Final = 5
MOST_MEMORY: Final = 100.0


def run(out: Console, rounds: int) -> list[Figure]:
    """Measure the proxy in both modes; return the figures."""
    figures: list[Figure] = []
    with KafkaCluster(nodes=1, heap_mb=512, settings={"num.network.threads": "2"}) as cluster:
        port = cluster.port(1)
        fetch = _prepared(cluster, port)
        for mode, options in MODES.items():
            with _tap(port, options) as tapped:
                figures += _latency(mode, port, tapped)
            with _tap(port, options) as tapped:
                figures += _throughput(mode, port, tapped, fetch, TOTAL, max(3, rounds // 4))
            if options:
                with _tap(port, options) as tapped:
                    figures += _throughput(mode, port, tapped, fetch, MORE, FEW_ROUNDS)
            with _tap(port, options) as tapped:
                figures += _consumption(mode, port, tapped)
    print_figures(out, "the proxy", PROTOCOL, figures)
    return figures


def _prepared(cluster: KafkaCluster, port: int) -> Request[Any]:
    """Fill a topic; return the request that reads its beginning."""
    cluster.topics("--create", "--topic", TOPIC, "--partitions", "1")
    with Conversation(port, client_id="bench") as asking:
        topic = asking.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 12).topics[0]
        now = int(time.time() * 1000)  # A broker soon deletes records that look older than the retention time.
        builder = BatchBuilder(size_limit=MEGABYTE - 4096)
        while builder.append(None, RECORD, timestamp=now):
            pass
        batch = builder.build()
        for _ in range(BATCHES):
            data = PartitionProduceData(index=0, records=batch)
            produce = ProduceRequest(
                acks=1, timeout_ms=30_000, topic_data=(TopicProduceData(name=TOPIC, partition_data=(data,)),)
            )
            answer = asking.ask(produce, 9)
            assert isinstance(answer, ProduceResponse)
            assert answer.responses[0].partition_responses[0].error_code == 0
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MEGABYTE)
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=MEGABYTE,
        session_epoch=-1,
        topics=(FetchTopic(topic_id=topic.topic_id, partitions=(partition,)),),
    )


@frozen
class _Tapped:
    """The proxy in a separate process: its port and process id."""

    port: int
    process: int

    def peak_megabytes(self) -> float:
        """Return the largest resident memory."""
        status = Path(f"/proc/{self.process}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) / 1024

    def processor_seconds(self) -> float:
        """Return its CPU time. The program name, in brackets, may contain any character."""
        facts = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _tap(port: int, options: tuple[str, ...]) -> Iterator[_Tapped]:
    """Run the proxy in front of a broker."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-tap-") as directory:
        command = [str(Path(sys.executable).with_name("kafka-msgs")), "tap", "--listen", "127.0.0.1:0"]
        command += ["--output", "none", "--bootstrap-server", f"127.0.0.1:{port}", "--duration", "300", *options]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=directory)
        try:
            assert process.stderr is not None
            match = re.search(r"listening on \S+:(\d+)", process.stderr.readline())
            assert match is not None
            yield _Tapped(int(match[1]), process.pid)
        finally:
            process.terminate()
            process.communicate(timeout=60)


class _Client:
    """A connection that sends prepared frames and reads whole responses."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._stream = self._socket.makefile("rb", buffering=2**18)

    def send(self, frame: bytes) -> None:
        self._socket.sendall(frame)

    def read(self) -> bytes:
        size = int.from_bytes(self._stream.read(SIZE_BYTES), "big")
        payload: bytes = self._stream.read(size)
        return payload


def _latency(mode: str, direct: int, tapped: _Tapped) -> list[Figure]:
    frame = join_frames(encode_request(MetadataRequest(topics=()), 12, correlation_id=1, client_id="bench"))
    clients = _Client(direct), _Client(tapped.port)
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(EXCHANGES + WARM_UP):
        for client, taken in zip(clients, times, strict=True):
            start = time.perf_counter()
            client.send(frame)
            client.read()
            if number >= WARM_UP:
                taken.append((time.perf_counter() - start) * 1000)
    cuts = [statistics.quantiles(each, n=100) for each in times]
    return [
        Figure(f"{mode}: added latency, p50", cuts[1][49] - cuts[0][49], "ms", target=0.1, at_most=True),
        Figure(f"{mode}: added latency, p99", cuts[1][98] - cuts[0][98], "ms", target=0.5, at_most=True),
    ]


def _throughput(mode: str, direct: int, tapped: _Tapped, fetch: Request[Any], total: int, rounds: int) -> list[Figure]:
    frame = join_frames(encode_request(fetch, 17, correlation_id=1, client_id="bench"))
    clients = {"direct": _Client(direct), "tapped": _Client(tapped.port)}
    best = dict.fromkeys(clients, 0.0)
    before = tapped.processor_seconds()
    for number in range(rounds):
        for name in list(clients)[:: 1 if number % 2 else -1]:
            best[name] = max(best[name], _megabytes_per_second(clients[name], frame, total))
    megabytes = rounds * total / MEGABYTE
    what = f"{mode}, {total >> 20} MB"
    return [
        Figure(f"{what}: MB a second in a loop", best["tapped"], ""),
        Figure(f"{what}: MB a second in a loop without the proxy", best["direct"], ""),
        Figure(f"{what}: processor time", (tapped.processor_seconds() - before) / megabytes * 1000, "ms a MB"),
    ]


def _megabytes_per_second(client: _Client, frame: bytes, total: int) -> float:
    received = 0
    start = time.perf_counter()
    for _ in range(IN_FLIGHT):
        client.send(frame)
    while received < total:
        client.send(frame)
        payload = client.read()
        assert len(payload) > MEGABYTE // 2, "the broker has deleted the records"
        received += len(payload)
    taken = time.perf_counter() - start
    for _ in range(IN_FLIGHT):
        payload = client.read()
    message = decode_response(payload, ApiKey.FETCH, 17).message
    assert isinstance(message, FetchResponse)
    assert message.responses[0].partitions[0].records
    return received / MEGABYTE / taken


def _consumption(mode: str, direct: int, tapped: _Tapped) -> list[Figure]:
    best = {direct: 0.0, tapped.port: 0.0}
    for _ in range(FEW_ROUNDS):
        for port in best:
            best[port] = max(best[port], _all_consumed(port))
    share = best[tapped.port] / best[direct]
    return [
        Figure(f"{mode}: share of what five consumers read directly", share, target=SHARES.get(mode)),
        Figure(f"{mode}: memory", tapped.peak_megabytes(), "MB", target=MOST_MEMORY, at_most=True),
    ]


def _all_consumed(port: int) -> float:
    """Return the records per second of five consumers that read at the same time."""
    with ThreadPoolExecutor(CONSUMERS) as threads:
        return sum(threads.map(_consumed, [port] * CONSUMERS))


def _consumed(port: int) -> float:
    """Return the records that a consumer reads per second, from its first record to the end of the topic."""
    settings = {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "bench", "enable.auto.commit": False, **TUNED}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30)
    first = consumer.consume(1, 30)
    start = time.perf_counter()
    count = len(first)
    while count < end:
        count += len(consumer.consume(10_000, 1))
    taken = time.perf_counter() - start
    consumer.close()
    return count / taken
