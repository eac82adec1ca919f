"""Waiting for what a cluster does in its own time. The limit is for a cluster that never gets there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

__all__ = ["until"]

_PATIENCE_SECONDS: Final = 120
_PAUSE_SECONDS: Final = 0.1


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition of the cluster holds. Fail if it does not within two minutes."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the cluster does not get there"
        time.sleep(_PAUSE_SECONDS)
