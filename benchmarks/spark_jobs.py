"""What the job ``group-offsets`` costs: processor seconds of all its processes, in Spark and in one process.

Each run is the whole command with its report, as users start it. A small directory shows what is fixed, two others what
each gigabyte more costs; one percent is added to the larger one for the run that goes on. Other sizes:
``python -m benchmarks.spark_jobs 100M 200M``.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attrs import frozen
from rich.console import Console

from benchmarks.big_directory import byte_count, grow_directory, write_directory
from benchmarks.process_tree import Taken, measured
from benchmarks.report import Figure, print_figures, rows_table
from kafka_msgs.cli.render.console import console

__all__ = ["run"]

TINY: Final = "1M"
SIZES: Final = ("1G", "2G")
CORES: Final = 2
PROTOCOL: Final = (
    f"the whole command, each time in new processes; Spark with local[{CORES}], a heap of 1 GB; processor seconds of "
    "all processes; what a gigabyte more costs is the difference of two sizes"
)
_ENGINES: Final = {
    "spark": ("--master", f"local[{CORES}]", "--conf", "spark.driver.memory=1g"),
    "local": ("--engine", "local"),
}
_MB: Final = 2**20
_GB: Final = 1e9


@frozen
class _Run:
    """What a run of an engine took over an input of so many bytes."""

    size: int
    taken: Taken


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure each size once (``rounds`` does not count here), print, and return the figures."""
    return _compare(console, SIZES)


def _compare(console: Console, sizes: Sequence[str]) -> list[Figure]:
    table = rows_table("group-offsets", "engine", "input", "processor s", "wall clock s", "memory, MB")
    runs: dict[tuple[str, str], _Run] = {}
    for size in (TINY, *sizes):
        with tempfile.TemporaryDirectory(prefix="kafka-msgs-bench-") as home:
            logs = Path(home) / "log"
            written = write_directory(logs, byte_count(size), "offsets").size
            for engine in _ENGINES:
                runs[engine, size] = _Run(written, _job(engine, logs, Path(home) / engine))
            if size == sizes[-1]:
                grow_directory(logs, byte_count(size), "offsets", written // 100)
                runs["local", "+1 %"] = _Run(written // 100, _job("local", logs, Path(home) / "local"))
    for (engine, size), each in runs.items():
        taken = each.taken
        table.add_row(engine, size, f"{taken.processor:.1f}", f"{taken.seconds:.1f}", f"{taken.memory / _MB:,.0f}")
    console.print(table)
    figures = _figures(sizes, runs)
    print_figures(console, "Cost", PROTOCOL, figures)
    return figures


def _job(engine: str, logs: Path, out: Path) -> Taken:
    job = (sys.executable, "-m", "kafka_msgs", "pipeline", "group-offsets")
    return measured((*job, str(logs), "--out", str(out), *_ENGINES[engine]))


def _figures(sizes: Sequence[str], runs: dict[tuple[str, str], _Run]) -> list[Figure]:
    largest = runs["local", sizes[-1]].taken
    again = runs["local", "+1 %"].taken.processor / largest.processor
    return [
        Figure("in Spark, fixed", runs["spark", TINY].taken.processor, "s", target=35, at_most=True),
        Figure("in Spark, each GB more", _each_gigabyte("spark", sizes, runs), "s", target=75, at_most=True),
        Figure("in one process, fixed", runs["local", TINY].taken.processor, "s"),
        Figure("in one process, each GB more", _each_gigabyte("local", sizes, runs), "s", target=30, at_most=True),
        Figure(f"second run after 1 % more of {sizes[-1]}", 100 * again, "%", target=5, at_most=True),
        Figure("memory of one process, largest", largest.memory / _MB, "MB"),
    ]


def _each_gigabyte(engine: str, sizes: Sequence[str], runs: dict[tuple[str, str], _Run]) -> float:
    """Return the seconds that a gigabyte more costs, between the tiny input and the largest."""
    less, more = runs[engine, TINY], runs[engine, sizes[-1]]
    return (more.taken.processor - less.taken.processor) / (more.size - less.size) * _GB


if __name__ == "__main__":
    _compare(console(), sys.argv[1:] or SIZES)
