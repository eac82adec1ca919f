"""A directory on any filesystem for the output of jobs: its files by relative paths, and atomic creation.

``create`` writes a file only if no file has its name, completely or not at all. Commits build on it. Each kind of
storage has its own way, in one table: hard links on a local disk, conditional requests to object stores through
``obstore``, and renames that never overwrite on HDFS. Filesystems without such a way are refused.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from attrs import field, frozen
from pyarrow import NativeFile, fs

from kafka_msgs.errors import JobPathError, MissingExtraError, OptionError, StorageError
from kafka_msgs.filesystems.listing import list_directory, walk_files
from kafka_msgs.filesystems.location import Location
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import resolve_path
from kafka_msgs.filesystems.resolver import filesystem_of
from kafka_msgs.filesystems.store_options import SCHEMES, storage_options

__all__ = ["MAX_SMALL_FILE", "Storage", "StoredFile"]

MAX_SMALL_FILE: Final = 1 << 28
"""The maximum size in bytes of a file that ``read`` returns."""

_SOURCE: Final = "kafka-msgs"
_ALLOW_HTTP: Final = "allow_http"
"""The option of ``object_store`` that obstore expects among the options of its HTTP client."""
_NO_WAY: Final = (
    "this filesystem cannot create a file only if it does not exist, so that two runs could overwrite each other; "
    "write to a local disk, S3, Google Cloud Storage, Azure or HDFS, or to Delta or Iceberg tables with a catalog"
)
_IGNORES: Final = (
    "this store ignores the condition that a new file must not exist, so that two runs could overwrite each other; "
    "write to another store, or to Delta or Iceberg tables with a catalog"
)


@frozen
class StoredFile:
    """A file in a storage: its path there, its size in bytes, and its modification time in seconds by the storage."""

    path: str
    size: int
    modified: float


@frozen
class Storage:
    """A directory, as a place for files. It can be pickled, and its repr and text contain no credentials.

    ``location`` is the directory, and ``fs_options`` are the options of its filesystem. All paths are relative to it.
    """

    location: Location
    fs_options: FilesystemOptions = NO_OPTIONS
    _root: str = field(default="", repr=False)
    _path: str = field(default="", repr=False)

    @classmethod
    def at(cls, text: str, fs_options: FilesystemOptions = NO_OPTIONS) -> Storage:
        """Return the storage at a path or URI. Raises ``JobPathError`` for a wrong URI or an unknown filesystem."""
        try:
            found = resolve_path(_SOURCE, text, fs_options)
            location = Location.parse(text)
        except OptionError as error:
            raise JobPathError(path=str(error.value), reason=error.reason) from None
        return cls(location, found.fs_options, found.root, found.paths[0].rstrip("/"))

    def __str__(self) -> str:
        return self.location.shown

    @property
    def filesystem(self) -> fs.FileSystem:
        """The filesystem of this process."""
        return filesystem_of(self._root, self.fs_options).filesystem

    @property
    def local_directory(self) -> Path | None:
        """The directory on this machine, or None for another filesystem."""
        return Path(self._path) if self.location.is_local else None

    def full_path(self, path: str) -> str:
        """Return the path of a file on the filesystem."""
        return f"{self._path}/{path}" if path else self._path

    def list_files(self, under: str = "") -> Iterator[StoredFile]:
        """Yield all files below a directory. Yields nothing if it does not exist. Raises ``OSError``."""
        start = len(self._path) + 1
        for info in walk_files(self.filesystem, self.full_path(under)):
            yield StoredFile(info.path[start:], info.size, info.mtime_ns / 1e9 if info.mtime_ns else 0.0)

    def names(self) -> list[str]:
        """Return the names of the entries of the directory, none if it does not exist. Raises ``OSError``."""
        return sorted({info.base_name for info in list_directory(self.filesystem, self._path)} - {""})

    def open(self, path: str) -> NativeFile:
        """Return a file open for random access. Raises ``FileNotFoundError`` and ``OSError``."""
        return self.filesystem.open_input_file(self.full_path(path))

    def read(self, path: str) -> bytes | None:
        """Return the content of a small file, or None if it does not exist. Raises ``StorageError``, ``OSError``."""
        try:
            with self.filesystem.open_input_stream(self.full_path(path), compression=None) as file:
                content = bytes(file.read(MAX_SMALL_FILE + 1))
        except FileNotFoundError:
            return None
        if len(content) > MAX_SMALL_FILE:
            raise StorageError(path=f"{self}/{path}", reason=f"it has more than {MAX_SMALL_FILE:,} bytes")
        return content

    def output(self, path: str) -> Any:
        """Return a new file, open for writing, and create its directories. Raises ``OSError``."""
        self.filesystem.create_dir(self.full_path(path).rpartition("/")[0], recursive=True)
        return self.filesystem.open_output_stream(self.full_path(path), compression=None)

    def write(self, path: str, content: bytes) -> None:
        """Write a small file, or replace it. Raises ``OSError``."""
        with self.output(path) as file:
            file.write(content)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files. Files that do not exist are ignored. Raises ``OSError``."""
        for path in paths:
            with suppress(FileNotFoundError, NotADirectoryError):
                self.filesystem.delete_file(self.full_path(path))

    def delete_directories(self, paths: Iterable[str]) -> None:
        """Delete directories with their content. Directories that do not exist are ignored. Raises ``OSError``."""
        for path in paths:
            with suppress(FileNotFoundError):
                self.filesystem.delete_dir(self.full_path(path))

    def create(self, path: str, content: bytes) -> bool:
        """Write a file if none has its name, and return whether it was written, completely and by this call.

        If a connection breaks, the file may have been written although False is returned or an error is raised.
        Raises ``StorageError`` for a filesystem that cannot do this, ``MissingExtraError`` and ``OSError``.
        """
        if self.location.scheme not in _CREATORS:
            raise StorageError(path=str(self), reason=_NO_WAY)
        return _CREATORS[self.location.scheme](self, path, content)

    def probe(self, path: str) -> None:
        """Check that the storage refuses to create a file twice; ``path`` names a file of this check.

        Raises ``StorageError`` if it does not: some S3-compatible stores ignore conditions.
        """
        try:
            # The first result is unreliable: a request that is repeated after a lost response is refused.
            self.create(path, b"1")
            if self.create(path, b"2") or self.read(path) != b"1":
                raise StorageError(path=str(self), reason=_IGNORES)
        finally:
            self.delete([path])

    def check_empty(self) -> None:
        """Raise ``JobPathError`` if the directory is not empty, is a file, or cannot be listed."""
        with self._job_errors():
            inside = self.names() or self.filesystem.get_file_info(self._path).is_file
        if inside:
            raise JobPathError(path=str(self), reason="it exists and is not empty; nothing is overwritten")

    def copy_from(self, directory: Path) -> None:
        """Copy the content of a local directory. Raises ``JobPathError``, including for an incomplete copy."""
        files = {file.relative_to(directory).as_posix(): file for file in directory.rglob("*") if file.is_file()}
        with self._job_errors():
            fs.copy_files(str(directory), self._path, fs.LocalFileSystem(), self.filesystem)
            found = self.filesystem.get_file_info([self.full_path(name) for name in files])
        # Some libraries do not report files refused by a server.
        for (name, file), info in zip(files.items(), found, strict=True):
            if info.size != file.stat().st_size:
                raise JobPathError(path=f"{self}/{name}", reason="it could not be written")

    @contextmanager
    def _job_errors(self) -> Iterator[None]:
        """Turn ``OSError`` into ``JobPathError``, without secrets."""
        try:
            yield
        except OSError as error:
            raise JobPathError(path=str(self), reason=self.fs_options.mask_secrets(str(error))) from None


