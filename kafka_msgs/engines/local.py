"""The local engine: tasks in this process, or in a pool of processes, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from typing import Any

from kafka_msgs.engines.job import Engine

__all__ = ["local_engine"]


def local_engine(workers: int = 1, done: Callable[[int], None] = lambda _: None) -> Engine:
    """Return the engine that runs tasks in this process, or in several processes.

    ``done`` is called with the number of completed tasks.
    """
    completed = 0

    def run(function: Callable[[int], Any], count: int) -> Iterator[Any]:
        nonlocal completed
        many = workers > 1 and count > 1
        # The processes are spawned: after a fork, Arrow's threads would be missing.
        pool = ProcessPoolExecutor(min(workers, count), mp_context=get_context("spawn")) if many else None
        with pool or nullcontext():
            for result in (pool.map if pool else map)(function, range(count)):
                completed += 1
                done(completed)
                yield result

    return run
