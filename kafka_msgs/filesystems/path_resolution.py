"""Resolution of paths to files on any filesystem, listings, and local copies of their bytes.

Defines the syntax of paths. Filesystems are read in Python without a JVM, so that the Spark
driver and executors use the same code. ``resolver`` opens filesystems. Other modules interpret the content of the
files.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, TypeVar

from attrs import evolve, field, frozen

from kafka_msgs.errors import MissingExtraError, OptionError
from kafka_msgs.filesystems.listing import Match, list_directory, match_path, walk_files
from kafka_msgs.filesystems.location import Location, is_remote, mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.resolver import filesystem_of, settings_for
from kafka_msgs.log.file_names import OFFSET_IN_NAME, named_partition
from kafka_msgs.log.mapped_file import MAX_SMALL_FILE

try:
    from pyarrow import BufferReader, NativeFile, fs
except ImportError as error:
    raise MissingExtraError(feature="kafka_msgs.filesystems", extra="arrow", package="pyarrow") from error

__all__ = [
    "CAPTURES",
    "GONE",
    "SEGMENTS",
    "FileKind",
    "FileSlice",
    "LogFile",
    "directories_at",
    "directory_of",
    "file_from_uri",
    "is_there",
    "list_recursively",
    "list_siblings",
    "local_copy",
    "local_directory",
    "log_file",
    "log_files",
    "open_file",
    "partition_of",
    "read_small",
    "resolve_path",
    "stat_files",
]

GONE: Final = "the file was deleted after the read was planned"
"""The reason why a listed file cannot be read."""

_OFFSET: Final = re.compile(rf"(?P<offset>{OFFSET_IN_NAME})(?:-[0-9]{{10}})?\.(?:log|checkpoint)")
_CHUNK: Final = 2**22
T = TypeVar("T")


class FileKind(NamedTuple):
    """A kind of file to search for: its name in messages, and its file name patterns.

    ``pattern`` applies to files in a directory, ``wild`` to files that match a wildcard. Files given by name need not
    match.
    """

    name: str
    pattern: re.Pattern[str]
    wild: re.Pattern[str] = re.compile(".*")


CAPTURES: Final = FileKind("capture", re.compile(r".*\.(?:pcap|pcapng|cap)[0-9]*"))
SEGMENTS: Final = FileKind("segment", re.compile(rf"{OFFSET_IN_NAME}\.log"), re.compile(r".*\.(?:log|checkpoint)"))


@frozen
class LogFile:
    """A file of batches: its path on the filesystem at ``root`` (empty for local files), and its size in bytes.

    ``root`` is the URI of the filesystem, with its parameters and without a path. ``topic`` and ``partition`` come from
    the name of the directory, and ``base_offset`` from the name of the file; they are None if the name has none.
    """

    root: str = field(repr=mask_uri)
    path: str
    size: int
    topic: str | None
    partition: int | None
    base_offset: int | None
    fs_options: FilesystemOptions = NO_OPTIONS
    """The options of the filesystem."""

    @property
    def name(self) -> str:
        """The path for display, prefixed with the filesystem if it is remote."""
        if not self.root or "://" in self.path:
            return self.path
        location = Location.parse(self.root)
        host = location.authority.rpartition("@")[2] if self.path.startswith("/") else ""
        return f"{location.scheme}://{host}{self.path}"

    @property
    def filesystem(self) -> fs.FileSystem:
        """The filesystem of this process."""
        return filesystem_of(self.root, self.fs_options).filesystem

    @property
    def directory(self) -> str:
        """The directory of the file."""
        return self.path.rpartition("/")[0]

    @property
    def log(self) -> tuple[str, ...]:
        """A key shared by the files of one partition's log."""
        return self.root, self.directory

    @property
    def first(self) -> int:
        """The lowest offset to read from the file, according to its name."""
        return (self.base_offset or 0) if self.path.endswith(".log") else 0

    @property
    def is_segment(self) -> bool:
        """Whether the file has the name of a segment."""
        return SEGMENTS.pattern.fullmatch(PurePosixPath(self.path).name) is not None

    @property
    def topic_partition(self) -> tuple[Any, ...]:
        """The sort key of the file: topic, partition and offset."""
        return self.topic or "", -1 if self.partition is None else self.partition, self.base_offset or 0, self.path

    def sibling(self, name: str) -> LogFile:
        """Return the file with a name in the same directory, of unknown size. It may not exist."""
        return log_file(self.root, f"{self.directory}/{name}", 0, self.fs_options)

    def read_sibling(self, name: str, read: Callable[[Path], T]) -> T | None:
        """Return the content of a small file with a name in the same directory; like ``read_small``."""
        return read_small(self.sibling(name), read)

    def sibling_with_suffix(self, ending: str) -> LogFile | None:
        """Return the file of a segment with another suffix, such as ``.index``, which may not exist.

        Return None if it surely does not exist. Raises ``OSError``.
        """
        return self.sibling(PurePosixPath(self.path).name.removesuffix(".log") + ending)


