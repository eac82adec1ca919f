"""Locks that a fork waits for, so that a child process never inherits one that a missing thread holds."""

from __future__ import annotations

import os
from threading import RLock
from typing import Any

__all__ = ["fork_lock"]


def fork_lock() -> Any:
    """Return a reentrant lock. No other thread holds it while the process forks. Create it at import time only."""
    lock = RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock
