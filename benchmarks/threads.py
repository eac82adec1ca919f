"""Two threads compared with one, on a CPython without the GIL: the additional work in the same time.

Each thread does the same work on the same shared objects. Rounds are short, and the fastest counts: both cores must be
free only during one of them. A checksum, which shares nothing, shows the limit of the machine. The CPU time per thread,
compared with a single thread, shows the cost of sharing, however busy the machine is.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Final
from zlib import crc32

from rich.console import Console

from benchmarks.report import Figure, print_figures
from kafka_msgs import FetchResponse, Message, MetadataResponse
from kafka_msgs.records import BatchBuilder, read_batches
from kafka_msgs.testing.random_values import random_message

__all__ = ["run"]

Action = Callable[[], object]

ROUND: Final = 0.004
"""The seconds of one round: shorter than the scheduler's time slices for other processes."""
PER_ROUND: Final = 20
"""The number of short rounds per requested round."""
TARGET: Final = 1.8


def run(console: Console, rounds: int) -> list[Figure]:
    """Measure, print, and return the figures."""
    figures = []
    for name, action in _cases():
        more, dearer = _compared(action, rounds * PER_ROUND)
        figures += [
            Figure(f"{name}: work of two threads", more, target=TARGET),
            Figure(f"{name}: processor time of each", dearer, at_most=True, target=2 / TARGET),
        ]
    state = "with the GIL" if getattr(sys, "_is_gil_enabled", lambda: True)() else "without the GIL"
    print_figures(console, f"Two threads beside one, {state}", f"the fastest of {rounds * PER_ROUND} rounds", figures)
    return figures


def _cases() -> Iterator[tuple[str, Action]]:
    block = bytes(20_000)
    yield "a checksum, which shares nothing", lambda: crc32(block)
    messages: list[tuple[type[Message], int]] = [(MetadataResponse, 12), (FetchResponse, 12)]
    for cls, version in messages:
        message = random_message(cls, version, Random(3), max_elements=12, unknown_tags=False)
        data = message.encode(version)
        yield f"decode {cls.__name__}, {len(data)} B", lambda: cls.decode(data, version)  # noqa: B023
        yield f"encode {cls.__name__}, {len(data)} B", lambda: message.encode(version)  # noqa: B023
    builder = BatchBuilder()
    for number in range(100):
        builder.append(b"key", b"v" * 100, timestamp=number, headers=[("name", b"x")])
    batch = builder.build()
    yield "read 100 records", lambda: [each.records() for each in read_batches(batch)]


def _compared(action: Action, rounds: int) -> tuple[float, float]:
    """Return the work of two threads relative to one, and the CPU time per thread relative to a single thread."""
    calls = _calls(action)
    alone = together = alone_cpu = together_cpu = float("inf")
    for _ in range(rounds):
        wall, cpu = _timed(action, calls, 1)
        alone, alone_cpu = min(alone, wall), min(alone_cpu, cpu)
        wall, cpu = _timed(action, calls, 2)
        together, together_cpu = min(together, wall), min(together_cpu, cpu)
    return 2 * alone / together, together_cpu / alone_cpu


def _calls(action: Action) -> int:
    """Return the number of calls per round."""
    took, calls = 0.0, 1
    while took < ROUND / 2:
        calls *= 2
        took = _timed(action, calls, 1)[0]
    return max(1, round(calls * ROUND / took))


def _timed(action: Action, calls: int, threads: int) -> tuple[float, float]:
    """Run all calls in each thread; return the seconds from the first start to the last end, and the CPU seconds."""
    barrier = threading.Barrier(threads)
    times: list[tuple[float, float, float]] = []

    def work() -> None:
        barrier.wait()
        start, cpu = time.perf_counter(), time.thread_time()
        for _ in range(calls):
            action()
        times.append((start, time.perf_counter(), time.thread_time() - cpu))

    workers = [threading.Thread(target=work) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return max(end for _, end, _ in times) - min(start for start, _, _ in times), max(cpu for _, _, cpu in times)
