"""A single Apache Kafka node in KRaft mode, for scripts that record a real broker's output.

This module fetches the jars, formats the storage, starts and stops the node, and runs Kafka's own command-line classes
against it. The recording itself is up to the scripts.

Requires Java 17 or newer, Maven, and ``timeout`` from coreutils, which ends the node even if the Python process that
started it is killed. The node listens on loopback only, and its files are in a temporary directory that is deleted with
it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import Final

from tests.support.build_cache import made_once
from tests.support.releases import maven_releases, release_of

__all__ = [
    "LOOPBACK",
    "Broker",
    "BrokerError",
    "Jars",
    "answers",
    "classpath",
    "free_ports",
    "java_command",
    "java_program",
    "project_classpath",
    "run_kafka_class",
]

LOOPBACK: Final = "127.0.0.1"

_HERE: Final = Path(__file__).parent
_CLUSTER_ID: Final = "a2Fma2EtbXNncy1jYXB0dQ"
_JVM: Final = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)
_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 20

# ApiVersions v0, correlation id 0, no client id: the only request that every listener accepts.
_PROBE: Final = struct.pack(">ihhih", 10, 18, 0, 0, -1)

_SETTINGS: Final[Mapping[str, str]] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "LOCAL",
    "listener.security.protocol.map": "LOCAL:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "num.network.threads": "1",
    "num.io.threads": "2",
    "log.cleaner.dedupe.buffer.size": "2097152",
}


class Jars(Enum):
    """The jars for running a class: the name of the Maven project in this directory, and the origin of its release."""

    NODE = ("node", "clients")
    """The node itself, and Kafka's core with the commands in it (package ``kafka``)."""
    TOOLS = ("tools", "streams")
    """The command-line tools (package ``org.apache.kafka.tools``) and the Streams client."""

    @property
    def project(self) -> Path:
        """The Maven project file."""
        return _HERE / f"{self.value[0]}.xml"

    @property
    def release(self) -> str:
        """The Kafka release, such as ``"4.4.0"``."""
        return release_of(self.value[1])


class BrokerError(Exception):
    """The node, or a Kafka class run against it, failed; the text contains its last output."""


def classpath(jars: Jars, release: str | None = None) -> str:
    """Return the Java class path of a project at its release, or at another one."""
    releases = [f"-Dkafka.version={release}"] if release else maven_releases()
    return project_classpath(jars.project, release or jars.release, releases)


def project_classpath(project: Path, release: str, properties: Sequence[str]) -> str:
    """Return the Java class path of a Maven project; it is resolved again when the project file changes."""
    path = _HERE / "target" / f"{project.stem}-{release}.txt"
    if not path.exists() or path.stat().st_mtime < project.stat().st_mtime:
        goal = ["dependency:build-classpath", f"-Dmdep.outputFile={path}", "-DincludeScope=runtime"]
        command = ["mvn", "-q", "-B", "-f", str(project), *properties, *goal]
        subprocess.run(command, cwd=_HERE, check=True, timeout=600)
    return path.read_text().strip()


def java_command(
    class_name: str,
    arguments: Sequence[str],
    *,
    heap_mb: int,
    jars: Jars = Jars.TOOLS,
    options: Sequence[str] = (),
    release: str | None = None,
) -> list[str]:
    """Return the command that runs the main method of ``class_name``, or of a ``.java`` source file given by its path.

    ``options`` are for the virtual machine. A source file must be named after its class; it is compiled once and
    cached. ``release`` replaces the release of the jars.
    """
    return java_program(class_name, arguments, classpath(jars, release), heap_mb=heap_mb, options=options)


def java_program(
    class_name: str, arguments: Sequence[str], path: str, *, heap_mb: int, options: Sequence[str] = ()
) -> list[str]:
    """Return the command that runs a class, or a source file, with a class path."""
    if class_name.endswith(".java"):
        source = Path(class_name)
        path, class_name = os.pathsep.join((path, str(_compiled(source, path)))), source.stem
    return ["java", f"-Xmx{heap_mb}m", *_JVM, *options, "-cp", path, class_name, *arguments]


def _compiled(source: Path, path: str) -> Path:
    """Return the directory with the compiled classes of a source file."""
    digest = hashlib.sha256(source.read_bytes() + path.encode()).hexdigest()[:12]

    def compile_into(directory: Path) -> None:
        command = ["javac", "-proc:none", "-nowarn", "-cp", path, "-d", str(directory), str(source)]
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True, timeout=120)

    return made_once(_HERE / "target" / f"{source.stem}-{digest}", compile_into)


