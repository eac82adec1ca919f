"""A cluster on which tools run: addresses, input files, and the clients that the table's actions start."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from threading import Event, Thread
from typing import Any, Final, Literal

from kafka_msgs.client import Consumer, Producer
from tests.campaigns.tools.invocations import Invocation
from tests.campaigns.tools.normalization import normalized
from tests.support.eventually import until
from tests.support.kafka_tools import ToolRunner

__all__ = ["ToolCluster"]

_SECONDS: Final = 60
_LIMITS: Final[Mapping[str, int]] = {"kafka-replica-verification": 5, "kafka-verifiable": 15, "kafka-console": 15}
"""Seconds after which tools that may not end are interrupted."""


_ADDRESS: Final = re.compile(r"127\.0\.0\.1(?::|[ \t]+)(\d+)")


class Member:
    """A consumer in a group that polls in a thread until it is closed."""

    def __init__(self, servers: str, group: str, protocol: Literal["classic", "consumer"], topic: str) -> None:
        self._end = Event()
        self._consumer = Consumer(
            servers, group_id=group, group_protocol=protocol, client_id=f"{group}-client", auto_offset_reset="earliest"
        )
        self._consumer.subscribe([topic])
        self._thread = Thread(target=self._poll, daemon=True)
        self._thread.start()
        until(lambda: bool(self._consumer.assignment))

    def _poll(self) -> None:
        with self._consumer as consumer:
            while not self._end.is_set():
                if consumer.poll(0.1):
                    consumer.commit()

    def close(self) -> None:
        """Leave the group."""
        self._end.set()
        self._thread.join()


class ToolCluster:
    """A cluster with its addresses, its listener for users, and a process for tools.

    ``files`` are paths by placeholder. Raises ``ProgramUnavailableError`` if the process cannot be built here.
    """

    def __init__(self, servers: str, sasl: str, files: Mapping[str, str]) -> None:
        self.servers = servers
        self._runner = ToolRunner()
        self.names = {**files, "SERVERS-SASL": sasl}
        self._ports = {
            address.rpartition(":")[2]: f"{name}-{node}"
            for name, addresses in (("PLAIN", servers), ("SASL", sasl))
            for node, address in enumerate(addresses.split(","))
        }
        self._clients: dict[str, Any] = {}

    def run(self, invocation: Invocation) -> list[str]:
        """Run an invocation, and return its status and its normalized output."""
        tool = invocation.line.split()[0]
        seconds = next((limit for name, limit in _LIMITS.items() if tool.startswith(name)), _SECONDS)
        found = self._runner.run(invocation.line, self.servers, self.names, stdin=invocation.stdin, seconds=seconds)
        text = _ADDRESS.sub(lambda at: f"HOST:{self._ports.get(at[1], at[1])}", found["printed"])
        return [f"status {found['status']}", *normalized(tool, text)]

    def act(self, line: str) -> None:
        """Run an action of the table."""
        action, name, *arguments = shlex.split(line)
        _ACTIONS[action](self, name, *arguments)

    def join(self, group: str, protocol: Literal["classic", "consumer"], topic: str) -> None:
        """Start a member of a group, and wait for its assignment."""
        self._clients[group] = Member(self.servers, group, protocol, topic)

    def leave(self, group: str) -> None:
        """Stop a member."""
        self._clients.pop(group).close()

    def begin(self, name: str, topic: str) -> None:
        """Begin a transaction and write a record in it."""
        producer = self._clients[name] = Producer(self.servers, transactional_id=name, transaction_timeout=600)
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_and_wait(topic, b"open", partition=0)

    def close(self) -> None:
        """Close all clients that are still open. An open transaction is left to its timeout."""
        self._runner.close()
        for client in self._clients.values():
            client.close()


_ACTIONS: Final[Mapping[str, Callable[..., None]]] = {
    "@join": ToolCluster.join,
    "@leave": ToolCluster.leave,
    "@begin": ToolCluster.begin,
}
