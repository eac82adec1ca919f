"""Checks that calls leave the counts of references and of memory blocks as they were."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

ROUNDS = 20


def counts(objects: list[Any], generation: int) -> list[int]:
    """The references to each object, and how many blocks of memory Python holds."""
    gc.collect(generation)
    return [*map(sys.getrefcount, objects), sys.getallocatedblocks()]


def check_balance(action: Callable[[], Any], objects: list[Any], generation: int = 2) -> None:
    """Check that repeating ``action`` leaves every count as it was.

    What is kept for once, such as memos, and what others do, may show in one measurement or two; what leaks shows in
    every one. Collecting the young ``generation`` only is faster, where no cycle is expected.
    """
    grown: list[int] = []
    for _ in range(4):
        before = counts(objects, generation)
        for _ in range(ROUNDS):
            action()
        grown = [now - then for now, then in zip(counts(objects, generation), before, strict=True)]
        if max(map(abs, grown)) < ROUNDS // 2:
            return
    pytest.fail(f"{grown} after {ROUNDS} rounds, for {objects} and blocks of memory")


def fail_each(action: Callable[[], object]) -> int:
    """Let the n-th allocation of a call fail, for every n that there is; return how many there are."""
    testcapi = pytest.importorskip("_testcapi")
    number = 0
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
