"""Threads that start together, and the results of their work."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

__all__ = ["ROUNDS", "THREADS", "together"]

THREADS: Final = 4

ROUNDS: Final = int(os.environ.get("KAFKA_MSGS_THREAD_ROUNDS", "2"))
"""How often each thread repeats its work; set higher for builds without the GIL."""


def together(work: Callable[[int], Any], threads: int = THREADS) -> list[Any]:
    """Call a function in threads that start simultaneously, with the thread numbers; return the results."""
    start = threading.Barrier(threads)

    def run(number: int) -> Any:
        start.wait()
        return work(number)

    with _frequent_switches(), ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


@contextmanager
def _frequent_switches() -> Iterator[None]:
    """Make threads with the GIL switch as often as possible."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
