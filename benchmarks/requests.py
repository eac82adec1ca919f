"""Requests over one connection: CPU time of the client, compared with other Python clients.

A broker that responds from memory in a separate process gets ApiVersions (small) and Metadata requests for 1,224
partitions (about 39 KB), with 32 requests in flight. With ``KAFKA_BOOTSTRAP`` set to the address of a real broker, that
broker gets the same requests; it needs a topic with the same number of partitions. Every client decodes every response.
Each peer runs in its typical way: aiokafka with 32 tasks, kafka-python with its own loop.

Sequential calls show the latency that the I/O thread of a blocking client adds.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from statistics import median
from typing import Any, Final, TypeAlias

from rich.console import Console

from benchmarks.canned_broker import HOST, canned_broker
from benchmarks.report import Figure, Times, print_figures, rows_table
from kafka_msgs.client import AsyncClient, Client
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow, Future, wait_for
from kafka_msgs.message import Request
from kafka_msgs.messages.api_versions_request import ApiVersionsRequest
from kafka_msgs.messages.metadata_request import MetadataRequest

__all__ = ["run"]

Ask: TypeAlias = Callable[[str, str, int], float]
"""Sends a number of requests of a kind to an address; returns the CPU time in seconds."""

IN_FLIGHT: Final = 32
OURS: Final = ("blocking", "asyncio")
AIOKAFKA: Final = "aiokafka 0.14.0"
KAFKA_PYTHON: Final = "kafka-python 3.0.12"
COUNTS: Final = {"ApiVersions": 3000, "Metadata": 300}
VERSIONS: Final = {"ApiVersions": 2, "Metadata": 5}
"""The latest versions that all clients support."""

PROTOCOL: Final = f"{IN_FLIGHT} in flight, same process, interleaved, processor time, fastest of {{rounds}} rounds"
CALLS: Final = 1000
CALL_PROTOCOL: Final = "ApiVersions, one after the other, wall-clock time, smallest median of {rounds} rounds"

PEERS: Final = (AIOKAFKA, KAFKA_PYTHON)

Targets: TypeAlias = Mapping[tuple[str, str, str], float]
"""The peer's relative time, by facade of kafka-msgs, request and peer."""

CANNED_TARGETS: Final[Targets] = {
    (ours, name, peer): target
    for ours, name, target in (
        ("blocking", "ApiVersions", 10.0),
        ("asyncio", "ApiVersions", 7.0),
        ("blocking", "Metadata", 12.0),
        ("asyncio", "Metadata", 12.0),
    )
    for peer in PEERS
}
BROKER_TARGETS: Final[Targets] = {
    (ours, name, peer): target
    for name, peer, target in (
        ("ApiVersions", AIOKAFKA, 2.0),
        ("ApiVersions", KAFKA_PYTHON, 2.0),
        ("Metadata", AIOKAFKA, 4.0),
        ("Metadata", KAFKA_PYTHON, 3.0),
    )
    for ours in OURS
}

REQUESTS: Final[Mapping[str, Request[Any]]] = {
    "ApiVersions": ApiVersionsRequest(client_software_name="benchmark", client_software_version="1"),
    "Metadata": MetadataRequest(topics=None),
}


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    with canned_broker() as port:
        address = f"{HOST}:{port}"
        figures = _measure(console, rounds, "canned", address, CANNED_TARGETS)
        figures += _measure_calls(console, rounds, address)
    real = os.environ.get("KAFKA_BOOTSTRAP")
    if real is not None:
        figures += _measure(console, rounds, "real broker", real, BROKER_TARGETS)
    return figures


def _measure(console: Console, rounds: int, broker: str, address: str, targets: Targets) -> list[Figure]:
    cases: dict[str, Ask] = {
        "blocking": _blocking, "asyncio": _asyncio, AIOKAFKA: _aiokafka, KAFKA_PYTHON: _kafka_python,
    }  # fmt: skip
    table = rows_table(f"Requests, {broker}", "microseconds a request", *cases)
    figures = []
    for name, count in COUNTS.items():
        best = dict.fromkeys(cases, float("inf"))
        for number in range(rounds):
            for case in list(cases)[:: 1 if number % 2 else -1]:
                best[case] = min(best[case], cases[case](address, name, count) / count)
        times = Times(best)
        table.add_row(name, *(f"{seconds * 1e6:.1f}" for seconds in times.seconds.values()))
        figures += [
            Figure(f"{ours}, {name}, {broker}: {peer} takes", times.ratio(peer, ours), target=targets[ours, name, peer])
            for ours in OURS
            for peer in PEERS
        ]
    console.print(table)
    print_figures(console, f"Requests, {broker}", PROTOCOL.format(rounds=rounds), figures)
    return figures


