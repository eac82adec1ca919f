"""A filesystem, for use instead of a ``pyarrow.fs`` one, that counts the bytes read from it."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest
from pyarrow import fs

from kafka_msgs.engines import replicas
from kafka_msgs.filesystems import path_resolution, resolver
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.resolver import OpenedFilesystem

__all__ = ["BUCKET", "CountedFiles", "as_bucket"]

BUCKET: Final = "s3://bucket"


def as_bucket(directory: Path, monkeypatch: pytest.MonkeyPatch) -> CountedFiles:
    """Also serve a directory's files from a bucket without memory mapping; return the counting filesystem."""
    counted = CountedFiles(fs.SubTreeFileSystem(str(directory), fs.LocalFileSystem()))
    others = resolver.filesystem_of

    def filesystem_of(root: str, settings: FilesystemOptions = NO_OPTIONS) -> OpenedFilesystem:
        return OpenedFilesystem(counted, "") if root == BUCKET else others(root, settings)

    for module in (path_resolution, replicas):
        monkeypatch.setattr(module, "filesystem_of", filesystem_of)
    return counted


class CountedFiles:
    """The files of another filesystem. ``read`` maps file names to the number of bytes read."""

    type_name = "counted"

    def __init__(self, inner: fs.FileSystem) -> None:
        self._inner = inner
        self.read: dict[str, int] = {}

    @property
    def total(self) -> int:
        """Return the total number of bytes read."""
        return sum(self.read.values())

    def get_file_info(self, asked: Any) -> Any:
        """Return information on paths or on the entries of a directory."""
        return self._inner.get_file_info(asked)

    def open_input_file(self, path: str) -> _CountedFile:
        """Open an input file and count its reads."""
        return _CountedFile(self, path, self._inner.open_input_file(path))


class _CountedFile:
    def __init__(self, files: CountedFiles, path: str, inner: Any) -> None:
        self._files = files
        self._path = path
        self._inner = inner

    def size(self) -> int:
        return int(self._inner.size())

    def read_at(self, count: int, at: int) -> bytes:
        found: bytes = self._inner.read_at(count, at)
        self._files.read[self._path] = self._files.read.get(self._path, 0) + len(found)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._inner.close()