def free_ports(count: int) -> list[int]:
    """Return ports that were free a moment ago; all are held until the last is found, so none repeats."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return [each.getsockname()[1] for each in sockets]


def answers(port: int) -> bool:
    """Return whether a broker listens on a loopback port without TLS and responds."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=2) as connection:
            connection.sendall(_PROBE)
            return len(connection.recv(4)) == 4
    except OSError:
        return False


class Broker:
    """One Kafka node that runs inside a ``with`` block, for at most ``lifetime`` seconds.

    ``advertised_port`` opens a second listener, at ``proxied_port``, that advertises ``127.0.0.1:advertised_port`` to
    clients: a proxy on that port sees all client traffic. ``settings`` override the broker configuration. With
    ``standalone`` the node is the first voter of a dynamic quorum, as recorded in its log instead of its configuration.
    ``home`` is a temporary directory that is deleted with the node. ``release`` is a release of Kafka in KRaft mode, by
    default the release of the definitions; ``format_options`` are for the tool that formats the storage. Raises
    :class:`BrokerError` if the node does not start.
    """

    def __init__(
        self,
        *,
        advertised_port: int | None = None,
        lifetime: int = 300,
        heap_mb: int = 256,
        settings: Mapping[str, str] | None = None,
        standalone: bool = False,
        release: str | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="kafka-msgs-broker-"))
        self._lifetime = lifetime
        self._heap_mb = heap_mb
        self._standalone = standalone
        self._release = release
        self._format_options = format_options
        self._process: subprocess.Popen[bytes] | None = None
        self.port, self.proxied_port, self._controller_port = free_ports(3)
        self._settings = {**_SETTINGS, **self._addresses(advertised_port), **(settings or {})}

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the listener that bypasses the proxy."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def log_dir(self) -> Path:
        """The directory with the partitions' segment files."""
        return self.home / "data"

    def stop(self) -> None:
        """Stop the node in an orderly way; its files are then complete, and stay as long as ``home``."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()

    def restart(self, release: str | None = None) -> None:
        """Stop the node in an orderly way, and restart it with the same files, at ``release`` if it is set."""
        self.stop()
        self._release = release or self._release
        self._start()
        self._await_ready()

    def __enter__(self) -> Broker:
        try:
            self._format()
            self._start()
            self._await_ready()
        except BaseException:
            self._clean_up()
            raise
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._clean_up()

    def _addresses(self, advertised_port: int | None) -> dict[str, str]:
        listeners = {"LOCAL": self.port, "CONTROLLER": self._controller_port}
        advertised = {"LOCAL": self.port}
        if advertised_port is not None:
            listeners["PROXIED"] = self.proxied_port
            advertised["PROXIED"] = advertised_port
        return {
            "listeners": _listener_list(listeners),
            "advertised.listeners": _listener_list(advertised),
            "log.dirs": str(self.log_dir),
            **self._quorum(),
        }

    def _quorum(self) -> dict[str, str]:
        address = f"{LOOPBACK}:{self._controller_port}"
        if self._standalone:
            return {"controller.quorum.bootstrap.servers": address}
        return {"controller.quorum.voters": f"1@{address}"}

    @property
    def _properties(self) -> Path:
        return self.home / "server.properties"

    @property
    def _output(self) -> Path:
        return self.home / "broker.out"

    def _format(self) -> None:
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in self._settings.items()))
        options = [*(["--standalone"] if self._standalone else []), *self._format_options]
        arguments = ["format", "-t", _CLUSTER_ID, "-c", str(self._properties), *options]
        run_kafka_class("kafka.tools.StorageTool", arguments, jars=Jars.NODE, release=self._release)

    def _start(self) -> None:
        arguments = [str(self._properties)]
        java = java_command("kafka.Kafka", arguments, heap_mb=self._heap_mb, jars=Jars.NODE, release=self._release)
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                ["timeout", "--kill-after=10", str(self._lifetime), *java],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _await_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while not answers(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise BrokerError("the broker did not start:\n" + self._output.read_text()[-4000:])
            time.sleep(0.1)

    def _clean_up(self) -> None:
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)


def _listener_list(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{LOOPBACK}:{port}" for name, port in ports.items())


def run_kafka_class(
    class_name: str,
    arguments: Sequence[str],
    *,
    stdin: str = "",
    timeout: float = 60,
    jars: Jars = Jars.TOOLS,
    release: str | None = None,
) -> str:
    """Run a Kafka class, or a Java source file, to completion and return its output.

    Raises ``BrokerError`` if it fails, and ``subprocess.TimeoutExpired``.
    """
    done = subprocess.run(
        java_command(class_name, arguments, heap_mb=128, jars=jars, release=release),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode != 0:
        raise BrokerError(f"{class_name} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout
