"""What programs pay that keep records: time of 40 batches read into lists that are all held at once.

One process for each library and content, since libraries that share one share its memory and its garbage collector.
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
TARGETS: Final = {("c", "plain", AIOKAFKA): 8.0, ("c", "key and two headers", AIOKAFKA): 1.0}


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    repeats = min(rounds, REPEATS)
    figures = []
    for content in ("plain", "key and two headers"):
        seconds = _measured(content, repeats)
        table = rows_table(f"{BATCHES} batches held, {content}", "", "microseconds per batch")
        for library, taken in seconds.seconds.items():
            table.add_row(library, f"{taken * 1e6:.0f}")
        console.print(table)
        figures += [_figure(ours, content, peer, seconds) for ours in OURS for peer in PEERS]
    print_figures(console, f"{BATCHES} batches held", PROTOCOL.format(repeats=repeats), figures)
    return figures


def _figure(ours: str, content: str, peer: str, times: Times) -> Figure:
    what = f"{ours}, {BATCHES} batches held, {content}: {peer} takes"
    return Figure(what, times.ratio(peer, ours), target=TARGETS.get((ours, content, peer)))


def _measured(content: str, repeats: int) -> Times:
    """Return the least seconds per batch in each library."""
    seconds = dict.fromkeys((*OURS, *PEERS), float("inf"))
    for _ in range(repeats):
        for library in seconds:
            seconds[library] = min(seconds[library], _in_a_process(library, content))
    return Times(seconds)


def _in_a_process(library: str, content: str) -> float:
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
    return float(done.stdout)


def _hold(library: str, content: str) -> float:
    """Read and keep; return the seconds that one batch takes."""
    read, data = libraries()[library].read, written(content)
    read(data)
    gc.collect()
    gc.freeze()
    start = time.process_time()
    batches = [read(data) for _ in range(BATCHES)]
    return (time.process_time() - start) / len(batches)


if __name__ == "__main__":
    print(_hold(sys.argv[1], sys.argv[2]))
