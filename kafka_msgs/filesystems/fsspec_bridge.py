"""Filesystems that Arrow does not support: ``fsspec`` filesystems, and HDFS without Java.

Implements the adapters for Arrow. Each request fetches only the requested bytes, and listings are not cached.

Also owns the clients per process. The threads and connections of a client belong to the process that created it, and a
forked process would wait for them forever. So each process creates its own client. This does not help with
``hdfs_native``: all its clients share a store of data node connections, which a forked process inherits. So HDFS is
refused in a process forked after HDFS was used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen
from pyarrow import NativeFile, PythonFile
from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem

from kafka_msgs.errors import ForkedProcessError, MissingExtraError

__all__ = ["hdfs_filesystem", "other_filesystem"]


@frozen
class _Address:
    """The recipe for a client: a function of this module, with arguments that can be compared and pickled.

    The function returns a client, and the path of its root. With ``shares``, all clients of its library share
    connections, so no client works in a forked process.
    """

    scheme: str
    make: Callable[..., tuple[Any, str]]
    arguments: tuple[Any, ...] = field(repr=False)
    shares: bool = False

    def client(self) -> tuple[Any, str]:
        """Return the client of this process, created on first use. Raises ``ForkedProcessError``."""
        process = os.getpid()
        if (process, self) not in _CLIENTS:
            if self.shares and any(each.shares and other != process for other, each in tuple(_CLIENTS)):
                raise ForkedProcessError(filesystem=self.scheme)
            _CLIENTS.setdefault((process, self), self.make(*self.arguments))
        return _CLIENTS[process, self]


_CLIENTS: Final[dict[tuple[int, _Address], tuple[Any, str]]] = {}
"""The clients by process. Clients inherited from parent processes are kept: deleting one would block forever."""


class _UncachedHandler(FSSpecHandler):  # type: ignore[misc]
    """An ``fsspec`` filesystem without caches of listings and without read-ahead."""

    def __init__(self, address: _Address) -> None:
        self._address = address

    @property
    def fs(self) -> Any:
        """The filesystem client of this process."""
        client, _ = self._address.client()
        client.invalidate_cache()
        return client

    def __reduce__(self) -> tuple[type[_UncachedHandler], tuple[_Address]]:
        return type(self), (self._address,)

    def move(self, src: str, dest: str) -> None:
        """Rename a file or directory, and replace an existing file with the new name."""
        overwrites = {"overwrite": True} if self._address.shares else {}
        self.fs.mv(src, dest, recursive=True, **overwrites)

    def open_input_file(self, path: str) -> NativeFile:
        """Return a file open for random access."""
        client = self.fs
        if not client.isfile(path):
            raise FileNotFoundError(path)
        return PythonFile(client.open(path, mode="rb", cache_type="none"), mode="r")


def hdfs_filesystem(host: str | None, port: int | None, settings: Mapping[str, str]) -> tuple[FileSystem, str]:
    """Return HDFS through ``hdfs_native``, with Hadoop's settings. Raises ``ValueError`` and ``OSError``."""
    return _for_arrow(_Address("hdfs", _hdfs, (host, port, tuple(settings.items())), shares=True))


def _hdfs(host: str | None, port: int | None, settings: Iterable[tuple[str, str]]) -> tuple[Any, str]:
    from hdfs_native.fsspec import HdfsFileSystem

    return HdfsFileSystem(host, port, **dict(settings)), ""


def other_filesystem(root: str, parameters: Mapping[str, Any], settings: Mapping[str, str]) -> tuple[FileSystem, str]:
    """Return the ``fsspec`` filesystem for the root of a URI, and the path of the root on it.

    ``settings`` are arguments of that filesystem; JSON values are parsed. Raises ``OSError``, ``ValueError`` for an
    unknown scheme and for wrong arguments, and ``MissingExtraError``.
    """
    scheme = root.partition(":")[0]
    try:
        import fsspec  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(feature=f"the filesystem {scheme}://", extra="fsspec", package="fsspec") from error
    try:
        return _for_arrow(_Address(scheme, _other, (root, tuple(settings.items()), tuple(parameters.items()))))
    except (ImportError, TypeError) as error:
        raise ValueError(str(error)) from error


def _other(root: str, settings: Iterable[tuple[str, str]], parameters: Iterable[tuple[str, Any]]) -> tuple[Any, str]:
    from fsspec.core import url_to_fs

    client, start = url_to_fs(root, **{**{name: _value(text) for name, text in settings}, **dict(parameters)})
    return client, str(start)


def _for_arrow(address: _Address) -> tuple[FileSystem, str]:
    _, start = address.client()
    return PyFileSystem(_UncachedHandler(address)), start


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