@frozen(kw_only=True)
class FileSlice(LogFile):
    """A file that is a part of an object: ``size`` bytes, starting at byte ``begins``."""

    begins: int


def log_files(
    source: str, paths: Sequence[str], kind: FileKind = SEGMENTS, fs_options: FilesystemOptions = NO_OPTIONS
) -> list[LogFile]:
    """Return the segments at ``paths``, or files of another kind, without duplicates, sorted by topic, partition and
    offset.

    A path is a file, a partition directory, a log directory, or a pattern with wildcards (``*``, ``?``, ``[a-c]``,
    ``{a,b}``). It may be a local path, a ``file:`` URI, or the URI of another filesystem, with parameters
    (``s3://bucket/logs?endpoint_override=...``) or ``fs_options``. If a file exists under the literal path, that file
    is used, regardless of special characters.

    In directories and with wildcards, only files with names of this kind are used. A file given by name is always used.
    Wildcards skip directories that a broker is deleting, is moving, or does not recognize. Raises ``OptionError`` for a
    path without files, and for two copies of a partition; ``MissingExtraError`` and ``OSError``.
    """
    found: dict[tuple[str, str], LogFile] = {}
    for path in paths:
        files = list(_files_of(source, path, kind, fs_options))
        if not files:
            reason = f"there is no {kind.name}"
            raise OptionError(source=source, option="path", value=mask_uri(path), reason=reason + _hint(path))
        found |= {(file.root, _real(file)): file for file in files}
    _refuse_copies(source, found.values())
    return sorted(found.values(), key=lambda file: file.topic_partition)


def _hint(path: str) -> str:
    return "; several paths are given as a list" if "," in path else ""


def _real(file: LogFile) -> str:
    return file.path if file.root else os.path.realpath(file.path)


def _refuse_copies(source: str, files: Iterable[LogFile]) -> None:
    """Refuse two directories of the same partition, which would duplicate every row."""
    first: dict[tuple[str, int], LogFile] = {}
    for file in files:
        if file.topic is None or file.partition is None:
            continue
        other = first.setdefault((file.topic, file.partition), file)
        if (other.root, _real(other).rpartition("/")[0]) != (file.root, _real(file).rpartition("/")[0]):
            path, copy = (each.name.rpartition("/")[0] for each in (file, other))
            reason = f"another copy of this partition is {copy}; give one of them"
            raise OptionError(source=source, option="path", value=path, reason=reason)


def local_directory(source: str, path: str) -> Path:
    """Return the local directory at a path, whether or not it exists. Raises ``OptionError`` for remote paths."""
    if is_remote(path):
        reason = "it is written to a path that the driver and the executors both see, not to another filesystem"
        raise OptionError(source=source, option="path", value=mask_uri(path), reason=reason)
    found = [Path(each) for each in resolve_path(source, path, NO_OPTIONS).paths]
    return next((each for each in found if each.exists()), found[-1])


