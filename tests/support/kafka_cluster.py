"""Clusters of three real Apache Kafka nodes on loopback, for tests; each node is both broker and controller.

This module configures, starts and ends nodes. :mod:`tests.support.shared_cluster` shares one cluster among the
processes of a test run; :mod:`tests.support.kafka_listeners` defines the listeners, users and certificates;
:mod:`tests.support.kafka_storage` prepares formatted storage and class archives.

Requires Java 17 or newer, Maven, ``timeout`` and ``setpriv``: the last two end the nodes even if the process that
started them is killed. Nodes listen on loopback only, and their files are deleted with the cluster.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from kafka_msgs import MetadataRequest, MetadataResponse
from tests.recorders.broker import BrokerError, Jars, answers, free_ports, java_command, run_kafka_class
from tests.recorders.raw_client import Conversation
from tests.support.kafka_listeners import (
    HOST,
    USERS,
    Certificates,
    Listener,
    listener_settings,
)
from tests.support.kafka_storage import copy_formatted, shared_classes, write_properties

__all__ = ["ClusterAddresses", "KafkaCluster", "cluster_needs", "shared_settings"]

_START_SECONDS: Final = 120
_STOP_SECONDS: Final = 90
_LIFETIME_SECONDS: Final = 3600
_OUTPUT_SHOWN: Final = 4000

#: Test records may be years old and must stay: a retention check runs every few minutes, in the middle of any test.
# Internal topics are spread over the nodes and replicated: if a test stops one node, the others provide its
# coordinators.
_SETTINGS: Final[Mapping[str, str]] = {
    "process.roles": "broker,controller",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "log.retention.ms": "-1",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "300",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.max.session.timeout.ms": "3600000",
    "group.share.max.record.lock.duration.ms": "3600000",
    "group.streams.min.heartbeat.interval.ms": "300",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.initial.rebalance.delay.ms": "0",
    "broker.heartbeat.interval.ms": "500",
    "broker.session.timeout.ms": "6000",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "allow.everyone.if.no.acl.found": "true",
    "delegation.token.secret.key": "kafka-msgs-tests",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "num.recovery.threads.per.data.dir": "1",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
}

_OF_NODES_ONLY: Final = ("process.roles", "authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found")


def shared_settings() -> dict[str, str]:
    """Return the node configuration without the settings that an embedded broker receives in other ways."""
    return {name: value for name, value in _SETTINGS.items() if name not in _OF_NODES_ONLY}


def cluster_needs() -> str | None:
    """Return why no cluster can run here, or None."""
    missing = [name for name in ("java", "mvn", "timeout", "setpriv") if shutil.which(name) is None]
    missing += [name for name in ("trustme",) if importlib.util.find_spec(name) is None]
    return f"no Kafka cluster: {', '.join(missing)} not found" if missing else None


class ClusterAddresses:
    """Addresses of a running cluster: one port for each node and listener. Most tests need only this."""

    def __init__(self, ports: Mapping[int, Mapping[str, int]], home: Path) -> None:
        self.ports = ports
        self.home = home
        self.certificates = Certificates.at(home)
        self.users = USERS

    @property
    def nodes(self) -> tuple[int, ...]:
        """The node ids."""
        return tuple(self.ports)

    @property
    def bootstrap_servers(self) -> str:
        """Comma-separated ``host:port`` of every node's plaintext listener."""
        return self.bootstrap()

    def bootstrap(self, listener: Listener = Listener.PLAINTEXT) -> str:
        """Return the comma-separated ``host:port`` of every node's ``listener``."""
        return ",".join(f"{HOST}:{self.port(node, listener)}" for node in self.nodes)

    def port(self, node: int, listener: Listener = Listener.PLAINTEXT) -> int:
        """Return the port of one node's listener."""
        return self.ports[node][listener.name]

    def log_dir(self, node: int) -> Path:
        """Return the directory that contains the node's partitions."""
        return self.home / f"node-{node}" / "data"

    def run_class(
        self, class_name: str, *arguments: str, stdin: str = "", timeout: float = 60, jars: Jars = Jars.TOOLS
    ) -> str:
        """Run a Kafka command-line class with ``--bootstrap-server`` and ``arguments``; return its output.

        Raises :class:`~tests.recorders.broker.BrokerError` when it fails, and ``subprocess.TimeoutExpired``.
        """
        everything = ["--bootstrap-server", self.bootstrap_servers, *arguments]
        return run_kafka_class(class_name, everything, stdin=stdin, timeout=timeout, jars=jars)

    def consumer_groups(self, *arguments: str) -> str:
        """Return the output of ``kafka-consumer-groups``."""
        return self.run_class("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", *arguments)

    def streams_groups(self, *arguments: str) -> str:
        """Return the output of ``kafka-streams-groups``."""
        return self.run_class("org.apache.kafka.tools.streams.StreamsGroupCommand", *arguments)

    def share_groups(self, *arguments: str) -> str:
        """Return the output of ``kafka-share-groups``."""
        return self.run_class("org.apache.kafka.tools.consumer.group.ShareGroupCommand", *arguments)

    def console_consumer(self, *arguments: str) -> str:
        """Return the output of ``kafka-console-consumer``; pass ``--max-messages`` or ``--timeout-ms``."""
        return self.run_class("org.apache.kafka.tools.consumer.ConsoleConsumer", *arguments)

    def console_producer(self, topic: str, lines: Iterable[str], *arguments: str) -> None:
        """Produce one record per line with ``kafka-console-producer``."""
        text = "".join(line + "\n" for line in lines)
        self.run_class("org.apache.kafka.tools.ConsoleProducer", "--topic", topic, *arguments, stdin=text)

    def topics(self, *arguments: str) -> str:
        """Return the output of ``kafka-topics``."""
        return self.run_class("org.apache.kafka.tools.TopicCommand", *arguments)

    def to_json(self) -> str:
        """Return the addresses as text, for another process."""
        return json.dumps({"ports": self.ports, "home": str(self.home)})

    @classmethod
    def from_json(cls, text: str) -> ClusterAddresses:
        """Return the addresses that :meth:`to_json` wrote."""
        known = json.loads(text)
        return cls({int(node): ports for node, ports in known["ports"].items()}, Path(known["home"]))


