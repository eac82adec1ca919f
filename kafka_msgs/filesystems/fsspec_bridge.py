"""Filesystems that Arrow does not know: those of the package ``fsspec``, and HDFS without Java.

Owns how they look to Arrow. Each request fetches what is asked for and no more, and each listing is a new one.

Owns also in which process a client works. Its threads and connections are those of the process that made it, and a
process that was forked from that one would wait for them forever. So each process makes its own client. That does not
help with ``hdfs_native``: all its clients take connections to data nodes from one store, and a forked process finds
there those of the process it was forked from. So HDFS is refused there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen
from pyarrow import NativeFile, PythonFile
from pyarrow.fs import FileInfo, FileSelector, FileSystem, FSSpecHandler, PyFileSystem

from kafka_msgs.errors import ForkedProcessError, MissingExtraError

__all__ = ["hdfs_filesystem", "other_filesystem"]


@frozen
class _Address:
    """How a client is made: by a function of this module, of what can be compared and sent to other processes.

    With ``shares`` its library has connections in common for all clients, and none works in a forked process.
    """

    scheme: str
    make: Callable[..., Any]
    arguments: tuple[Any, ...] = field(repr=False)
    shares: bool = False

    def client(self) -> Any:
        """Return the client of this process, made when it is first asked for. Raises ``ForkedProcessError``."""
        process = os.getpid()
        if (process, self) not in _CLIENTS:
            if self.shares and any(each.shares and other != process for other, each in tuple(_CLIENTS)):
                raise ForkedProcessError(filesystem=self.scheme)
            _CLIENTS.setdefault((process, self), self.make(*self.arguments))
        return _CLIENTS[process, self]


_CLIENTS: Final[dict[tuple[int, _Address], Any]] = {}
"""The clients by process. Those of processes that this one was forked from stay: to delete one is to wait forever."""


class _UncachedHandler(FSSpecHandler):  # type: ignore[misc]
    """A filesystem of ``fsspec`` without what it keeps: listings, and bytes beside those that were asked for."""

    def __init__(self, address: _Address) -> None:
        self._address = address

    @property
    def fs(self) -> Any:
        """The filesystem, as this process may use it."""
        return self._address.client()

    def __reduce__(self) -> tuple[type[_UncachedHandler], tuple[_Address]]:
        return type(self), (self._address,)

    def get_file_info(self, paths: list[str]) -> list[FileInfo]:
        """Return what is known of paths now."""
        self.fs.invalidate_cache()
        found: list[FileInfo] = super().get_file_info(paths)
        return found

    def get_file_info_selector(self, selector: FileSelector) -> list[FileInfo]:
        """Return what is in a directory now."""
        self.fs.invalidate_cache()
        found: list[FileInfo] = super().get_file_info_selector(selector)
        return found

    def move(self, src: str, dest: str) -> None:
        """Give a file or a directory another name, in place of a file that has it."""
        overwrites = {"overwrite": True} if self._address.shares else {}
        self.fs.mv(src, dest, recursive=True, **overwrites)

    def open_input_file(self, path: str) -> NativeFile:
        """Return a file open for reading at any place."""
        if not self.fs.isfile(path):
            raise FileNotFoundError(path)
        return PythonFile(self.fs.open(path, mode="rb", cache_type="none"), mode="r")


def hdfs_filesystem(host: str | None, port: int | None, settings: Mapping[str, str]) -> FileSystem:
    """Return HDFS as ``hdfs_native`` reads it, with Hadoop's settings. Raises ``ValueError`` and ``OSError``."""
    return _for_arrow(_Address("hdfs", _hdfs_client, (host, port, tuple(settings.items())), shares=True))


def _hdfs_client(host: str | None, port: int | None, settings: Iterable[tuple[str, str]]) -> Any:
    from hdfs_native.fsspec import HdfsFileSystem

    return HdfsFileSystem(host, port, **dict(settings))


def other_filesystem(root: str, parameters: Mapping[str, Any], settings: Mapping[str, str]) -> tuple[FileSystem, str]:
    """Return the filesystem of ``fsspec`` for the root of a URI, and the path on it that the root means.

    ``settings`` are arguments of that filesystem; one that is JSON is what it means there. Raises ``OSError``,
    ``ValueError`` for a scheme that is not known and for wrong arguments, and ``MissingExtraError``.
    """
    scheme = root.partition(":")[0]
    try:
        import fsspec  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(feature=f"the filesystem {scheme}://", extra="fsspec", package="fsspec") from error
    given = (root, tuple(settings.items()), tuple(parameters.items()))
    try:
        _, start = _other_opened(*given)
        return _for_arrow(_Address(scheme, _other_client, given)), str(start)
    except (ImportError, TypeError) as error:
        raise ValueError(str(error)) from error


def _other_client(*given: Any) -> Any:
    client, _ = _other_opened(*given)
    return client


def _other_opened(root: str, settings: Iterable[tuple[str, str]], parameters: Iterable[tuple[str, Any]]) -> Any:
    from fsspec.core import url_to_fs

    return url_to_fs(root, **{**{name: _value(text) for name, text in settings}, **dict(parameters)})


def _for_arrow(address: _Address) -> FileSystem:
    address.client()
    return PyFileSystem(_UncachedHandler(address))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
