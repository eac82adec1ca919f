"""A filesystem that counts the bytes that are read of it, in the place of one of ``pyarrow.fs``."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest
from pyarrow import fs

from kafka_msgs.filesystems import object_listing, path_resolution, resolver
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.resolver import OpenedFilesystem

__all__ = ["BUCKET", "CountedFiles", "as_bucket"]

BUCKET: Final = "s3://bucket"


def as_bucket(directory: Path, monkeypatch: pytest.MonkeyPatch) -> CountedFiles:
    """Make the files of a directory those of a bucket, too, which cannot be mapped into memory; return these."""
    counted = CountedFiles(fs.SubTreeFileSystem(str(directory), fs.LocalFileSystem()))
    others = resolver.filesystem_of

    def filesystem_of(root: str, settings: FilesystemOptions = NO_OPTIONS) -> OpenedFilesystem:
        return OpenedFilesystem(counted, "") if root == BUCKET else others(root, settings)

    for module in (path_resolution, object_listing):
        monkeypatch.setattr(module, "filesystem_of", filesystem_of)
    return counted


class CountedFiles:
    """The files of another filesystem. ``read`` has the bytes that were read, by the name of the file."""

    type_name = "counted"

    def __init__(self, inner: fs.FileSystem) -> None:
        self._inner = inner
        self.read: dict[str, int] = {}

    @property
    def total(self) -> int:
        """All bytes that were read."""
        return sum(self.read.values())

    def get_file_info(self, asked: Any) -> Any:
        """Return what is known of a path, or of those in a directory."""
        return self._inner.get_file_info(asked)

    def open_input_file(self, path: str) -> _CountedFile:
        """Return a file open for reading."""
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
