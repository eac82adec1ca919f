"""Checks that calls leave the counts of references and of memory blocks as they were.

What was there before is frozen: the garbage collector passes over it from then on, so that collecting takes the time of
what a test makes, and not of all that a run of thousands of tests holds.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

ROUNDS = 20


def counts(objects: list[Any]) -> list[int]:
    """The references to each object, and how many blocks of memory Python holds."""
    gc.collect()
    return [*map(sys.getrefcount, objects), sys.getallocatedblocks()]


def check_balance(action: Callable[[], Any], objects: list[Any]) -> None:
    """Check that repeating ``action`` leaves every count as it was.

    What is kept for once, such as memos, and what others do, may show in some measurements; what leaks shows in
    every one.
    """
    grown: list[int] = []
    gc.freeze()
    for _ in range(12):
        before = counts(objects)
        for _ in range(ROUNDS):
            action()
        grown = [now - then for now, then in zip(counts(objects), before, strict=True)]
        if max(map(abs, grown)) < ROUNDS // 2:
            return
    pytest.fail(f"{grown} after {ROUNDS} rounds, for {objects} and blocks of memory")


def fail_each(action: Callable[[], object]) -> int:
    """Let the n-th allocation of a call fail, for every n that there is; return how many there are."""
    testcapi = pytest.importorskip("_testcapi")
    number = 0
    with _no_other_thread():
        while True:
            testcapi.set_nomemory(number, number + 1)
            try:
                action()
            except MemoryError:
                number += 1
            else:
                return number
            finally:
                testcapi.remove_mem_hooks()


def without_memory(action: Callable[[Callable[[int], Any]], Any], make: Callable[[int], Any]) -> Iterator[int]:
    """Give an action what makes its buffers, and let each call of that fail, one after the other.

    Yields the number of each call whose failure ended in a ``MemoryError``, until the action needs no more.
    """
    for number in range(10_000):
        try:
            action(_failing(number, make))
        except MemoryError:
            yield number
        else:
            return
    pytest.fail("no end of memory")


def _failing(number: int, make: Callable[[int], Any]) -> Callable[[int], Any]:
    left = iter(range(number))

    def allocate(size: int) -> Any:
        if next(left, None) is None:
            raise MemoryError
        return make(size)

    return allocate


@contextmanager
def _no_other_thread() -> Iterator[None]:
    """Run no other thread, whose allocations would fail instead: one that pytest-xdist has reads from a pipe."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    time.sleep(0)  # A thread that waits already does not wait so long: it runs now.
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
