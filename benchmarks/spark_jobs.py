"""The cost of a job over logs: CPU seconds of all its processes, in Spark and in one process.

Each run is the complete command with its report, as started by users. A tiny directory shows the fixed cost, larger
directories the cost per gigabyte, and whether it is constant. Each log then grows by one percent for an incremental
run. The job is ``group-offsets``; for another job, and other sizes, run
``python -m benchmarks.spark_jobs topic-profile 256M 512M 1G``.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import rmtree
from typing import Final, TypeAlias

from attrs import frozen
from rich.console import Console
from rich.table import Table

from benchmarks.big_directory import byte_count, grow_directory, write_directory
from benchmarks.process_tree import Taken, measured
from benchmarks.report import Figure, print_figures, rows_table
from kafka_msgs.cli.render.console import console

__all__ = ["run"]

TINY: Final = "1M"
SIZES: Final = ("1G", "2G", "4G", "8G")
CORES: Final = 2
LIMIT_SECONDS: Final = 1800
"""The time limit of a run. A run of 8 GB in one process takes two minutes on an idle machine."""
JOB: Final = "group-offsets"
CONTENTS: Final = {JOB: "offsets", "group-state": "offsets", "topic-profile": "events"}
"""The jobs, and the content of the logs that they read here."""
PROTOCOL: Final = (
    "the whole command, each time in new processes, with compiled Python as where it is installed; "
    f"Spark with local[{CORES}] and a heap of 1 GB; processor seconds of all processes; what a gigabyte more costs is "
    "the difference of two sizes; memory is resident, with the pages of mapped files"
)
_ENGINES: Final = {
    "spark": ("--master", f"local[{CORES}]", "--conf", "spark.driver.memory=1g"),
    "local": ("--engine", "local"),
}
_NAMES: Final = {"spark": "in Spark", "local": "in one process"}
_TARGETS: Final = {"spark": (35, 75, 5), "local": (None, 30, 5)}
"""The maximum CPU seconds of a run over an almost empty log and of each further gigabyte, and the maximum percentage of
a second run. In Spark, the start of Spark dominates.
"""
_MB: Final = 2**20
_GB: Final = 1e9
_STEADY: Final = 1.25
"""The maximum variation between sizes of a cost or a memory that does not grow."""


@frozen
class _Runs:
    """The cost of the runs over one directory: the first run, and the run after it has grown by one percent."""

    size: int
    first: Taken
    second: Taken


_Found: TypeAlias = "dict[tuple[str, str], _Runs]"
"""The runs by engine and size."""


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure each size once (``rounds`` does not count here), print, and return the figures."""
    return _compare(console, SIZES)


def _compare(console: Console, sizes: Sequence[str], job: str = JOB) -> list[Figure]:
    runs: _Found = {}
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-bench-") as name:
        home = Path(name)
        environment = _environment(home)
        # The first runs compile the modules that the measured runs import.
        _over(job, TINY, home, environment)
        for size in (TINY, *sizes):
            runs |= _over(job, size, home, environment)
    console.print(_table(job, runs))
    figures = [each for engine in _ENGINES for each in _figures(engine, sizes, runs)]
    print_figures(console, "Cost", PROTOCOL, figures)
    return figures


def _environment(home: Path) -> dict[str, str]:
    """Return the environment of commands: the current one, but with cached bytecode, as for an installed package."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(home / "compiled")}


def _over(job: str, size: str, home: Path, environment: Mapping[str, str]) -> _Found:
    """Return the runs of all engines over a directory, which is deleted afterwards."""
    logs, outs = home / "log", {engine: home / engine for engine in _ENGINES}
    written = write_directory(logs, byte_count(size), CONTENTS[job]).size
    first = {engine: _taken(job, engine, logs, out, environment) for engine, out in outs.items()}
    grow_directory(logs, byte_count(size), CONTENTS[job], written // 100)
    second = {engine: _taken(job, engine, logs, out, environment) for engine, out in outs.items()}
    for each in (logs, *outs.values()):
        rmtree(each)
    return {(engine, size): _Runs(written, first[engine], second[engine]) for engine in _ENGINES}


def _taken(job: str, engine: str, logs: Path, out: Path, environment: Mapping[str, str]) -> Taken:
    command = (sys.executable, "-m", "kafka_msgs", "pipeline", job, str(logs), "--out", str(out), *_ENGINES[engine])
    return measured(command, environment=environment, limit=LIMIT_SECONDS)


def _table(job: str, runs: _Found) -> Table:
    columns = (
        "engine",
        "input",
        "processor s",
        "wall clock s",
        "memory, MB",
        "of the first process",
        "after +1 %",
        "%",
    )
    table = rows_table(job, *columns)
    for (engine, size), each in runs.items():
        first, second = each.first, each.second.processor
        share = f"{100 * second / first.processor:.1f}"
        memory = (f"{number / _MB:,.0f}" for number in (first.memory, first.own_memory))
        table.add_row(engine, size, f"{first.processor:.1f}", f"{first.seconds:.1f}", *memory, f"{second:.1f}", share)
    return table


def _figures(engine: str, sizes: Sequence[str], runs: _Found) -> list[Figure]:
    where, largest = _NAMES[engine], sizes[-1]
    tiny, most = runs[engine, TINY], runs[engine, largest]
    again = 100 * most.second.processor / most.first.processor
    fixed, more, share = _TARGETS[engine]
    return [
        Figure(f"{where}, fixed", tiny.first.processor, "s", target=fixed, at_most=True),
        Figure(f"{where}, each GB more", _each_gigabyte(tiny, most), "s", target=more, at_most=True),
        Figure(f"{where}, second run after 1 % more of {largest}", again, "%", target=share, at_most=True),
        Figure(f"{where}, memory with {largest}", most.first.memory / _MB, "MB", at_most=True),
        *(_steady(engine, sizes, runs) if len(sizes) > 1 else ()),
    ]


def _steady(engine: str, sizes: Sequence[str], runs: _Found) -> Iterator[Figure]:
    """Yield whether the cost per gigabyte is the same at the largest size, and whether memory grows."""
    least, before, largest = sizes[0], sizes[-2], sizes[-1]
    tiny, small, half, most = (runs[engine, size] for size in (TINY, least, before, largest))
    cost = _each_gigabyte(half, most) / _each_gigabyte(tiny, half)
    memory = most.first.memory / small.first.memory
    for what, value in (
        (f"a GB more beyond {before}, over one before it", cost),
        (f"memory with {largest}, over that with {least}", memory),
    ):
        yield Figure(f"{_NAMES[engine]}, {what}", value, target=_STEADY, at_most=True)


def _each_gigabyte(less: _Runs, more: _Runs) -> float:
    """Return the seconds per further gigabyte, between two sizes."""
    return (more.first.processor - less.first.processor) / (more.size - less.size) * _GB


if __name__ == "__main__":
    chosen = [each for each in sys.argv[1:] if each in CONTENTS]
    _compare(console(), [each for each in sys.argv[1:] if each not in CONTENTS] or SIZES, *chosen)
