"""One cluster for a whole test run, whoever of its processes asks first: ``python -m tests.support.shared_cluster``.

The first process that needs the cluster starts a supervisor, which starts the nodes and ends them once the test run has
ended, however it ended. The others wait on a lock, and read where the cluster is.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.recorders.broker import BrokerError, Jars, classpath
from tests.support.kafka_cluster import ClusterAddresses, KafkaCluster

__all__ = ["shared_cluster"]

_ROOT: Final = Path(__file__).parents[2]
_ADDRESSES: Final = "cluster.json"
_OUTPUT: Final = "cluster-output.txt"
_POLL_SECONDS: Final = 0.2


def shared_cluster(directory: Path, run: int) -> ClusterAddresses:
    """The cluster of the test run whose main process is ``run``; ``directory`` is one that its processes share.

    Raises :class:`~tests.recorders.broker.BrokerError` when it does not start, and to later callers at once.
    """
    addresses = directory / _ADDRESSES
    output = directory / _OUTPUT
    with (directory / "cluster.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not output.exists():
            _start(directory, run)
    if not addresses.exists():
        raise BrokerError("the shared cluster did not start:\n" + output.read_text())
    return ClusterAddresses.from_json(addresses.read_text())


def _start(directory: Path, run: int) -> None:
    """Start a supervisor, and wait until the cluster is there or the supervisor gave up."""
    with (directory / _OUTPUT).open("wb") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "tests.support.shared_cluster", str(directory), str(run)],
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while supervisor.poll() is None and not (directory / _ADDRESSES).exists():
        time.sleep(_POLL_SECONDS)
    # The supervisor outlives whoever started it, and is not waited for.
    supervisor.returncode = supervisor.returncode or 0


def main(directory: Path, run: int) -> None:
    """Run a cluster until the process ``run`` is gone."""
    for jars in Jars:
        classpath(jars)
    with KafkaCluster() as cluster:
        new = directory / f"{_ADDRESSES}.new"
        new.write_text(cluster.to_json())
        new.rename(directory / _ADDRESSES)
        while _is_alive(run):
            time.sleep(_POLL_SECONDS)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