def file_from_uri(uri: str, size: int) -> LogFile:
    """Return a file described only by its URI. The caller provides its bytes."""
    location = Location.parse(uri)
    if location.is_local:
        return log_file("", f"/{location.path.lstrip('/')}", size)
    host = location.authority.rpartition("@")[2]
    return log_file(f"{location.scheme}://{host}", host + location.path, size)


def list_siblings(file: LogFile) -> dict[str, LogFile]:
    """Return all files in the directory of a file, by name."""
    found = list_directory(file.filesystem, file.directory)
    files = (info for info in found if info.type == fs.FileType.File)
    return {info.base_name: log_file(file.root, info.path, info.size, file.fs_options) for info in files}


def list_recursively(directory: LogFile) -> list[LogFile]:
    """Return all files in a directory and its subdirectories. Raises ``OSError``."""
    found = walk_files(directory.filesystem, directory.path)
    return [evolve(directory, path=info.path, size=info.size) for info in found]


def stat_files(files: Sequence[LogFile]) -> list[LogFile | None]:
    """Return files of one filesystem with their sizes, and None for each missing file. Raises ``OSError``."""
    found = files[0].filesystem.get_file_info([file.path for file in files]) if files else ()
    return [
        evolve(file, size=info.size) if info.type == fs.FileType.File else None
        for file, info in zip(files, found, strict=True)
    ]


def read_small(file: LogFile, read: Callable[[Path], T]) -> T | None:
    """Return the content of a small file, or None if it does not exist. Raises the errors of ``read``."""
    try:
        with local_copy(file, end=MAX_SMALL_FILE + 1) as (path, _):
            return read(path)
    except FileNotFoundError:
        return None


@contextmanager
def local_copy(file: LogFile, start: int = 0, end: int | None = None) -> Iterator[tuple[Path, int]]:
    """Provide a local file with the bytes from ``start`` to ``end``, and the position of its first byte in ``file``.

    A local file is provided directly and completely. Raises ``FileNotFoundError``, including for a file that is deleted
    while it is fetched, and ``OSError``.
    """
    if not file.root and not isinstance(file, FileSlice):
        yield Path(file.path), 0
        return
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-") as directory:
        copy = Path(directory) / PurePosixPath(file.path).name
        try:
            _fetch(file, copy, start, end)
        except OSError as error:
            if isinstance(error, FileNotFoundError) or is_there(file):
                raise
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file.name) from error
        yield copy, start


def _fetch(file: LogFile, copy: Path, start: int, end: int | None) -> None:
    with open_file(file) as data, copy.open("wb") as written:
        # Google's store refuses to read at the end of a file.
        at, stop = start, data.size() if end is None else min(end, data.size())
        while at < stop and (chunk := data.read_at(min(_CHUNK, stop - at), at)):
            written.write(chunk)
            at += len(chunk)


def is_there(file: LogFile) -> bool:
    """Return whether a file currently exists."""
    return bool(file.filesystem.get_file_info(file.path).type == fs.FileType.File)


def open_file(file: LogFile) -> NativeFile:
    """Return a file open for random access. Raises ``OSError``."""
    data = file.filesystem.open_input_file(file.path)
    if not isinstance(file, FileSlice):
        return data
    with data:
        return BufferReader(data.read_at(max(0, min(file.size, data.size() - file.begins)), file.begins))


class ResolvedPath(NamedTuple):
    """A resolved path: the root, its options, and the possible paths on it, the most likely first."""

    root: str
    fs_options: FilesystemOptions
    paths: list[str]

    @property
    def filesystem(self) -> fs.FileSystem:
        """The filesystem of this process."""
        return filesystem_of(self.root, self.fs_options).filesystem


