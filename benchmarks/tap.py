"""What the proxy costs: time added to each exchange, and the share of the throughput that is left.

One real node on loopback; a client in this process asks it directly and through ``kafka-msgs tap`` in another process,
in turns. Small exchanges are Metadata requests, one after the other. For throughput, 64 MB of records are read in
responses of a megabyte, with several requests in flight. The proxy shows nothing, or records
everything into a file. Needs Java and Maven.
"""

from __future__ import annotations

import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from benchmarks.report import Figure, print_figures
from kafka_msgs import ApiKey, FetchRequest, FetchResponse, MetadataRequest, ProduceRequest, ProduceResponse, Request
from kafka_msgs.messages.fetch_request import FetchPartition, FetchTopic
from kafka_msgs.messages.metadata_request import MetadataRequestTopic
from kafka_msgs.messages.produce_request import PartitionProduceData, TopicProduceData
from kafka_msgs.records import BatchBuilder
from kafka_msgs.wire import SIZE_BYTES, decode_response, encode_request, join_frames
from tests.recorders.asking import Conversation
from tests.support.kafka_cluster import KafkaCluster

__all__ = ["run"]

EXCHANGES: Final = 3_000
WARM_UP: Final = 500
TOTAL: Final = 64 * 2**20
MEGABYTE: Final = 2**20
TOPIC: Final = "load"
RECORD: Final = bytes(1000)
IN_FLIGHT: Final = 4
PROTOCOL: Final = (
    f"wall time, direct and through the proxy in turns: quantiles of {EXCHANGES} exchanges each; fastest reading of "
    f"{TOTAL >> 20} MB, with {IN_FLIGHT} requests in flight"
)
MODES: Final[dict[str, tuple[str, ...]]] = {"showing nothing": (), "recording": ("--record", "tap.jsonl")}


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
                figures += _throughput(mode, port, tapped, fetch, max(3, rounds // 4))
    print_figures(out, "the proxy", PROTOCOL, figures)
    return figures


def _prepared(cluster: KafkaCluster, port: int) -> Request[Any]:
    """Fill a topic; return the request that reads its beginning."""
    cluster.topics("--create", "--topic", TOPIC, "--partitions", "1")
    with Conversation(port, client_id="bench") as asking:
        topic = asking.ask(MetadataRequest(topics=(MetadataRequestTopic(name=TOPIC),)), 12).topics[0]
        now = int(time.time() * 1000)  # A broker soon deletes what looks older than the retention time.
        builder = BatchBuilder(size_limit=MEGABYTE - 4096)
        while builder.append(None, RECORD, timestamp=now):
            pass
        batch = builder.build()
        for _ in range(8):
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


@contextmanager
def _tap(port: int, options: tuple[str, ...]) -> Iterator[int]:
    """The proxy in a process of its own; gives its port."""
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-tap-") as directory:
        command = [
            str(Path(sys.executable).with_name("kafka-msgs")),
            "tap",
            "--listen",
            "127.0.0.1:0",
            "--output",
            "none",
        ]
        command += ["--bootstrap-server", f"127.0.0.1:{port}", "--duration", "300", *options]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=directory)
        try:
            assert process.stderr is not None
            match = re.search(r"listening on \S+:(\d+)", process.stderr.readline())
            assert match is not None
            yield int(match[1])
        finally:
            process.terminate()
            process.wait(30)


class _Client:
    """A connection that sends ready frames and reads whole responses."""

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


def _latency(mode: str, direct: int, tapped: int) -> list[Figure]:
    frame = join_frames(encode_request(MetadataRequest(topics=()), 12, correlation_id=1, client_id="bench"))
    clients = _Client(direct), _Client(tapped)
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
        Figure(f"{mode}: added latency, p50", cuts[1][49] - cuts[0][49], "ms", target=0.3, at_most=True),
        Figure(f"{mode}: added latency, p99", cuts[1][98] - cuts[0][98], "ms", target=1.0, at_most=True),
    ]


def _throughput(mode: str, direct: int, tapped: int, fetch: Request[Any], rounds: int) -> list[Figure]:
    frame = join_frames(encode_request(fetch, 17, correlation_id=1, client_id="bench"))
    clients = {"direct": _Client(direct), "tapped": _Client(tapped)}
    best = dict.fromkeys(clients, 0.0)
    for number in range(rounds):
        for name in list(clients)[:: 1 if number % 2 else -1]:
            best[name] = max(best[name], _megabytes_per_second(clients[name], frame))
    return [Figure(f"{mode}: share of the direct throughput", best["tapped"] / best["direct"], target=0.6)]


def _megabytes_per_second(client: _Client, frame: bytes) -> float:
    received = 0
    start = time.perf_counter()
    for _ in range(IN_FLIGHT):
        client.send(frame)
    while received < TOTAL:
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
