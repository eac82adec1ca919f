"""A thousand broker starts and stops, which leave no resources behind."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from pathlib import Path
from typing import Final

from kafka_msgs.broker import AsyncEmbeddedBroker, EmbeddedBroker
from kafka_msgs.broker.accepted_connection import AcceptedConnection
from kafka_msgs.broker.cluster import Cluster
from kafka_msgs.messages.metadata_request import MetadataRequest
from kafka_msgs.wire import ClientConnection

STARTS: Final = 1000
EVERY: Final = 20
"""One in this many brokers has files, and a client that is connected when the broker closes."""


def open_files() -> set[str]:
    """Return the process's open file descriptors: files, sockets and pipes."""
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def ask(servers: str) -> socket.socket:
    """Connect to the first broker, send a metadata request, and return the connection."""
    host, _, port = servers.split(",")[0].rpartition(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(ClientConnection().send(MetadataRequest(topics=()), 12))
    assert connection.recv(1)
    return connection


def objects() -> int:
    """Return the number of live clusters and connections."""
    gc.collect()
    return sum(isinstance(each, Cluster | AcceptedConnection) for each in gc.get_objects())


def test_a_thousand_starts_leave_nothing(tmp_path: Path) -> None:
    before, threads, alive = open_files(), threading.active_count(), objects()
    for number in range(STARTS):
        if number % EVERY:
            with EmbeddedBroker(brokers=1 + number % 3):
                pass
            continue
        directory = tmp_path / str(number % 3)
        broker = EmbeddedBroker(directory=directory)
        broker.start()
        connection = ask(broker.bootstrap_servers)
        broker.close()
        connection.close()
    assert threading.active_count() == threads
    assert len(open_files()) <= len(before)
    assert objects() == alive


def test_starts_on_asyncio_leave_no_task(tmp_path: Path) -> None:
    async def main() -> set[str]:
        found: set[str] = set()
        for number in range(100):
            async with AsyncEmbeddedBroker(directory=None if number % EVERY else tmp_path) as broker:
                host, _, port = broker.bootstrap_servers.rpartition(":")
                _, writer = await asyncio.open_connection(host, int(port))
            writer.close()
            found |= {repr(task) for task in asyncio.all_tasks() - {asyncio.current_task()}}
        return found

    before = open_files()
    assert asyncio.run(main()) == set()
    assert len(open_files()) <= len(before)
