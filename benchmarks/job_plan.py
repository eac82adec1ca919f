"""The scale of jobs: the plan of many partitions, and large partitions in several ranges.

The plan lists 100,000 partitions with three replicas of some, which are links to one segment, in two processes, and
chooses replicas in the first process, whose memory is measured, as is what each task receives. Then partitions of
``__consumer_offsets`` with transactions are read in one pass and in eight ranges each, with the same rows. For another
number of partitions run ``python -m benchmarks.job_plan 10000``.
"""

from __future__ import annotations

import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import pyarrow.dataset as ds
from rich.console import Console

from benchmarks.big_directory import byte_count, write_directory
from benchmarks.report import Figure, print_figures
from benchmarks.segment import STATUS
from kafka_msgs.analysis.group_offsets_job import group_offsets_job
from kafka_msgs.analysis.profile_job import TOPIC_PROFILE
from kafka_msgs.cli.render.console import console
from kafka_msgs.engines.job import run_job
from kafka_msgs.engines.local import local_engine
from kafka_msgs.engines.partition_task import read_task
from kafka_msgs.engines.plan import NO_SPLIT, read_batch
from kafka_msgs.engines.replicas import JobInputs
from kafka_msgs.records import BatchBuilder

__all__ = ["run"]

PARTITIONS: Final = 100_000
BROKERS: Final = 50
LOG_BYTES: Final = "512M"
"""The size of eight partitions with a million records each."""
RANGES: Final = 8
_ROUNDS: Final = 3
_KILO, _MEGA = 1e3, 1e6


class _PlannedError(Exception):
    """Ends a run after its plan."""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    return _print(console, PARTITIONS, min(rounds, _ROUNDS))


def _print(out: Console, partitions: int, rounds: int) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-plan-") as home:
        figures = [*(_planned(Path(home), partitions) if STATUS.exists() else ()), *_split(Path(home), rounds)]
    print_figures(out, "Plan and ranges", "local disk, two processes for listings", figures)
    return figures


def _planned(home: Path, partitions: int) -> list[Figure]:
    _write_brokers(home / "cluster", partitions)
    command = [sys.executable, "-m", "benchmarks.job_plan", "plan", str(home)]
    done = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, check=True, timeout=1800)
    found = json.loads(done.stdout)
    return [
        Figure(f"plan of {partitions:,} partitions", found["seconds"], "s"),
        Figure("memory of the driver", found["memory"] / _MEGA, "MB", target=250, at_most=True),
        Figure("sent to each task, plan included", found["sent"] / _KILO, "kB", target=100, at_most=True),
        Figure("tasks", found["tasks"], ""),
    ]


def _write_brokers(home: Path, partitions: int) -> None:
    builder = BatchBuilder()
    for number in range(60):
        builder.append(b"key", b"value", timestamp=1_767_225_600_000 + number)
    sources = {
        f"{0:020}.log": builder.build(),
        "partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        "leader-epoch-checkpoint": b"0\n1\n0 0\n",
    }
    for broker in range(BROKERS):
        # A file has a maximum number of links, such as 65,000.
        files = home / f"files-{broker}"
        files.mkdir(parents=True)
        for name, content in sources.items():
            (files / name).write_bytes(content)
        (home / f"broker-{broker}").mkdir()
        (home / f"broker-{broker}" / "meta.properties").write_text(f"version=1\nnode.id={broker}\n")
    for number in range(partitions):
        broker = number % BROKERS
        directory = home / f"broker-{broker}" / f"topic-{number // 100}-{number % 100}"
        directory.mkdir()
        for name in sources:
            os.link(home / f"files-{broker}" / name, directory / name)


def _plan(home: Path) -> None:
    """Plan a run, and print its time, the peak of resident memory, and the largest input of a task."""
    found: dict[str, Any] = {}
    listing = local_engine(workers=2)

    def planning(function: Any, count: int) -> Iterable[Any]:
        if function.func is not read_task:
            return listing(function, count)
        (task,) = function.args
        batches = [read_batch(task.storage, task.plan, number).nbytes for number in range(count)]
        found.update(tasks=count, sent=max(batches) + len(pickle.dumps(function)))
        raise _PlannedError

    start = time.perf_counter()
    try:
        run_job(TOPIC_PROFILE, JobInputs.at([str(home / "cluster" / "broker-*")]), str(home / "out"), planning)
    except _PlannedError:
        found["seconds"] = time.perf_counter() - start
    peak = re.search(r"VmHWM:\s+(\d+) kB", STATUS.read_text())
    assert peak is not None
    print(json.dumps({**found, "memory": int(peak[1]) * 1024}))


def _split(home: Path, rounds: int) -> list[Figure]:
    written = write_directory(home / "offsets", byte_count(LOG_BYTES), "offsets")
    partitions = len(list((home / "offsets").glob("__consumer_offsets-*")))
    sizes = {"whole": NO_SPLIT, "ranges": written.size // partitions // RANGES}
    seconds, rows = dict.fromkeys(sizes, float("inf")), dict[str, Any]()
    for number in range(rounds):
        for name, size in sizes.items():
            out = home / f"{name}-{number}"
            taken = _seconds(lambda out=out, size=size: _read(home / "offsets", out, size))  # type: ignore[misc]
            seconds[name] = min(seconds[name], taken)
            rows.setdefault(name, _rows(out))
    assert rows["whole"] == rows["ranges"], "the ranges of a partition have other rows than one pass"
    return [
        Figure(f"{written.records:,} records in one pass", seconds["whole"], "s of CPU"),
        Figure(f"in {RANGES} ranges a partition", seconds["ranges"] / seconds["whole"], target=1.3, at_most=True),
    ]


def _seconds(function: Callable[[], None]) -> float:
    before = time.process_time()
    function()
    return time.process_time() - before


def _read(logs: Path, out: Path, split_bytes: int) -> None:
    run_job(group_offsets_job(), JobInputs.at([logs]), str(out), local_engine(), split_bytes=split_bytes)


def _rows(out: Path) -> dict[str, list[str]]:
    tables = {each.name: ds.dataset(each, partitioning="hive").to_table() for each in (out / "current").iterdir()}
    return {name: sorted(map(repr, table.to_pylist())) for name, table in tables.items()}


if __name__ == "__main__":
    if sys.argv[1:2] == ["plan"]:
        _plan(Path(sys.argv[2]))
    else:
        _print(console(), int(sys.argv[1]) if sys.argv[1:] else PARTITIONS, _ROUNDS)
