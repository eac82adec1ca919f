"""The lock of a log directory: only one broker may have it open.

It is the lock that Kafka's brokers take on the file ``.lock``. Systems without such locks do without it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kafka_msgs.errors import LogFileError

__all__ = ["DirectoryLock"]


class DirectoryLock:
    """The lock of the directory at ``path``. Raises ``LogFileError`` if somebody has it, and ``OSError``."""

    def __init__(self, path: Path) -> None:
        file = path / ".lock"
        self._descriptor: int | None = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        if sys.platform == "win32":
            return
        import fcntl

        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            reason = "another broker has the directory open"
            raise LogFileError(file=str(file), position=0, skipped=0, reason=reason) from None

    def release(self) -> None:
        """Give the lock back. Does nothing the second time."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
