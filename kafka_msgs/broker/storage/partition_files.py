"""The files of a partition: in one directory, or the same files in the directory of each of its replicas.

What is written goes into every directory before it is acknowledged, so a replica never lags while the partition is
open. Reads come from the first directory. Files are given by their names, which are the same everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kafka_msgs.broker.storage.open_files import OpenFileCache
from kafka_msgs.codec import Buffer

__all__ = ["PartitionFiles"]


class PartitionFiles:
    """The files in ``directories``, which have equal content. All methods raise ``OSError``."""

    def __init__(self, opened: OpenFileCache, *directories: Path) -> None:
        self._opened = opened
        self.directories: list[Path] = list(directories)

    @property
    def durable(self) -> bool:
        """Whether each append must survive a crash of the machine."""
        return self._opened.durable

    @property
    def first(self) -> Path:
        """The directory that is read."""
        return self.directories[0]

    def path(self, name: str) -> Path:
        """Return the path of the file that is read."""
        return self.directories[0] / name

    def _paths(self, name: str) -> Iterator[Path]:
        return (directory / name for directory in self.directories)

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return ``size`` bytes from byte ``start`` on, or fewer at the end of the file."""
        return self._opened.read(self.path(name), start, size)

    def write(self, name: str, start: int, data: Buffer) -> None:
        """Write at byte ``start``. If that fails, all files end there."""
        try:
            for path in self._paths(name):
                self._opened.write(path, start, data)
        except OSError:
            self.truncate(name, start)
            raise

    def truncate(self, name: str, size: int) -> None:
        """Keep only the first ``size`` bytes."""
        for path in self._paths(name):
            self._opened.truncate(path, size)

    def flush(self, name: str) -> None:
        """Force the content to the disk, so that it survives a crash of the machine."""
        for path in self._paths(name):
            self._opened.flush(path)

    def replace(self, name: str, content: bytes) -> None:
        """Give a small file a new content, in one step for each directory."""
        for path in self._paths(name):
            self._opened.replace(path, content)

    def touch(self, name: str) -> None:
        """Make an empty file, if there is none."""
        for path in self._paths(name):
            path.touch()

    def rename(self, name: str, new: str) -> None:
        """Give a file another name, where it is there. A file of that name is replaced."""
        for path in self._paths(name):
            self._opened.close(path)
            if path.exists():
                path.replace(path.with_name(new))

    def unlink(self, name: str) -> None:
        """Remove a file, where it is there."""
        for path in self._paths(name):
            self._opened.close(path)
            path.unlink(missing_ok=True)

    def close(self, directory: Path | None = None) -> None:
        """Close all files that are open, in one of the directories or in all."""
        for each in self.directories if directory is None else (directory,):
            self._opened.close_below(each)
