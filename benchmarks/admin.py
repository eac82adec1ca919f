"""Listing the committed offsets of a thousand groups: time and number of requests.

Uses three real nodes on loopback. The groups are distributed over all of them, each with offsets of ten partitions.
aiokafka only supports one group per request. Both libraries start without a connection. Needs Java and Maven.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Final

from aiokafka.admin import AIOKafkaAdminClient
from rich.console import Console

from benchmarks.report import Figure, print_figures
from kafka_msgs.admin import Admin, AsyncAdmin, NewTopic
from kafka_msgs.client import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.message import Request
from tests.support.kafka_cluster import KafkaCluster

__all__ = ["run"]

GROUPS: Final = tuple(f"group-{number}" for number in range(1000))
PARTITIONS: Final = tuple(TopicPartition("orders", number) for number in range(10))
AT_ONCE: Final = 50
PROTOCOL: Final = (
    f"wall time to list {len(GROUPS)} groups of {len(PARTITIONS)} partitions on three nodes, connections included; "
    "the fastest round, libraries in turns"
)


def run(out: Console, rounds: int) -> list[Figure]:
    """Measure both libraries; return the figures."""
    with KafkaCluster() as cluster:
        servers = cluster.bootstrap_servers
        asyncio.run(_fill(servers))
        best: dict[str, float] = {}
        for _ in range(max(3, rounds // 4)):
            for name, seconds in (("ours", _ours(servers)), ("aiokafka", asyncio.run(_aiokafka(servers)))):
                best[name] = min(best.get(name, seconds), seconds)
        requests = _requests(servers)
    figures = [
        Figure("offsets of 1,000 groups", best["ours"], "s", target=1.0, at_most=True),
        Figure("requests of OffsetFetch for it", requests, "", target=3, at_most=True),
        Figure("aiokafka", best["aiokafka"] / best["ours"]),
    ]
    print_figures(out, "administration", PROTOCOL, figures)
    return figures


async def _fill(servers: str) -> None:
    async with AsyncAdmin(servers) as admin:
        await admin.create_topics([NewTopic("orders", len(PARTITIONS))])
        for start in range(0, len(GROUPS), AT_ONCE):
            part = GROUPS[start : start + AT_ONCE]
            results = await asyncio.gather(
                *(admin.alter_group_offsets(each, dict.fromkeys(PARTITIONS, 0)) for each in part)
            )
            assert all(len(result.all()) == len(PARTITIONS) for result in results)


def _ours(servers: str) -> float:
    start = time.perf_counter()
    with Admin(servers) as admin:
        groups = admin.list_offsets_of_groups(dict.fromkeys(GROUPS)).all()
        assert sum(len(offsets.all()) for offsets in groups.values()) == len(GROUPS) * len(PARTITIONS)
    return time.perf_counter() - start


async def _aiokafka(servers: str) -> float:
    start = time.perf_counter()
    client = AIOKafkaAdminClient(bootstrap_servers=servers)
    await client.start()
    try:
        found = [await client.list_consumer_group_offsets(each) for each in GROUPS]
    finally:
        await client.close()
    assert sum(map(len, found)) == len(GROUPS) * len(PARTITIONS)
    return time.perf_counter() - start


class _Counting(ClientCore):
    """A core that counts OffsetFetch requests."""

    fetches = 0

    def call(self, request: Request[Any], **options: Any) -> Flow[Any]:
        self.fetches += request.INFO.name == "OffsetFetchRequest"
        return super().call(request, **options)


def _requests(servers: str) -> int:
    with Admin(servers) as admin:
        core = admin.client.core = _Counting(admin.client.core.config, admin.client.network)
        admin.list_offsets_of_groups(dict.fromkeys(GROUPS)).all()
        return core.fetches
