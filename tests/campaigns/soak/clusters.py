"""The clusters of the campaign: embedded brokers in a separate process, and real Kafka nodes, both behind proxies."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kafka_msgs.admin import Admin, NewTopic
from kafka_msgs.client import TopicPartition
from tests.campaigns.soak.protocol import PARTITIONS
from tests.campaigns.soak.proxy import Proxies, Proxy
from tests.recorders.broker import free_ports
from tests.support.free_ports import consecutive_free_ports
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_listeners import HOST, Listener

__all__ = ["CLUSTERS", "SoakCluster"]

_NODES: Final = 3
_ROOT: Final = Path(__file__).parents[3]
_LIFETIME: Final = 2 * 3600
_REAL_SETTINGS: Final = {
    "broker.session.timeout.ms": "3000",
    "min.insync.replicas": "2",
    "transaction.state.log.min.isr": "2",
    "auto.leader.rebalance.enable": "false",
}


class SoakCluster(ABC):
    """Three brokers behind proxies. Clients use ``servers``, the addresses of the proxies."""

    nodes: tuple[int, ...]

    def __init__(self, proxies: Proxies) -> None:
        self.proxies = proxies

    @property
    def servers(self) -> str:
        """The addresses for clients."""
        return ",".join(f"{HOST}:{each.port}" for each in self.proxies.proxies)

    def proxy_of(self, node: int) -> Proxy:
        """Return the proxy of a node."""
        return self.proxies.proxies[self.nodes.index(node)]

    def create(self, topics: Sequence[str]) -> None:
        """Create topics with a replica on every broker."""
        with Admin(self.servers) as admin:
            admin.create_topics([NewTopic(topic, PARTITIONS, _NODES) for topic in topics]).all()

    @abstractmethod
    def kill(self, node: int) -> None:
        """Kill a broker."""

    @abstractmethod
    def stop(self, node: int) -> None:
        """Stop a broker in an orderly way."""

    @abstractmethod
    def start(self, node: int) -> None:
        """Start a broker again, and wait until it serves."""

    def launch(self, node: int) -> None:
        """Start a broker again without waiting until it serves."""
        self.start(node)

    def await_all(self) -> None:
        """Wait until all brokers serve."""
        return

    @abstractmethod
    def pause(self, node: int) -> None:
        """Freeze the process of a broker."""

    @abstractmethod
    def resume(self, node: int) -> None:
        """Continue a frozen broker."""

    @abstractmethod
    def move_leaders(self, topics: Sequence[str], shift: int) -> None:
        """Make another broker the leader of each partition: broker (partition + shift) of the list."""

    def restore(self, topics: Sequence[str]) -> None:
        """Bring all brokers and replicas back, and spread the leaders."""
        self.move_leaders(topics, 0)


class _Embedded(SoakCluster):
    """All brokers share a process, so freezing one broker freezes all."""

    nodes = tuple(range(_NODES))

    def __init__(self, proxies: Proxies, process: subprocess.Popen[str]) -> None:
        super().__init__(proxies)
        self._process = process

    @classmethod
    @contextmanager
    def run(cls) -> Iterator[SoakCluster]:
        """Run the brokers inside a block."""
        first = consecutive_free_ports(2 * _NODES)
        command = [sys.executable, "-m", "tests.campaigns.soak.embedded_process"]
        leash = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        arguments = map(str, (first, first + _NODES, _NODES))
        environment = {**os.environ, "PYTHONPATH": f"{_ROOT}{os.pathsep}{_ROOT / 'generator'}"}
        with (
            Proxies([(first + _NODES + number, first + number) for number in range(_NODES)]) as proxies,
            subprocess.Popen(
                [*leash, *command, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                cwd=_ROOT, env=environment,
            ) as process,
        ):  # fmt: skip
            cluster = cls(proxies, process)
            try:
                cluster._await()
                yield cluster
                assert process.stdin is not None
                process.stdin.close()
                process.wait(20)
            finally:
                process.kill()

    def kill(self, node: int) -> None:
        self._do(f"kill {node}")

    def stop(self, node: int) -> None:
        self._do(f"stop {node}")

    def start(self, node: int) -> None:
        self._do(f"start {node}")

    def pause(self, node: int) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self, node: int) -> None:
        self._process.send_signal(signal.SIGCONT)

    def move_leaders(self, topics: Sequence[str], shift: int) -> None:
        self._do(f"lead {shift} {' '.join(topics)}")

    def _do(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        self._await()

    def _await(self) -> None:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        assert answer == "done\n", f"the embedded cluster answered {answer!r}"


class _Kafka(SoakCluster):
    """Real nodes; ``Admin`` calls bypass the proxies."""

    def __init__(self, proxies: Proxies, cluster: KafkaCluster) -> None:
        super().__init__(proxies)
        self._cluster = cluster
        self.nodes = cluster.nodes

    @classmethod
    @contextmanager
    def run(cls) -> Iterator[SoakCluster]:
        """Run the nodes inside a block."""
        ports = dict(zip(range(1, _NODES + 1), free_ports(_NODES), strict=True))
        with KafkaCluster(nodes=_NODES, settings=_REAL_SETTINGS, advertised=ports, lifetime=_LIFETIME) as cluster:
            pairs = [(ports[node], cluster.port(node, Listener.PROXIED)) for node in cluster.nodes]
            with Proxies(pairs) as proxies:
                yield cls(proxies, cluster)

    def kill(self, node: int) -> None:
        self._cluster.kill(node)

    def stop(self, node: int) -> None:
        self._cluster.stop(node)

    def start(self, node: int) -> None:
        self._cluster.start(node)

    def launch(self, node: int) -> None:
        self._cluster.launch(node)

    def await_all(self) -> None:
        self._cluster.repair()

    def pause(self, node: int) -> None:
        self._cluster.pause(node)

    def resume(self, node: int) -> None:
        self._cluster.resume(node)

    def create(self, topics: Sequence[str]) -> None:
        replicas = self._replicas(("",), 0)
        with Admin(self._cluster.bootstrap_servers) as admin:
            assignments = {name.partition: ids for name, ids in replicas.items()}
            admin.create_topics([NewTopic(topic, assignments=assignments) for topic in topics]).all()

    def move_leaders(self, topics: Sequence[str], shift: int) -> None:
        replicas = self._replicas(topics, shift)
        with Admin(self._cluster.bootstrap_servers) as admin:
            admin.alter_partition_reassignments(replicas).all()
            time.sleep(0.5)
            admin.elect_leaders(list(replicas))

    def restore(self, topics: Sequence[str]) -> None:
        self._cluster.repair()
        super().restore(topics)

    def _replicas(self, topics: Sequence[str], shift: int) -> dict[TopicPartition, list[int]]:
        def order(partition: int) -> list[int]:
            first = (partition + shift) % _NODES
            return [*self.nodes[first:], *self.nodes[:first]]

        return {TopicPartition(topic, each): order(each) for topic in topics for each in range(PARTITIONS)}


CLUSTERS: Final = {"embedded": _Embedded.run, "kafka": _Kafka.run}
"""The clusters by name."""
