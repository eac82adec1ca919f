"""The clusters of a test run, started by the first process that needs one: ``python -m tests.support.shared_cluster``.

There are at most two: one that all tests use concurrently without changing it, and one whose nodes tests may kill, used
by one test at a time. The first process that needs a cluster starts a supervisor, which starts the nodes, and ends them
however the test run ends.

The supervisor of the second cluster listens on a loopback port. A test holds the cluster while it is connected; the
next test waits for its turn. Before each turn the supervisor repairs the damage by the previous test, or starts a new
cluster if the repair fails. After the last turn it ends the nodes.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final

from attrs import define, field

from tests.recorders.broker import LOOPBACK, BrokerError, Jars, classpath
from tests.support.file_locks import lock_file
from tests.support.kafka_cluster import ClusterAddresses, KafkaCluster

__all__ = ["BreakableCluster", "Run", "Turns", "breakable_cluster", "shared_cluster"]

_ROOT: Final = Path(__file__).parents[2]
_POLL_SECONDS: Final = 0.2


class _Kind(StrEnum):
    """The supervisor types."""

    SHARED = "shared"
    """Writes the addresses of the shared cluster."""
    BREAKABLE = "breakable"
    """Writes its listening port."""


@define
class Run:
    """A test run: its main process, its processes' shared directory, and the number of tests that break a cluster."""

    process: int
    directory: Path
    breaking: int = 0


class BreakableCluster(ClusterAddresses):
    """Three nodes reserved for one test: it may stop, kill, pause and start them without restoring them.

    Methods raise :class:`~tests.recorders.broker.BrokerError` when a node fails to do so.
    """

    def __init__(self, addresses: ClusterAddresses, ask: Callable[[str, int], None]) -> None:
        super().__init__(addresses.ports, addresses.home)
        self._ask = ask

    def stop(self, node: int) -> None:
        """Stop a node in an orderly way: it first hands over its partitions."""
        self._ask("stop", node)

    def kill(self, node: int) -> None:
        """Kill a node immediately, whatever it is doing."""
        self._ask("kill", node)

    def start(self, node: int) -> None:
        """Restart a stopped or killed node on the same ports, and wait until it serves."""
        self._ask("start", node)

    def pause(self, node: int) -> None:
        """Freeze a node: its connections stay open, and it sends no responses."""
        self._ask("pause", node)

    def resume(self, node: int) -> None:
        """Resume a frozen node."""
        self._ask("resume", node)


def shared_cluster(run: Run) -> ClusterAddresses:
    """Return the cluster that all tests of a run use concurrently.

    Raises :class:`~tests.recorders.broker.BrokerError` when it does not start, immediately for later callers.
    """
    return ClusterAddresses.from_json(_supervisor(_Kind.SHARED, run))


@contextlib.contextmanager
def breakable_cluster(run: Run) -> Iterator[BreakableCluster]:
    """Reserve the cluster that one test at a time uses; waits for the test's turn and until all nodes serve.

    Raises :class:`~tests.recorders.broker.BrokerError` when the nodes do not start.
    """
    port = int(_supervisor(_Kind.BREAKABLE, run))
    with socket.create_connection((LOOPBACK, port)) as connection, connection.makefile("rw") as lines:

        def answer() -> str:
            given = json.loads(next(lines, '{"error": "the supervisor has ended"}'))
            if "error" in given:
                raise BrokerError(given["error"])
            return str(given["done"])

        def ask(action: str, node: int) -> None:
            lines.write(json.dumps([action, node]) + "\n")
            lines.flush()
            answer()

        yield BreakableCluster(ClusterAddresses.from_json(answer()), ask)


def _supervisor(kind: _Kind, run: Run) -> str:
    """Return the output file of a supervisor; the first caller starts it."""
    written, output = run.directory / kind, run.directory / f"{kind}-output.txt"
    with (run.directory / f"{kind}.lock").open("w") as lock:
        lock_file(lock)
        if not output.exists():
            _start(kind, run, output)
    if not written.exists():
        raise BrokerError(f"the {kind} cluster did not start:\n" + output.read_text())
    return written.read_text()


