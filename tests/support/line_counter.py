"""Counts the lines of Python that an action runs: a measure of work that does not depend on a clock."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["lines_run"]


def lines_run(action: Callable[[], Any]) -> int:
    """Return how many lines of Python ``action`` executes, as a measure of time without a clock.

    The garbage collector is off meanwhile. Otherwise it could run finalizers of objects left by earlier tests.
    """
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    previous = sys.gettrace()
    collecting = gc.isenabled()
    gc.disable()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(previous)
        if collecting:
            gc.enable()
    return count
