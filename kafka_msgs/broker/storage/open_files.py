"""A cache of open segment files with a limited size.

A broker has many partitions, but a process may open few files. The least recently used file is closed first. Reads and
writes specify their position, so reopening a file is transparent.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from typing import Final

from kafka_msgs.log.writers.small_files import replace_file

__all__ = ["OpenFileCache"]

_FLAGS: Final = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class OpenFileCache:
    """At most ``limit`` open files, by path. All methods raise ``OSError``.

    With ``durable``, appends and small files are flushed and survive a machine crash, at the cost of speed. Without it,
    they survive only the end of the process. Explicitly flushed bytes survive both.
    """

    def __init__(self, limit: int = 128, *, durable: bool = False) -> None:
        self._limit = limit
        self.durable = durable
        self._files: OrderedDict[Path, int] = OrderedDict()

    def _descriptor(self, path: Path) -> int:
        found = self._files.get(path)
        if found is not None:
            self._files.move_to_end(path)
            return found
        while len(self._files) >= self._limit:
            os.close(self._files.popitem(last=False)[1])
        self._files[path] = opened = os.open(path, _FLAGS, 0o644)
        return opened

    def read(self, path: Path, start: int, size: int) -> bytes:
        """Return ``size`` bytes from byte ``start`` on, or fewer at the end of the file."""
        file = self._descriptor(path)
        os.lseek(file, start, os.SEEK_SET)
        return os.read(file, size)

    def write(self, path: Path, start: int, data: bytes | bytearray | memoryview) -> None:
        """Write at byte ``start``. If the write fails, the file is truncated there."""
        file, rest = self._descriptor(path), memoryview(data)
        os.lseek(file, start, os.SEEK_SET)
        try:
            while rest:
                rest = rest[os.write(file, rest) :]
        except OSError:
            os.ftruncate(file, start)
            raise

    def truncate(self, path: Path, size: int) -> None:
        """Keep only the first ``size`` bytes."""
        os.ftruncate(self._descriptor(path), size)

    def flush(self, path: Path) -> None:
        """Flush the content to disk, so that it survives a machine crash."""
        os.fsync(self._descriptor(path))

    def replace(self, path: Path, content: bytes) -> None:
        """Replace the content of a small file atomically."""
        replace_file(path, content, durable=self.durable)

    def close(self, path: Path) -> None:
        """Close a file, if it is open."""
        file = self._files.pop(path, None)
        if file is not None:
            os.close(file)

    def close_below(self, directory: Path) -> None:
        """Close the files of a directory."""
        for path in [each for each in self._files if each.parent == directory]:
            self.close(path)

    def close_all(self) -> None:
        """Close all files."""
        while self._files:
            os.close(self._files.popitem()[1])
