"""Counts the lines of Python that an action runs: the work it does, measured without a clock."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["lines_run"]


def lines_run(action: Callable[[], Any]) -> int:
    """How many lines of Python ``action`` executes: the time it takes, without a clock.

    The garbage collector waits meanwhile. Otherwise it could run finalizers of objects that earlier tests left.
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
