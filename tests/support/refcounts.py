"""Checks that calls leave reference counts and the number of memory blocks unchanged.

Objects that existed before are frozen: the garbage collector ignores them from then on, so its time depends on the
objects that one test creates, not on all objects in a run of thousands of tests.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final

import pytest

ROUNDS = 20


def counts(objects: list[Any]) -> list[int]:
    """Return the reference count of each object, and the number of memory blocks that Python holds."""
    gc.collect()
    return [*map(sys.getrefcount, objects), sys.getallocatedblocks()]


def check_balance(action: Callable[[], Any], objects: list[Any]) -> None:
    """Check that repeating ``action`` leaves every count unchanged.

    Caches filled once, and other threads, may affect some measurements; a leak affects every one.
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
    """Make each allocation of a call fail in turn; return the number of allocations."""
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


_PYTHON_WITHOUT_MEMORY: Final = """
import _testcapi
number = 0
while True:
    _testcapi.set_nomemory(number, number + 1)
    try:
        any(map(lambda name: {1, 2}.isdisjoint({name: 1}), [str(number) * 40 for number in range(40)]))
    except MemoryError:
        number += 1
    else:
        break
    finally:
        _testcapi.remove_mem_hooks()
"""


@cache
def python_survives() -> bool:
    """Return whether CPython's own interpreter survives failed allocations; 3.12.1 and 3.13.0 end in a crash."""
    return not subprocess.run([sys.executable, "-c", _PYTHON_WITHOUT_MEMORY], capture_output=True).returncode


def without_memory(action: Callable[[Callable[[int], Any]], Any], make: Callable[[int], Any]) -> Iterator[int]:
    """Pass an allocator to an action, and make each of its calls fail in turn.

    Yields the number of each call whose failure raised a ``MemoryError``, until the action needs no further calls.
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
    """Run no other thread, as its allocations would fail instead: pytest-xdist has a thread that reads from a pipe."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(3600)
    time.sleep(0)  # A thread that is already waiting has the shorter interval, so let it run now.
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
