"""Waiting for asynchronous changes in a cluster, with a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

__all__ = ["until"]

_PATIENCE_SECONDS: Final = 120
_PAUSE_SECONDS: Final = 0.1


def until(condition: Callable[[], bool], patience: float = _PATIENCE_SECONDS) -> None:
    """Wait until a condition of the cluster holds. Fail after ``patience`` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, "the cluster does not get there"
        time.sleep(_PAUSE_SECONDS)