def _create_by_link(storage: Storage, path: str, content: bytes) -> bool:
    """Create a file by a hard link to a complete temporary file, which fails if the name exists."""
    target = Path(storage.full_path(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}-{uuid4().hex}")
    try:
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(temporary, target)
    except FileExistsError:
        return False
    except OSError as error:
        raise StorageError(path=str(target), reason=f"it cannot be created atomically: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)
    _flush_directory(target.parent)
    return True


def _flush_directory(directory: Path) -> None:
    """Flush the entries of a directory to disk, on systems that can open directories."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _create_in_object_store(storage: Storage, path: str, content: bytes) -> bool:
    """Create an object by one conditional request."""
    try:
        import obstore
        from obstore.exceptions import AlreadyExistsError, BaseError
    except ImportError as error:
        feature = f"output to {storage.location.scheme}://"
        raise MissingExtraError(feature=feature, extra="local", package="obstore") from error
    store, prefix = _object_store(storage.location, storage.fs_options)
    try:
        obstore.put(store, f"{prefix}/{path}".strip("/"), content, mode="create", use_multipart=False)
    except AlreadyExistsError:
        return False
    except BaseError as error:
        reason = storage.fs_options.mask_secrets(str(error).splitlines()[0])
        raise StorageError(path=f"{storage}/{path}", reason=reason) from None
    return True


@lru_cache(maxsize=16)
def _object_store(location: Location, fs_options: FilesystemOptions) -> tuple[Any, str]:
    """Return the store of a bucket or container, and the path of the location in it."""
    from obstore.store import from_url

    authority = location.authority.rpartition("@")[2] if location.kind == "s3" else location.authority
    options: dict[str, Any] = storage_options(location.root, fs_options)
    plain = [name for name in options if name.endswith(_ALLOW_HTTP)]
    client = {_ALLOW_HTTP: any(options.pop(name) == "true" for name in plain)}
    # The options depend on the scheme, which types cannot express.
    open_store: Any = from_url
    return open_store(f"{location.kind}://{authority}", client_options=client, **options), location.path.strip("/")


def _create_by_rename(storage: Storage, path: str, content: bytes) -> bool:
    """Create a file by renaming a complete temporary file; the name node refuses a name that exists."""
    temporary = f"{path}-{uuid4().hex}.tmp"
    storage.write(temporary, content)
    handler: Any = getattr(storage.filesystem, "handler", None)
    if handler is None:
        raise MissingExtraError(feature="output to hdfs://", extra="hdfs", package="hdfs-native")
    try:
        handler.fs.mv(storage.full_path(temporary), storage.full_path(path), overwrite=False)
    except Exception as error:
        # The library raises errors of many types, so the file itself decides.
        storage.delete([temporary])
        if storage.filesystem.get_file_info(storage.full_path(path)).type == fs.FileType.File:
            return False
        raise StorageError(path=f"{storage}/{path}", reason=str(error)) from error
    return True


_CREATORS: Final[Mapping[str, Callable[[Storage, str, bytes], bool]]] = {
    **dict.fromkeys(("", "file"), _create_by_link),
    **dict.fromkeys(SCHEMES, _create_in_object_store),
    "hdfs": _create_by_rename,
}
"""The functions that create files, by URI scheme."""
