"""A standalone Spark cluster on loopback: a master, workers and a Spark Connect server, each in a process that ends.

This module starts and ends them, and finds executors. ``actions`` runs the work on the cluster.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import pyspark
from attrs import frozen

__all__ = ["SETTINGS", "Cluster", "executors_of", "kill_one", "python_of", "running_cluster", "running_server"]

LOOPBACK: Final = "127.0.0.1"
WORKERS: Final = 2
_START_SECONDS: Final = 120
_CLASSES: Final = "org.apache.spark.deploy"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"
_PYTHON: Final = "pyspark.daemon"
_OTHER_DISK: Final = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
SETTINGS: Final = {
    "spark.driver.bindAddress": LOOPBACK,
    "spark.driver.memory": "1g",
    "spark.executor.memory": "512m",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
"""Driver configs, for this process and for the Spark Connect server."""


@frozen
class Cluster:
    """The URL of a cluster. ``workers`` are the parent processes of executors."""

    master: str
    workers: tuple[int, ...]


@contextmanager
def running_cluster(home: Path, seconds: int, hidden: Path | None = None) -> Iterator[Cluster]:
    """Start a cluster that ends with the context, and at the latest after this many seconds. Logs are in ``home``.

    The workers see an empty disk of their own at the directory ``hidden``, if it is set; this needs Linux and root.
    """
    with ExitStack() as stack:

        def start(name: str, *arguments: str, prefix: tuple[str, ...] = ()) -> int:
            return stack.enter_context(_process(home / f"{name}.log", seconds, arguments, prefix)).pid

        port = _free_port()
        master = f"spark://{LOOPBACK}:{port}"
        start("master", f"{_CLASSES}.master.Master", "--host", LOOPBACK, "--port", str(port), "--webui-port", "0")
        _wait_for(port)
        worker = (
            f"{_CLASSES}.worker.Worker",
            "--host",
            LOOPBACK,
            "--webui-port",
            "0",
            "--cores",
            "1",
            "--memory",
            "1g",
        )
        prefix = () if hidden is None else (*_OTHER_DISK, str(hidden))
        numbers = range(WORKERS)
        workers = tuple(
            start(f"worker{each}", *worker, "--work-dir", str(home / f"work{each}"), master, prefix=prefix)
            for each in numbers
        )
        yield Cluster(master, workers)


@contextmanager
def running_server(cluster: Cluster, home: Path, seconds: int) -> Iterator[str]:
    """Start a Spark Connect server with all cores of the cluster; yield its URL, and end it with the context."""
    port = _free_port()
    settings = {
        **SETTINGS,
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
    }
    confs = (part for name, value in settings.items() for part in ("--conf", f"{name}={value}"))
    server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal")
    arguments = (f"{_CLASSES}.SparkSubmit", "--master", cluster.master, *confs, *server)
    with _process(home / "connect.log", seconds, arguments):
        _wait_for(port)
        yield f"sc://{LOOPBACK}:{port}"


@contextmanager
def _process(
    log: Path, seconds: int, arguments: tuple[str, ...], prefix: tuple[str, ...] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    home = Path(pyspark.__file__).parent
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "PYTHONSAFEPATH": "1",
    }
    command = [*prefix, "timeout", "--kill-after=10", str(seconds), str(home / "bin" / "spark-class"), *arguments]
    with log.open("wb") as output, subprocess.Popen(
        command, stdout=output, stderr=output, env=environment, cwd=log.parent, start_new_session=True
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(30)


def executors_of(workers: tuple[int, ...]) -> list[int]:
    """Return the process ids of executors below these workers."""
    return _below(workers, _EXECUTOR)


def python_of(workers: tuple[int, ...]) -> list[int]:
    """Return the process ids of the Python processes of executors below these workers."""
    return _below(workers, _PYTHON)


def _below(workers: tuple[int, ...], words: str) -> list[int]:
    parents = dict(_processes())
    return [each for each in parents if _is_below(each, workers, parents) and words in _command(each)]


def kill_one(workers: tuple[int, ...]) -> int:
    """Kill the oldest executor, and return its process id."""
    victim = min(executors_of(workers))
    os.kill(victim, signal.SIGKILL)
    return victim


def _is_below(process: int, ancestors: tuple[int, ...], parents: dict[int, int]) -> bool:
    while process in parents:
        process = parents[process]
        if process in ancestors:
            return True
    return False


def _processes() -> Iterator[tuple[int, int]]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield int(path.parent.name), int(path.read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection((LOOPBACK, port), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
