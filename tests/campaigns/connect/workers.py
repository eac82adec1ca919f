"""Workers of Kafka Connect, and the REST API of one of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from tests.campaigns.connect.processes import JavaProcess, eventually
from tests.recorders.broker import LOOPBACK, free_ports

__all__ = ["CONVERTERS", "Worker"]

_ANSWER_SECONDS: Final = 60
_BUSY: Final = frozenset({404, 409, 500, 503})
"""The statuses of answers while a worker starts or the cluster rebalances: the request may be repeated."""

CONVERTERS: Final[Mapping[str, str]] = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.storage.StringConverter",
    "plugin.discovery": "service_load",
    "offset.flush.interval.ms": "1000",
    "offset.flush.timeout.ms": "30000",
    "topic.creation.enable": "false",
}

_DISTRIBUTED: Final[Mapping[str, str]] = {
    "group.id": "connect",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    **{f"{each}.storage.replication.factor": "-1" for each in ("config", "offset", "status")},
    "offset.storage.partitions": "3",
    "status.storage.partitions": "3",
    "exactly.once.source.support": "enabled",
    "scheduled.rebalance.max.delay.ms": "1000",
    "heartbeat.interval.ms": "500",
    "session.timeout.ms": "15000",
}


class Worker(JavaProcess):
    """A worker of a distributed cluster, with exactly-once sources."""

    def __init__(self, servers: str, home: Path) -> None:
        self.address = f"{LOOPBACK}:{free_ports(1)[0]}"
        settings = {"bootstrap.servers": servers, "listeners": f"http://{self.address}", **CONVERTERS, **_DISTRIBUTED}
        super().__init__("org.apache.kafka.connect.cli.ConnectDistributed", home, settings)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, and return the answer; None if the worker cannot answer yet. Raises ``HTTPError``."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = Request(f"http://{self.address}{path}", data=data, headers=headers, method=method)
        try:
            with urlopen(request, timeout=_ANSWER_SECONDS) as answer:
                text = answer.read()
        except HTTPError as error:
            if error.code in _BUSY:
                return None
            raise
        except URLError:
            assert self.is_running(), self.output
            return None
        return json.loads(text) if text else {}

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request until the worker answers it, and return the answer."""
        answers: list[Any] = []

        def is_answered() -> bool:
            answers.append(self.ask(method, path, body))
            return answers[-1] is not None

        eventually(is_answered)
        return answers[-1]

    def states(self) -> dict[str, list[str]]:
        """Return the state of each connector and of its tasks; empty during a rebalance."""
        found = self.ask("GET", "/connectors?expand=status") or {}
        return {
            name: [each["state"] for each in (status["status"]["connector"], *status["status"]["tasks"])]
            for name, status in found.items()
        }

    def tasks(self) -> Counter[str]:
        """Return the number of running tasks of each worker."""
        found = self.ask("GET", "/connectors?expand=status") or {}
        tasks = [task for status in found.values() for task in status["status"]["tasks"]]
        return Counter(task["worker_id"] for task in tasks if task["state"] == "RUNNING")
