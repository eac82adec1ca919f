"""The clusters of the campaign: the command ``kafka-msgs broker`` as a process, and one real Kafka node."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Final

from tests.campaigns.connect.processes import bounded
from tests.support.kafka_cluster import KafkaCluster

__all__ = ["CLUSTERS"]

_LIFETIME_SECONDS: Final = 900
_STOP_SECONDS: Final = 30
_OPTIONS: Final = ("--port", "0", "--brokers", "3", "--json", "--authorizer", "--super-user", "User:ANONYMOUS")


@contextmanager
def embedded() -> Iterator[str]:
    """Run three embedded brokers, and yield their addresses. Raises ``AssertionError`` if they report a problem."""
    command = [*bounded(_LIFETIME_SECONDS), sys.executable, "-m", "kafka_msgs", "broker", *_OPTIONS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["bootstrap_servers"])
        finally:
            process.terminate()
            _, problems = process.communicate(timeout=_STOP_SECONDS)
    assert problems == "", problems


@contextmanager
def kafka() -> Iterator[str]:
    """Run one real node, and yield its address."""
    with KafkaCluster(nodes=1, lifetime=_LIFETIME_SECONDS) as cluster:
        yield cluster.bootstrap_servers


CLUSTERS: Final[Mapping[str, Callable[[], AbstractContextManager[str]]]] = {"embedded": embedded, "kafka": kafka}
"""Each yields the addresses of a new cluster that accepts every operation of anonymous clients."""
