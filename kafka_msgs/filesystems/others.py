"""Filesystems that Arrow does not know: those of the package ``fsspec``, and HDFS without Java.

Owns how they look to Arrow. Each request fetches what is asked for and no more, and each listing is a new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyarrow import NativeFile, PythonFile, fs

from kafka_msgs.errors import MissingExtraError

__all__ = ["hdfs_filesystem", "other_filesystem"]


class _Exactly(fs.FSSpecHandler):  # type: ignore[misc]
    """A filesystem of ``fsspec`` without what it keeps: listings, and bytes beside those that were asked for."""

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        """Return what is known of paths now."""
        self.fs.invalidate_cache()
        found: list[fs.FileInfo] = super().get_file_info(paths)
        return found

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """Return what is in a directory now."""
        self.fs.invalidate_cache()
        found: list[fs.FileInfo] = super().get_file_info_selector(selector)
        return found

    def open_input_file(self, path: str) -> NativeFile:
        """Return a file open for reading at any place."""
        if not self.fs.isfile(path):
            raise FileNotFoundError(path)
        return PythonFile(self.fs.open(path, mode="rb", cache_type="none"), mode="r")


def hdfs_filesystem(host: str | None, port: int | None, settings: Mapping[str, str]) -> fs.FileSystem:
    """Return HDFS as ``hdfs_native`` reads it, with Hadoop's settings. Raises ``ValueError`` and ``OSError``."""
    from hdfs_native.fsspec import HdfsFileSystem

    return _for_arrow(HdfsFileSystem(host, port, **settings))


def other_filesystem(
    root: str, parameters: Mapping[str, Any], settings: Mapping[str, str]
) -> tuple[fs.FileSystem, str]:
    """Return the filesystem of ``fsspec`` for the root of a URI, and the path on it that the root means.

    ``settings`` are arguments of that filesystem; one that is JSON is what it means there. Raises ``OSError``,
    ``ValueError`` for a scheme that is not known and for wrong arguments, and ``MissingExtraError``.
    """
    scheme = root.partition(":")[0]
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise MissingExtraError(feature=f"the filesystem {scheme}://", extra="fsspec", package="fsspec") from error
    arguments = {name: _value(text) for name, text in settings.items()}
    try:
        made, start = url_to_fs(root, **{**arguments, **parameters})
    except (ImportError, TypeError) as error:
        raise ValueError(str(error)) from error
    return _for_arrow(made), str(start)


def _for_arrow(filesystem: Any) -> fs.FileSystem:
    return fs.PyFileSystem(_Exactly(filesystem))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