def resolve_path(source: str, path: str, fs_options: FilesystemOptions) -> ResolvedPath:
    """Resolve a path, whether or not it exists. Raises ``OptionError`` and ``MissingExtraError``."""
    location = Location.parse(path, source)
    if location.is_local:
        return ResolvedPath("", NO_OPTIONS, [str(each) for each in location.local_paths()])
    own = settings_for(location.kind, fs_options)
    start = _start(source, path, location.root, own).rstrip("/")
    inside = (each.strip("/") for each in location.decodings())
    return ResolvedPath(location.root, own, [f"{start}/{each}".rstrip("/") for each in inside])


def _start(source: str, path: str, root: str, fs_options: FilesystemOptions) -> str:
    """Return the path of a root on its filesystem. Raises ``OptionError`` without secrets in its text."""
    try:
        return filesystem_of(root, fs_options).start
    except (OSError, TypeError, ValueError) as error:
        reason = fs_options.mask_secrets(str(error).replace(root, mask_uri(root)))
    raise OptionError(source=source, option="path", value=mask_uri(path), reason=reason)


def _files_of(source: str, path: str, kind: FileKind, fs_options: FilesystemOptions) -> Iterator[LogFile]:
    found, matches = _matches_at(source, path, fs_options)
    for info, wild in matches:
        if info.type == fs.FileType.Directory:
            inside = _below(found.filesystem, info.path)
            taken = [each for each in inside if kind.pattern.fullmatch(each.base_name)]
        else:
            taken = [info] if not wild or kind.wild.fullmatch(info.base_name) else []
        yield from (log_file(found.root, each.path, each.size, found.fs_options) for each in taken)


def directories_at(source: str, path: str, fs_options: FilesystemOptions) -> tuple[ResolvedPath, list[str]]:
    """Return the resolved path, and the directories that a path or pattern with wildcards denotes.

    Raises ``OptionError``, ``MissingExtraError`` and ``OSError``.
    """
    found, matches = _matches_at(source, path, fs_options)
    return found, [info.path for info, _ in matches if info.type == fs.FileType.Directory]


def directory_of(source: str, path: str, fs_options: FilesystemOptions = NO_OPTIONS) -> LogFile:
    """Return the directory at a path, as the root of a listing. Raises ``OptionError`` if it is not one directory."""
    found, directories = directories_at(source, path, fs_options)
    if len(directories) != 1:
        reason = "there are several directories" if directories else "there is no directory"
        raise OptionError(source=source, option="path", value=mask_uri(path), reason=reason)
    return LogFile(found.root, directories[0], 0, None, None, None, found.fs_options)


def partition_of(directory: str) -> tuple[str, int] | None:
    """Return the topic and number in the name of a partition directory, or None for another name."""
    return named_partition(directory.rpartition("/")[2])


def _matches_at(source: str, path: str, fs_options: FilesystemOptions) -> tuple[ResolvedPath, list[Match]]:
    found = resolve_path(source, path, fs_options)
    matches = (match_path(source, found.filesystem, candidate) for candidate in found.paths)
    return found, next(filter(None, matches), [])


def _below(filesystem: fs.FileSystem, path: str) -> Iterator[fs.FileInfo]:
    """Yield the entries of a directory, and of its subdirectories with partition names."""
    for info in list_directory(filesystem, path):
        if info.type == fs.FileType.File:
            yield info
        elif named_partition(info.base_name):
            yield from (each for each in list_directory(filesystem, info.path) if each.type == fs.FileType.File)


def log_file(root: str, path: str, size: int, fs_options: FilesystemOptions = NO_OPTIONS) -> LogFile:
    """Return the file at a path of the filesystem at ``root``, whether or not it exists."""
    place = PurePosixPath(path)
    offset = _OFFSET.fullmatch(place.name)
    topic, partition = named_partition(place.parent.name) or (None, None)
    return LogFile(
        root=root,
        path=path,
        size=size,
        topic=topic,
        partition=partition,
        base_offset=int(offset["offset"]) if offset else None,
        fs_options=fs_options,
    )
