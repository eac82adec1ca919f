"""Retained messages: time and memory of 300 large decoded messages.

Each library and content has a separate process, since libraries in one process share memory and the garbage collector.
``python -m benchmarks.held_trees LIBRARY CONTENT`` is such a process.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks import codec_metadata, message_cases, peers
from benchmarks.report import Figure, Times, print_figures, rows_table

__all__ = ["run"]

TREES: Final = 300
REPEATS: Final = 3
PROTOCOL: Final = (
    f"a process for each library and content, alternating; mean of {TREES} trees, the least of {{repeats}} processes; "
    "gc on, what lives before the first tree frozen; processor time; memory is what the process grew by"
)
HELD: Final = ("fixed", "varied", "small")
LIBRARIES: Final = (*peers.OURS, peers.KAFKA_PYTHON, peers.KIO, peers.MSGSPEC, peers.MSGSPEC_TUPLES)
COMPARED: Final = (peers.KAFKA_PYTHON, peers.KIO, peers.MSGSPEC, peers.MSGSPEC_TUPLES)
TIME_TARGETS: Final = {("c", "varied", peers.KIO): 12.0, ("c", "varied", peers.KAFKA_PYTHON): 25.0}
MEMORY_TARGETS: Final = {("c", "varied", peers.KIO): 0.46}
_STATISTICS: Final = Path("/proc/self/statm")


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures; return none if the system does not report process memory."""
    if not _STATISTICS.exists():
        console.print(f"Held trees: not measured, since there is no {_STATISTICS} here")
        return []
    repeats = min(rounds, REPEATS)
    figures = []
    for name in HELD:
        seconds, memory = _measured(name, repeats)
        table = rows_table(f"{TREES} trees held, {name} content", "", "microseconds a tree", "KiB a tree")
        for library in LIBRARIES:
            table.add_row(library, f"{seconds.seconds[library] * 1e6:.0f}", f"{memory.seconds[library] / 1024:.0f}")
        console.print(table)
        figures += [_time_figure(ours, name, peer, seconds) for ours in peers.OURS for peer in COMPARED]
        figures += [_memory_figure(ours, name, peer, memory) for ours in peers.OURS for peer in COMPARED]
    print_figures(console, f"{TREES} trees held", PROTOCOL.format(repeats=repeats), figures)
    return figures


def _time_figure(ours: str, name: str, peer: str, times: Times) -> Figure:
    target = TIME_TARGETS.get((ours, name, peer))
    return Figure(f"{ours}, decode and hold, {name}: {peer} takes", times.ratio(peer, ours), target=target)


def _memory_figure(ours: str, name: str, peer: str, memory: Times) -> Figure:
    target = MEMORY_TARGETS.get((ours, name, peer))
    what = f"{ours}, memory held, {name}: over that of {peer}"
    return Figure(what, memory.ratio(ours, peer), target=target, at_most=True)


def _measured(name: str, repeats: int) -> tuple[Times, Times]:
    """Return the minimum seconds, and the minimum bytes, per tree in each library."""
    seconds, memory = ({library: float("inf") for library in LIBRARIES} for _ in range(2))
    for _ in range(repeats):
        for library in LIBRARIES:
            taken, grown = _in_a_process(library, name)
            seconds[library] = min(seconds[library], taken)
            memory[library] = min(memory[library], grown)
    return Times(seconds), Times(memory)


def _in_a_process(library: str, name: str) -> tuple[float, float]:
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.held_trees", library, name],
        cwd=root,
        env=os.environ | {"PYTHONPATH": root},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    taken, grown = json.loads(done.stdout)
    return taken, grown


def _case(library: str, name: str) -> peers.Case | None:
    message, version = message_cases.metadata(name), codec_metadata.VERSION
    if library in peers.OURS:
        return peers.executor(library, message, version)
    if library == peers.KAFKA_PYTHON:
        return peers.kafka_python(codec_metadata.MESSAGE, version, message.encode(version))
    if library == peers.KIO:
        return peers.kio(type(message), version, message.encode(version))
    return peers.msgspec_case(message, version, tuples=library == peers.MSGSPEC_TUPLES)


def _hold(library: str, name: str) -> tuple[float, float]:
    """Decode and retain messages; return the seconds and the bytes of resident memory per tree."""
    case = _case(library, name)
    assert case is not None
    case.decode()
    gc.collect()
    gc.freeze()
    decode, before, start = case.decode, _resident(), time.process_time()
    trees = [decode() for _ in range(TREES)]
    taken = time.process_time() - start
    return taken / TREES, (_resident() - before) / len(trees)


def _resident() -> int:
    return int(_STATISTICS.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(_hold(sys.argv[1], sys.argv[2])))
