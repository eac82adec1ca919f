"""Measurement of time and memory. Every benchmark uses only these functions.

Rounds are interleaved: each round times every case once, in alternating order, so that a slow phase of the machine
affects all cases equally; the fastest round counts. The cyclic garbage collector is on. Before the first round, live
objects are frozen (``gc.freeze``), and the collector runs before every timing, so a case pays for the collections that
its own objects cause, but not for the surrounding heap. The measured time is the CPU time of the process instead of
wall-clock time, so other programs at most evict a case's caches.
"""

from __future__ import annotations

import ast
import gc
import subprocess
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from inspect import getsource
from itertools import repeat
from statistics import median
from typing import Any, Final, TypeAlias

__all__ = ["PROTOCOL", "ROUNDS", "Action", "cold", "fastest", "peak_memory"]

Action: TypeAlias = Callable[[], Any]

ROUNDS: Final = 20
PROTOCOL: Final = (
    "same process, interleaved, processor time, fastest of {rounds} rounds; "
    "gc on, heap frozen, collected before each timing"
)

_EVICTED: Final = 64 << 20
"""The bytes copied between two cold calls: more than the caches of one core hold."""

_SHORTEST: Final = 0.001
"""The minimum seconds of a timing, reached by repeating the call."""


def fastest(cases: Mapping[str, Action], rounds: int) -> dict[str, float]:
    """Return the seconds of one call of each case, the minimum over all rounds."""
    calls = {name: _calls_needed(case) for name, case in cases.items()}
    best = dict.fromkeys(cases, float("inf"))
    with _frozen_heap():
        for number in range(rounds):
            for name in list(cases)[:: 1 if number % 2 else -1]:
                gc.collect()
                best[name] = min(best[name], _timed(cases[name], calls[name]) / calls[name])
    return best


def cold(cases: Mapping[str, Action], rounds: int) -> dict[str, float]:
    """Return the median seconds of one call of each case, each after other work has evicted the caches."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    elsewhere, source = bytearray(_EVICTED), getsource(subprocess)
    for number in range(rounds):
        for name in list(cases)[:: 1 if number % 2 else -1]:
            ast.parse(source)
            bytes(elsewhere)
            start = time.perf_counter()
            cases[name]()
            found[name].append(time.perf_counter() - start)
    return {name: median(seconds) for name, seconds in found.items()}


def _calls_needed(case: Action) -> int:
    """Return the number of calls in the shortest timing; the first call, which may compile code, does not count."""
    case()
    calls = 1
    while calls < 1 << 20 and _timed(case, calls) < _SHORTEST:
        calls *= 2
    return calls


def _timed(case: Action, calls: int) -> float:
    start = time.process_time()
    for _ in repeat(None, calls):
        case()
    return time.process_time() - start


@contextmanager
def _frozen_heap() -> Iterator[None]:
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def peak_memory(case: Action) -> int:
    """Return the peak number of bytes that one call allocates."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        case()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before
