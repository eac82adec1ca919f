"""The lock of a log directory, which only one broker may open at a time.

It is the lock that Kafka's brokers take on the file ``.lock``. It only excludes other processes, so a process also
tracks the directories that it has opened itself. On systems without such locks, directories are not locked.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from kafka_msgs.errors import LogFileError

__all__ = ["DirectoryLock"]

_HELD: Final[set[tuple[int, int]]] = set()
"""The files that this process has locked, by device and inode."""


class DirectoryLock:
    """The lock of the directory at ``path``. Raises ``LogFileError`` if it is already locked, and ``OSError``."""

    def __init__(self, path: Path) -> None:
        file = path / ".lock"
        file.touch()
        status = file.stat()
        self._key = status.st_dev, status.st_ino
        # A file locked by this process is not opened again, because closing it would release the lock.
        descriptor = None if self._key in _HELD else _locked(file)
        if descriptor is None:
            reason = "another broker has the directory open"
            raise LogFileError(file=str(file), position=0, skipped=0, reason=reason)
        self._descriptor: int | None = descriptor
        _HELD.add(self._key)

    def release(self) -> None:
        """Release the lock. Later calls have no effect."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _HELD.discard(self._key)


def _locked(file: Path) -> int | None:
    """Open and lock a file, or return None if another process has it."""
    descriptor = os.open(file, os.O_RDWR)
    if sys.platform == "win32":
        return descriptor
    import fcntl

    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