def _start(kind: _Kind, run: Run, output: Path) -> None:
    """Start a supervisor, and wait until it has written its file or ended."""
    arguments = [kind, str(run.process), str(run.directory), str(run.breaking)]
    with output.open("wb") as errors:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "tests.support.shared_cluster", *arguments],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while supervisor.poll() is None and not (run.directory / kind).exists():
        time.sleep(_POLL_SECONDS)
    # The supervisor outlives the process that started it, so nothing waits for its end.
    supervisor.returncode = supervisor.returncode or 0


def _write(kind: _Kind, run: Run, text: str) -> None:
    new = run.directory / f"{kind}.new"
    new.write_text(text)
    new.rename(run.directory / kind)


def _supervise_shared(run: Run) -> None:
    """Run a cluster until the test run ends."""
    with KafkaCluster() as cluster:
        _write(_Kind.SHARED, run, cluster.to_json())
        while _is_alive(run.process):
            time.sleep(_POLL_SECONDS)


def _supervise_breakable(run: Run) -> None:
    """Lend a cluster to one connection after another until the test run ends."""
    with socket.create_server((LOOPBACK, 0)) as server, Turns(run.breaking, _breakable) as turns:
        server.settimeout(_POLL_SECONDS)
        _write(_Kind.BREAKABLE, run, str(server.getsockname()[1]))
        while _is_alive(run.process):
            with contextlib.suppress(TimeoutError):
                connection, _ = server.accept()
                with connection, contextlib.suppress(ConnectionError):
                    turns.give(connection)


@define
class Turns:
    """The cluster that tests use in turn, the number of remaining tests, and the cluster factory."""

    left: int
    make: Callable[[], KafkaCluster]
    _kept: contextlib.ExitStack = field(factory=contextlib.ExitStack)
    _cluster: KafkaCluster | None = None

    def __enter__(self) -> Turns:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def give(self, connection: socket.socket) -> None:
        """Lend the cluster to a test until its connection ends."""
        with connection.makefile("r") as questions, connection.makefile("w") as answers:

            def attempt(action: Callable[[], str | None]) -> None:
                try:
                    answer = {"done": action()}
                except BrokerError as error:
                    answer = {"error": str(error)}
                answers.write(json.dumps(answer) + "\n")
                answers.flush()

            attempt(lambda: self._whole().to_json())
            for line in questions:
                action, node = json.loads(line)
                attempt(lambda: getattr(self._cluster, action)(node))  # noqa: B023
        self.left -= 1
        if self.left <= 0:
            self._end()

    def _whole(self) -> KafkaCluster:
        """Return a cluster whose nodes all serve: the previous test's cluster, or a new one."""
        if self._cluster is not None:
            try:
                self._cluster.repair()
            except BrokerError as error:
                print(f"a new cluster is needed: {error}", flush=True)
                self._end()
        if self._cluster is None:
            self._cluster = self._kept.enter_context(self.make())
        return self._cluster

    def _end(self) -> None:
        self._cluster = None
        self._kept.close()


def _breakable() -> KafkaCluster:
    """Return nodes that quickly detect a killed node, as tests wait for that."""
    return KafkaCluster(settings={"broker.session.timeout.ms": "3000"})


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def main(kind: str, process: str, directory: str, breaking: str) -> None:
    """Run the supervisor of a cluster."""
    for jars in Jars:
        classpath(jars)
    run = Run(int(process), Path(directory), int(breaking))
    supervise = {_Kind.SHARED: _supervise_shared, _Kind.BREAKABLE: _supervise_breakable}
    supervise[_Kind(kind)](run)


if __name__ == "__main__":
    main(*sys.argv[1:])
