"""The commands of jobs on the cluster: with killed executors, with a killed driver, and on workers with another disk.

Tables must equal the tables of the engine ``local``, row for row, and the exit status must be 0.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console

from kafka_msgs.filesystems.storage import Storage
from kafka_msgs.tables.commit_log import CommitLog
from tests.campaigns.spark_cluster.actions import busy
from tests.campaigns.spark_cluster.cluster import SETTINGS, Cluster, executors_of, kill_one, python_of, running_cluster
from tests.support.committed_tables import committed_tables
from tests.support.truncated_logs import copy_of_earlier

__all__ = ["check_jobs", "check_killed_driver", "check_other_disk"]

_JOBS: Final[Mapping[str, Sequence[str]]] = {"group-offsets": ("--history",), "group-state": (), "topic-profile": ()}
_KILLS: Final = 2
_BUSY_SECONDS: Final = 1.5
"""The processor time of the Python processes of executors before each kill."""
_POLL: Final = 0.05
_SECONDS: Final = 900


def check_jobs(out: Console, cluster: Cluster, home: Path, logs: Path) -> Iterator[bool]:
    """Yield whether each job has the tables of a run in one process, with killed executors."""
    for job in _JOBS:
        wanted = _local_tables(job, logs, home / f"{job}-local")
        yield _with_killed_executors(out, job, cluster, logs, home / f"{job}-spark", wanted)


def check_killed_driver(out: Console, cluster: Cluster, home: Path, logs: Path) -> bool:
    """Kill the driver of a run that goes on from an earlier one, and run the command again.

    Return whether the kill left the tables unchanged, and the next run makes them equal to a run in one process.
    """
    growing, place, job = home / "growing", home / "driver", "group-offsets"
    before = _local_tables(job, copy_of_earlier(logs, growing, 0.2), place)
    copy_of_earlier(logs, growing, 1)
    wanted = _local_tables(job, growing, home / "driver-local")
    due = busy(cluster.workers, _BUSY_SECONDS, python_of)
    command = _command(job, growing, place, cluster)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=_environment()) as driver:
        while driver.poll() is None and not due():
            time.sleep(_POLL)
        driver.kill()
    log = CommitLog(Storage.at(str(place)))
    unchanged = log.numbers() == [1] and _tables(place) == before
    while executors_of(cluster.workers):
        time.sleep(_POLL)
    done = _run(_command(job, growing, place, cluster))
    if done.returncode:
        out.print(f"driver of {job}: the next run has status {done.returncode}: {done.stderr[-1000:]}")
        return False
    equal = log.numbers() == [1, 2] and _tables(place) == wanted
    shutil.rmtree(growing)
    killed = driver.returncode < 0
    found = {"killed": killed, "tables unchanged": unchanged, "next run equal": equal}
    out.print(f"driver of {job}: " + ", ".join(f"{name}: {'yes' if each else 'NO'}" for name, each in found.items()))
    return killed and unchanged and equal


def check_other_disk(out: Console, home: Path, logs: Path, seconds: int) -> bool:
    """Return whether a job is refused if workers see another disk at the output directory."""
    place, own = home / "other-disk", home / "other-cluster"
    place.mkdir()
    own.mkdir()
    with running_cluster(own, seconds, hidden=place) as cluster:
        done = _run(_command("group-offsets", logs, place, cluster))
    commits = CommitLog(Storage.at(str(place))).numbers()
    refused = done.returncode == 1 and "do not share this location" in done.stderr and not commits
    out.print(f"workers with another disk: {'refused' if refused else 'NOT REFUSED: ' + done.stderr[-1000:]}")
    return refused


def _command(job: str, logs: Path, place: Path, cluster: Cluster | None) -> list[str]:
    module = "kafka_msgs" if cluster is None else "tests.campaigns.spark_cluster.small_ranges"
    command = [sys.executable, "-m", module, "pipeline", job, str(logs), "--out", str(place), *_JOBS[job]]
    if cluster is None:
        return [*command, "--engine", "local"]
    confs = (part for name, value in SETTINGS.items() for part in ("--conf", f"{name}={value}"))
    return [*command, "--master", cluster.master, *confs]


def _environment() -> dict[str, str]:
    return os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=_environment(), capture_output=True, text=True, timeout=_SECONDS, check=False
    )  # fmt: skip


def _local_tables(job: str, logs: Path, place: Path) -> dict[str, list[str]]:
    _run(_command(job, logs, place, None)).check_returncode()
    return _tables(place)


def _tables(place: Path) -> dict[str, list[str]]:
    """Return the sorted rows of each table, as text."""
    tables = committed_tables(str(place))
    return {name: sorted(repr(sorted(row.items())) for row in rows) for name, rows in tables.items()}


def _with_killed_executors(
    out: Console, job: str, cluster: Cluster, logs: Path, place: Path, wanted: dict[str, list[str]]
) -> bool:
    start = time.monotonic()
    with _killing_several(cluster) as killed:
        done = _run(_command(job, logs, place, cluster))
    if done.returncode:
        out.print(f"{job}: status {done.returncode}: {done.stderr[-1000:]}")
        return False
    equal, listed = _tables(place) == wanted, _files(place)
    rows, seconds = sum(map(len, wanted.values())), time.monotonic() - start
    same = "EQUAL" if equal else "DIFFERENT"
    out.print(f"{job}: {same}, {rows:,} rows, executors {killed} killed, {listed}, {seconds:.0f} s")
    return equal and len(killed) == _KILLS


def _files(place: Path) -> str:
    """Return the number of files in the manifest, all of which exist, and of the files that attempts have left."""
    log = CommitLog(Storage.at(str(place)))
    head = log.head()
    assert head is not None
    there = {each.path: each.size for each in log.storage.list_files("data")}
    listed = {each.path: each.size for each in head.files()}
    assert listed.items() <= there.items()
    return f"{len(listed)} files listed of {len(there)}"


@contextmanager
def _killing_several(cluster: Cluster) -> Iterator[list[int]]:
    """Kill executors one after another, each once executors are busy; yield the list of killed ones."""
    ended, killed = threading.Event(), list[int]()

    def watch() -> None:
        for _ in range(_KILLS):
            due = busy(cluster.workers, _BUSY_SECONDS, python_of)
            while not (due() and executors_of(cluster.workers)):
                if ended.wait(_POLL):
                    return
            killed.append(kill_one(cluster.workers))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        ended.set()
        thread.join()
