"""The files of a partition: in one directory, or as identical copies in the directories of all replicas.

Each write goes to all directories before it is acknowledged, so replicas never lag while the partition is open. Reads
use the first directory. Files are identified by their names, which are the same in all directories.
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
        """The directory for reads."""
        return self.directories[0]

    def path(self, name: str) -> Path:
        """Return the path of a file for reading."""
        return self.directories[0] / name

    def _paths(self, name: str) -> Iterator[Path]:
        return (directory / name for directory in self.directories)

    def read(self, name: str, start: int, size: int) -> bytes:
        """Return ``size`` bytes from byte ``start`` on, or fewer at the end of the file."""
        return self._opened.read(self.path(name), start, size)

    def write(self, name: str, start: int, data: Buffer) -> None:
        """Write at byte ``start``. If the write fails, all copies are truncated there."""
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
        """Flush the content to disk, so that it survives a machine crash."""
        for path in self._paths(name):
            self._opened.flush(path)

    def replace(self, name: str, content: bytes) -> None:
        """Replace the content of a small file, atomically in each directory."""
        for path in self._paths(name):
            self._opened.replace(path, content)

    def touch(self, name: str) -> None:
        """Create an empty file, if it does not exist."""
        for path in self._paths(name):
            path.touch()

    def rename(self, name: str, new: str) -> None:
        """Rename a file in each directory that contains it. An existing file with the new name is replaced."""
        for path in self._paths(name):
            self._opened.close(path)
            if path.exists():
                path.replace(path.with_name(new))

    def unlink(self, name: str) -> None:
        """Remove a file from each directory that contains it."""
        for path in self._paths(name):
            self._opened.close(path)
            path.unlink(missing_ok=True)

    def close(self, directory: Path | None = None) -> None:
        """Close all open files, in one of the directories or in all."""
        for each in self.directories if directory is None else (directory,):
            self._opened.close_below(each)