def _measure_calls(console: Console, rounds: int, address: str) -> list[Figure]:
    """Measure single calls with and without an I/O thread."""
    best = {True: float("inf"), False: float("inf")}
    for _ in range(rounds):
        for threadless in best:
            best[threadless] = min(best[threadless], _median_call(address, threadless=threadless))
    added = 1e6 * (best[False] - best[True])
    figures = [
        Figure("a call, threadless", 1e6 * best[True], "us"),
        Figure("a call: the I/O thread adds", added, "us", target=60, at_most=True),
    ]
    print_figures(console, "Single calls, canned", CALL_PROTOCOL.format(rounds=rounds), figures)
    return figures


def _median_call(address: str, *, threadless: bool) -> float:
    with Client(address, threadless=threadless) as client:
        times = []
        for _ in range(CALLS):
            start = time.perf_counter()
            client.call(REQUESTS["ApiVersions"], version=VERSIONS["ApiVersions"])
            times.append(time.perf_counter() - start)
        return median(times)


def _blocking(address: str, name: str, count: int) -> float:
    with Client(address) as client:
        client.run(_pipelined(client.core, name, IN_FLIGHT))
        start = time.process_time()
        client.run(_pipelined(client.core, name, count))
        return time.process_time() - start


def _pipelined(core: ClientCore, name: str, count: int) -> Flow[None]:
    """Keep requests in flight from a single flow."""
    link = yield from core.directory.any_connection(deadline=core.deadline(None))
    waiting: deque[Future[Any]] = deque()
    for _ in range(count):
        if len(waiting) >= IN_FLIGHT:
            yield from wait_for(waiting.popleft(), core.deadline(None))
        waiting.append(link.send(REQUESTS[name], VERSIONS[name]))
    while waiting:
        yield from wait_for(waiting.popleft(), core.deadline(None))


def _asyncio(address: str, name: str, count: int) -> float:
    async def measure() -> float:
        async with AsyncClient(address) as client:
            return await _with_tasks(lambda: client.call(REQUESTS[name], version=VERSIONS[name]), count)

    return asyncio.run(measure())


async def _with_tasks(ask: Callable[[], Coroutine[Any, Any, Any]], count: int) -> float:
    """Send requests from one task per in-flight request."""

    async def some(times: int) -> None:
        for _ in range(times):
            await ask()

    await asyncio.gather(*(some(1) for _ in range(IN_FLIGHT)))
    start = time.process_time()
    await asyncio.gather(*(some(count // IN_FLIGHT) for _ in range(IN_FLIGHT)))
    return time.process_time() - start


def _aiokafka(address: str, name: str, count: int) -> float:
    from aiokafka.conn import create_conn
    from aiokafka.protocol.admin import ApiVersionRequest
    from aiokafka.protocol.metadata import MetadataRequest as TheirMetadata

    kinds: dict[str, Callable[[], Any]] = {
        "ApiVersions": ApiVersionRequest,
        "Metadata": lambda: TheirMetadata(None),
    }

    async def measure() -> float:
        host, _, port = address.rpartition(":")
        connection = await create_conn(host, int(port))
        try:
            return await _with_tasks(lambda: _awaited(connection.send(kinds[name]())), count)
        finally:
            connection.close()

    return asyncio.run(measure())


async def _awaited(future: Any) -> Any:
    return await future


def _kafka_python(address: str, name: str, count: int) -> float:
    from kafka.net.compat import KafkaNetClient
    from kafka.protocol.metadata import ApiVersionsRequest as TheirVersions
    from kafka.protocol.metadata import MetadataRequest as TheirMetadata

    client = KafkaNetClient(
        bootstrap_servers=address, max_in_flight_requests_per_connection=2 * IN_FLIGHT, receive_message_max_bytes=2**26
    )
    kinds = {
        "ApiVersions": lambda: TheirVersions[VERSIONS[name]](),
        "Metadata": lambda: TheirMetadata[VERSIONS[name]](topics=None),
    }
    try:
        client.check_version()
        node = next(iter(client.cluster.brokers())).node_id
        client.await_ready(node)
        client.send_and_receive(node, kinds[name]())
        start = time.process_time()
        waiting: deque[Any] = deque()
        for _ in range(count):
            if len(waiting) >= IN_FLIGHT:
                client.poll(future=waiting.popleft())
            waiting.append(client.send(node, kinds[name]()))
        while waiting:
            client.poll(future=waiting.popleft())
        return time.process_time() - start
    finally:
        client.close()
