"""How the job ``group-offsets`` grows with its input: its seconds, and the memory of its driver.

Each size is run in a process of its own, so that memory is that of this run. In a local session one JVM is driver and
executors; it has the same heap whatever the size, and the peak of its process is reported, and that of the Python
process which drives it. Other sizes: ``python -m benchmarks.spark_jobs 256M 512M``.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from attrs import frozen
from rich.console import Console

from benchmarks.big_directory import byte_count, write_directory
from benchmarks.report import Figure, print_figures, rows_table
from kafka_msgs.cli.render.console import console
from kafka_msgs.cli.spark_session import session_for
from kafka_msgs.spark.jobs import group_offsets
from kafka_msgs.spark.jobs.job import run as run_job
from kafka_msgs.spark.jobs.log_directories import log_frame, partitions_frame, partitions_in

__all__ = ["run"]

SIZES: Final = ("1G", "2G", "4G")
CORES: Final = 2
PROTOCOL: Final = f"local[{CORES}], a heap of 1 GB, tables and report written, a new process for each size, wall clock"
_SETTINGS: Final = (("spark.driver.memory", "1g"), ("spark.sql.shuffle.partitions", str(4 * CORES)))
_MB: Final = 2**20


@frozen
class _Run:
    """What one run took: seconds, and at most so many bytes in Python and in the JVM."""

    seconds: float
    python: int
    jvm: int


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure each size once (``rounds`` does not count here), print, and return the figures."""
    return _compare(console, SIZES)


def _compare(console: Console, sizes: Sequence[str]) -> list[Figure]:
    table = rows_table("group-offsets", "input", "records", "seconds", "MB/s", "Python, MB", "JVM, MB")
    runs = []
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="kafka-msgs-bench-") as home:
            written = write_directory(Path(home) / "log", byte_count(size), "offsets")
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
                taken = apart.submit(_measured, Path(home)).result()
        runs.append(taken)
        speed = written.size / taken.seconds / 1e6
        megabytes = (f"{each / _MB:,.0f}" for each in (taken.python, taken.jvm))
        table.add_row(size, f"{written.records:,}", f"{taken.seconds:.1f}", f"{speed:.1f}", *megabytes)
    console.print(table)
    figures = _figures(sizes, runs)
    print_figures(console, "Growth", PROTOCOL, figures)
    return figures


def _figures(sizes: Sequence[str], runs: Sequence[_Run]) -> list[Figure]:
    first, last = runs[0], runs[-1]
    growth = byte_count(sizes[-1]) / byte_count(sizes[0])
    what = f"{sizes[-1]} against {sizes[0]}"
    return [
        Figure(f"seconds per byte, {what}", last.seconds / first.seconds / growth, target=1.25, at_most=True),
        Figure(f"memory of Python, {what}", last.python / first.python, target=1.1, at_most=True),
        Figure(f"memory of the JVM, {what}", last.jvm / first.jvm, target=1.25, at_most=True),
    ]


def _measured(home: Path) -> _Run:
    """Run the job over the log directory in ``home``; in a process of its own."""
    with session_for("a benchmark", f"local[{CORES}]", _SETTINGS) as spark:
        partitions = partitions_in([home / "log"])
        inputs = {"records": log_frame(spark, [home / "log"]), "partitions": partitions_frame(spark, partitions)}
        start = time.perf_counter()
        run_job(group_offsets.JOB, inputs, str(home / "out"))
        seconds = time.perf_counter() - start
        jvm = int(spark._jvm.ProcessHandle.current().pid())  # type: ignore[union-attr]
        return _Run(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, _most_memory(jvm))


def _most_memory(process: int) -> int:
    """The most that a process had in memory so far, in bytes, as Linux tells it."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _compare(console(), sys.argv[1:] or SIZES)