class KafkaCluster(ClusterAddresses):
    """A private cluster that runs inside a ``with`` block; tests may stop, kill and restart its nodes.

    ``settings`` override the configuration of every node. ``advertised`` opens the listener ``PROXIED`` and maps each
    node to its advertised port. ``options`` are for the Java virtual machine. Node ids begin at ``first``. Raises
    :class:`~tests.recorders.broker.BrokerError` when a node does not start.
    """

    def __init__(
        self,
        *,
        nodes: int = 3,
        first: int = 1,
        settings: Mapping[str, str] | None = None,
        advertised: Mapping[int, int] | None = None,
        heap_mb: int = 320,
        lifetime: int = _LIFETIME_SECONDS,
        options: Sequence[str] | None = None,
    ) -> None:
        self._listeners = [each for each in Listener if each is not Listener.PROXIED or advertised]
        home = Path(tempfile.mkdtemp(prefix="kafka-msgs-cluster-"))
        super().__init__(_ports(range(first, first + nodes), self._listeners), home)
        self._advertised = advertised or {}
        self._overrides = settings or {}
        self._heap_mb = heap_mb
        self._lifetime = lifetime
        self._options = options
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> KafkaCluster:
        try:
            Certificates.make(self.home)
            for node in self.nodes:
                self._prepare(node)
                self._launch(node)
            for node in self.nodes:
                self._await(node, self._serves)
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._clean_up()

    def stop(self, node: int) -> None:
        """Stop a node in an orderly way: it first hands over its partitions."""
        process = self._processes[node]
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill(node)

    def kill(self, node: int) -> None:
        """Kill a node immediately, whatever it is doing."""
        process = self._processes[node]
        if process.poll() is None:
            #: The node is a child of `timeout`, which collects it: a node killed together with its parent remains for
            # a while.
            for child in _children(process.pid) or [process.pid]:
                os.kill(child, signal.SIGKILL)
            os.killpg(process.pid, signal.SIGCONT)
            process.wait()

    def start(self, node: int) -> None:
        """Restart a stopped or killed node on the same ports, and wait until it serves."""
        self.launch(node)
        self._await(node, self._serves)

    def launch(self, node: int) -> None:
        """Restart a stopped or killed node on the same ports without waiting for it."""
        assert self._processes[node].poll() is not None, f"node {node} is running"
        self._launch(node)

    def pause(self, node: int) -> None:
        """Freeze a node: its connections stay open, and it sends no responses."""
        os.killpg(self._processes[node].pid, signal.SIGSTOP)

    def resume(self, node: int) -> None:
        """Resume a frozen node."""
        os.killpg(self._processes[node].pid, signal.SIGCONT)

    def repair(self) -> None:
        """Bring all nodes back into service: each has the complete cluster metadata, and all replicas are in sync.

        Raises :class:`~tests.recorders.broker.BrokerError` if this fails.
        """
        for node, process in self._processes.items():
            if process.poll() is None:
                self.resume(node)
            else:
                self._launch(node)
        for node in self.nodes:
            self._await(node, self._has_everything)

    def _properties(self, node: int) -> Path:
        return self.home / f"node-{node}" / "server.properties"

    def _output(self, node: int) -> Path:
        return self.home / f"node-{node}" / "output.txt"

    def _prepare(self, node: int) -> None:
        """Write a node's configuration and formatted storage."""
        self._properties(node).parent.mkdir()
        write_properties(self._properties(node), self._settings(node))
        copy_formatted(self.log_dir(node), node)

    def _settings(self, node: int) -> dict[str, str]:
        voters = (f"{each}@{HOST}:{self.port(each, Listener.CONTROLLER)}" for each in self.nodes)
        replicas = str(min(3, len(self.nodes)))
        factors = {key: replicas for key in _SETTINGS if key.endswith("replication.factor") and "default" not in key}
        return {
            **_SETTINGS,
            **factors,
            **listener_settings(self.certificates),
            "node.id": str(node),
            "broker.rack": f"rack-{node}",
            "log.dirs": str(self.log_dir(node)),
            "controller.quorum.voters": ",".join(voters),
            "listeners": self._listener_list(node, {}),
            "advertised.listeners": self._listener_list(node, self._advertised),
            **self._overrides,
        }

    def _listener_list(self, node: int, advertised: Mapping[int, int]) -> str:
        ports = {each: self.port(node, each) for each in self._listeners}
        if Listener.PROXIED in ports:
            ports[Listener.PROXIED] = advertised.get(node, ports[Listener.PROXIED])
        return ",".join(f"{each.name}://{HOST}:{port}" for each, port in ports.items())

    def _launch(self, node: int) -> None:
        arguments = [str(self._properties(node))]
        options = (
            self._options if self._options is not None else [f"-XX:SharedArchiveFile={shared_classes(_fill_archive)}"]
        )
        java = java_command("kafka.Kafka", arguments, heap_mb=self._heap_mb, jars=Jars.NODE, options=options)
        limits = ["setpriv", "--pdeathsig", "TERM", "timeout", "--kill-after=60", str(self._lifetime)]
        with self._output(node).open("ab") as output:
            self._processes[node] = subprocess.Popen(
                [*limits, *java],
                cwd=self._properties(node).parent,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _await(self, node: int, condition: Callable[[int], bool]) -> None:
        """Wait until a node responds and a condition holds for it."""
        deadline = time.monotonic() + _START_SECONDS
        while not (answers(self.port(node)) and condition(node)):
            if self._processes[node].poll() is not None or time.monotonic() > deadline:
                shown = self._output(node).read_text(errors="replace")[-_OUTPUT_SHOWN:]
                raise BrokerError(f"node {node} does not serve:\n{shown}")
            time.sleep(0.1)

    def _serves(self, node: int) -> bool:
        """Return whether a node's metadata lists all running nodes as registered and not fenced."""
        running = {each for each, process in self._processes.items() if process.poll() is None}
        return running <= {broker.node_id for broker in self._known_to(node, topics=()).brokers}

    def _has_everything(self, node: int) -> bool:
        """Return whether a node serves, and its metadata lists all replicas of every partition as in sync."""
        partitions = [each for topic in self._known_to(node, topics=None).topics for each in topic.partitions]
        return self._serves(node) and all(
            each.leader_id >= 0 and set(each.isr_nodes) == set(each.replica_nodes) for each in partitions
        )

    def _known_to(self, node: int, topics: tuple[()] | None) -> MetadataResponse:
        with Conversation(self.port(node), client_id="test-cluster") as conversation:
            answer = conversation.ask(MetadataRequest(topics=topics), 12)
        assert isinstance(answer, MetadataResponse)
        return answer

    def _clean_up(self) -> None:
        for node in self._processes:
            self.kill(node)
        shutil.rmtree(self.home, ignore_errors=True)


def _ports(nodes: Iterable[int], listeners: Sequence[Listener]) -> dict[int, dict[str, int]]:
    known = list(nodes)
    ports = iter(free_ports(len(known) * len(listeners)))
    return {node: {each.name: next(ports) for each in listeners} for node in known}


def _children(process: int) -> list[int]:
    """Return the child processes of a running process."""
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def _fill_archive(archive: Path) -> None:
    """Start a node that writes its loaded classes to the archive when it ends."""
    with KafkaCluster(nodes=1, options=[f"-XX:ArchiveClassesAtExit={archive}"]) as cluster:
        cluster.stop(1)
