"""Retained records: time of 40 batches that are all held at once, and of walks over them.

A library reads each batch into a list of records; kafka-msgs does so, and also creates them lazily: it checks all, and
creates a record when a walk reaches it. One walk reads the offset and the timestamp of each record, another its
value.

Each library and content has a separate process, since libraries in one process share memory and the garbage collector.
``python -m benchmarks.records_held LIBRARY CONTENT`` is such a process.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.records_cases import AIOKAFKA, OURS, PEERS, libraries, written
from benchmarks.report import Figure, Times, print_figures, rows_table

__all__ = ["run"]

BATCHES: Final = 40
REPEATS: Final = 5
PROTOCOL: Final = (
    f"a process for each library and content, alternating; mean of {BATCHES} batches, the least of {{repeats}} "
    "processes; gc on, what lives before the first batch frozen; processor time"
)
LAZILY: Final = ", lazily"
_WAYS: Final = tuple(ours + how for ours in OURS for how in ("", LAZILY))
HELD: Final = "held"
WALKED: Final = "held and walked"
VALUES: Final = "held and all values read"
TARGETS: Final = {
    ("c", HELD, "plain", AIOKAFKA): 8.0,
    ("c", HELD, "key and two headers", AIOKAFKA): 1.0,
    ("c, lazily", HELD, "plain", AIOKAFKA): 10.0,
    ("c, lazily", WALKED, "plain", AIOKAFKA): 10.0,
}


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    repeats = min(rounds, REPEATS)
    figures = []
    for content in ("plain", "key and two headers"):
        measured = _measured(content, repeats)
        table = rows_table(f"{BATCHES} batches, {content}, microseconds per batch", "", *measured)
        for library in measured[HELD].seconds:
            table.add_row(library, *(f"{times.seconds[library] * 1e6:.0f}" for times in measured.values()))
        console.print(table)
        figures += [
            _figure(ours, done, content, peer, times)
            for done, times in measured.items()
            for ours in _WAYS
            for peer in PEERS
        ]
    print_figures(console, f"{BATCHES} batches held", PROTOCOL.format(repeats=repeats), figures)
    return figures


def _figure(ours: str, done: str, content: str, peer: str, times: Times) -> Figure:
    what = f"{ours}, {BATCHES} batches {done}, {content}: {peer} takes"
    return Figure(what, times.ratio(peer, ours), target=TARGETS.get((ours, done, content, peer)))


def _measured(content: str, repeats: int) -> dict[str, Times]:
    """Return the minimum seconds per batch in each library, by operation."""
    least = {done: dict.fromkeys((*_WAYS, *PEERS), float("inf")) for done in (HELD, WALKED, VALUES)}
    for _ in range(repeats):
        for library in (*_WAYS, *PEERS):
            for done, seconds in zip(least, _in_a_process(library, content), strict=True):
                least[done][library] = min(least[done][library], seconds)
    return {done: Times(seconds) for done, seconds in least.items()}


def _in_a_process(library: str, content: str) -> list[float]:
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.records_held", library, content],
        cwd=root,
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return list(map(float, done.stdout.split()))


def _seconds(library: str, content: str) -> list[float]:
    """Read and retain; return the seconds per batch alone, with a walk, and with reading all values."""
    data, name = written(content), library.removesuffix(LAZILY)
    read = libraries()[name].lazily if library != name else libraries()[name].read
    read(data)
    gc.collect()
    gc.freeze()
    start = time.process_time()
    batches = [read(data) for _ in range(BATCHES)]
    held = time.process_time()
    for records in batches:
        for record in records:
            record.offset  # noqa: B018
            record.timestamp  # noqa: B018
    walked = time.process_time()
    for records in batches:
        for record in records:
            record.value  # noqa: B018
    read_all = time.process_time()
    return [each / len(batches) for each in (held - start, walked - start, held - start + read_all - walked)]


if __name__ == "__main__":
    print(*_seconds(sys.argv[1], sys.argv[2]))
