"""How time and memory are measured. Every benchmark uses only these functions.

Rounds are interleaved: each round times every case once, in alternating order, so that a slow moment of the machine
hits all cases alike; the fastest round counts. The cyclic garbage collector is on. Before the first round what lives
is frozen (``gc.freeze``), and before every timing the collector runs, so that a case pays for the collections that its
own objects cause, and not for the heap around it. What counts is the processor time of the process, not the clock on
the wall, so that other programs cost a case its caches at most.
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
"""Bytes that are copied between two cold calls: more than the caches hold that a process gets for itself."""

_SHORTEST: Final = 0.001
"""Seconds that a timing takes at least, by repeating the call."""


def fastest(cases: Mapping[str, Action], rounds: int) -> dict[str, float]:
    """Return the seconds that one call of each case takes, the least of all rounds."""
    calls = {name: _calls_needed(case) for name, case in cases.items()}
    best = dict.fromkeys(cases, float("inf"))
    with _frozen_heap():
        for number in range(rounds):
            for name in list(cases)[:: 1 if number % 2 else -1]:
                gc.collect()
                best[name] = min(best[name], _timed(cases[name], calls[name]) / calls[name])
    return best


def cold(cases: Mapping[str, Action], rounds: int) -> dict[str, float]:
    """Return the median seconds of one call of each case, each after other work has taken the caches."""
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
    """Return how many calls make up the shortest timing; the first, which may compile something, does not count."""
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
    """Return how many bytes one call allocates at its peak, beyond what was allocated before it."""
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        case()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before
