"""The local engine: tasks in this process, or in a pool of processes, without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from kafka_msgs.engines.job import Engine

__all__ = ["local_engine", "map_in_processes"]

T = TypeVar("T")
R = TypeVar("R")


def local_engine(workers: int = 1, done: Callable[[int], None] = lambda _: None) -> Engine:
    """Return the engine that runs tasks in this process, or in several processes.

    ``done`` is called with the number of completed tasks.
    """
    completed = 0

    def run(function: Callable[[int], Any], count: int) -> Iterator[Any]:
        nonlocal completed
        for result in map_in_processes(function, range(count), min(workers, count)):
            completed += 1
            done(completed)
            yield result

    return run


def map_in_processes(function: Callable[[T], R], items: Iterable[T], workers: int) -> Iterator[R]:
    """Yield the results of a function for items in order, from several processes, or with one worker from this one."""
    if workers <= 1:
        yield from map(function, items)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # The processes are spawned: after a fork, Arrow's threads would be missing.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        yield from pool.map(function, items)
    finally:
        pool.shutdown(cancel_futures=True)
