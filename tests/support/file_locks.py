"""Locks of files that processes share, on the systems that have them."""

from __future__ import annotations

from typing import IO

__all__ = ["lock_file"]


def lock_file(file: IO[str]) -> None:
    """Wait for the lock of a file; closing the file releases it. Windows runs no test that needs one."""
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)
