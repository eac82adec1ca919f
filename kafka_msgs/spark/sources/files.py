"""Which files a path of a source means, on whatever filesystem, and their bytes as a local file.

Owns listing and fetching. Local paths need nothing; other filesystems are those of ``pyarrow.fs``, which reads them in
Python without a JVM, so that drivers and executors go the same way. What the files hold is left to ``splits``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple

from attrs import frozen
from pyarrow import NativeFile, fs

from kafka_msgs.errors import OptionError

__all__ = ["SEGMENTS", "FileKind", "LogFile", "described", "local_copy", "log_files", "opened", "siblings"]

_PARTITION: Final = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<number>[0-9]{1,10})")
_OFFSET: Final = re.compile(r"(?P<offset>[0-9]{20})(?:-[0-9]{10})?\.(?:log|checkpoint)")
_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<rest>.*)")
_SAME_AS: Final = {"s3a": "s3", "s3n": "s3"}
"""Names that Hadoop gives to filesystems which Arrow knows under another one."""
_WILD: Final = re.compile(r"[*?[]")
_CHUNK: Final = 2**22


class FileKind(NamedTuple):
    """Files that are looked for: what they are called in words, and how they are named.

    ``pattern`` is for what lies in a directory, ``wild`` for what matches a wildcard; one that is named needs none.
    """

    name: str
    pattern: re.Pattern[str]
    wild: re.Pattern[str] = re.compile(".*")


SEGMENTS: Final = FileKind("segment", re.compile(r"[0-9]{20}\.log"), re.compile(r".*\.(?:log|checkpoint)"))


@frozen
class LogFile:
    """A file of batches: its path on the filesystem that ``root`` names (empty: this machine's), and its bytes.

    ``topic`` and ``partition`` are those of the directory's name, ``base_offset`` that of the file's; None where the
    name is none.
    """

    root: str
    path: str
    size: int
    topic: str | None
    partition: int | None
    base_offset: int | None

    @property
    def name(self) -> str:
        """The path as it is shown: with the filesystem in front where that is not this machine's."""
        scheme = _SCHEME.fullmatch(self.root)
        return f"{scheme['scheme']}://{self.path}" if scheme else self.path

    @property
    def directory(self) -> str:
        """The directory of the file."""
        return self.path.rpartition("/")[0]

    @property
    def place(self) -> tuple[Any, ...]:
        """Where the file stands among others: by topic, partition and offset."""
        return self.topic or "", -1 if self.partition is None else self.partition, self.base_offset or 0, self.path


def log_files(source: str, paths: Sequence[str], kind: FileKind = SEGMENTS) -> list[LogFile]:
    """Return the segments that ``paths`` mean, by topic, partition and offset, each once; or files of another kind.

    A path is a file, the directory of a partition, a log directory, or has wildcards. In a directory, and where there
    are wildcards, only files named as those of the kind count; a file that is named itself is always taken. Raises
    ``OptionError`` for a path that means nothing, and ``OSError``.
    """
    found: dict[tuple[str, str], LogFile] = {}
    for path in paths:
        files = list(_files_of(path, kind))
        if not files:
            raise OptionError(source=source, option="path", value=path, reason=f"there is no {kind.name}")
        found |= {(file.root, file.path): file for file in files}
    return sorted(found.values(), key=lambda file: file.place)


def described(uri: str, size: int) -> LogFile:
    """Return a file as its path tells it, wherever it is; its bytes come from elsewhere."""
    scheme = _SCHEME.fullmatch(uri)
    path = scheme["rest"] if scheme else re.sub("^file:/+", "/", uri)
    return _log_file(uri if scheme else "", path, size)


def siblings(file: LogFile) -> list[LogFile]:
    """Return all segments in the directory of a file, by offset."""
    filesystem, _ = _resolved(file.root or file.path)
    found = filesystem.get_file_info(fs.FileSelector(file.directory))
    return sorted(_named(SEGMENTS, file.root, found), key=lambda each: each.place)


@contextmanager
def local_copy(file: LogFile, start: int = 0, end: int | None = None) -> Iterator[tuple[Path, int]]:
    """Give a local file with the bytes from ``start`` to ``end``, and the place that its first byte has in ``file``.

    A file of this machine is given as it is, whole. Raises ``OSError``.
    """
    if not file.root:
        yield Path(file.path), 0
        return
    with tempfile.TemporaryDirectory(prefix="kafka-msgs-") as directory:
        copy = Path(directory) / PurePosixPath(file.path).name
        with opened(file) as data, copy.open("wb") as written:
            at, stop = start, file.size if end is None else end
            while at < stop and (chunk := data.read_at(min(_CHUNK, stop - at), at)):
                written.write(chunk)
                at += len(chunk)
        yield copy, start


def opened(file: LogFile) -> NativeFile:
    """Return a file open for reading at any place; raises ``OSError``."""
    return _resolved(file.root or file.path)[0].open_input_file(file.path)


def _resolved(path: str) -> tuple[fs.FileSystem, str]:
    """Return the filesystem of a path, and the path on it."""
    scheme = _SCHEME.fullmatch(path)
    if scheme is None:
        return fs.LocalFileSystem(), str(Path(path).absolute())
    if scheme["scheme"] == "file":
        return fs.LocalFileSystem(), "/" + scheme["rest"].lstrip("/")
    uri = f"{_SAME_AS.get(scheme['scheme'], scheme['scheme'])}://{scheme['rest']}"
    filesystem, inner = fs.FileSystem.from_uri(uri)
    return filesystem, inner


def _files_of(path: str, kind: FileKind) -> Iterator[LogFile]:
    steady, wild = _parted(path)
    filesystem, start = _resolved(steady)
    root = "" if isinstance(filesystem, fs.LocalFileSystem) else steady
    for info in _matching(filesystem, start, wild):
        if info.type == fs.FileType.File and (not wild or kind.wild.fullmatch(info.base_name)):
            yield _log_file(root, info.path, info.size)
        elif info.type == fs.FileType.Directory:
            yield from _named(kind, root, _below(filesystem, info.path))


def _parted(path: str) -> tuple[str, Sequence[str]]:
    """Return the part of a path before its first wildcard, and the names after it."""
    match = _WILD.search(path)
    if match is None:
        return path, []
    steady, slash, rest = path[: match.start()].rpartition("/")
    return steady or slash or ".", (rest + path[match.start() :]).split("/")


def _matching(filesystem: fs.FileSystem, start: str, wild: Sequence[str]) -> list[fs.FileInfo]:
    found: list[fs.FileInfo] = filesystem.get_file_info([start])
    for name in wild:
        inside = [each for info in found if info.type == fs.FileType.Directory for each in _listed(filesystem, info)]
        found = [info for info in inside if fnmatchcase(info.base_name, name)]
    return found


def _listed(filesystem: fs.FileSystem, info: fs.FileInfo) -> list[fs.FileInfo]:
    listed: list[fs.FileInfo] = filesystem.get_file_info(fs.FileSelector(info.path))
    return listed


def _below(filesystem: fs.FileSystem, path: str) -> Iterator[fs.FileInfo]:
    """Yield what lies in a directory, and in those in it that are named as partitions are."""
    for info in filesystem.get_file_info(fs.FileSelector(path)):
        if info.type == fs.FileType.File:
            yield info
        elif _PARTITION.fullmatch(info.base_name):
            yield from (each for each in _listed(filesystem, info) if each.type == fs.FileType.File)


def _named(kind: FileKind, root: str, infos: Iterator[fs.FileInfo] | list[fs.FileInfo]) -> Iterator[LogFile]:
    return (_log_file(root, info.path, info.size) for info in infos if kind.pattern.fullmatch(info.base_name))


def _log_file(root: str, path: str, size: int) -> LogFile:
    place = PurePosixPath(path)
    partition, offset = _PARTITION.fullmatch(place.parent.name), _OFFSET.fullmatch(place.name)
    return LogFile(
        root=root,
        path=path,
        size=size,
        topic=partition["topic"] if partition else None,
        partition=int(partition["number"]) if partition else None,
        base_offset=int(offset["offset"]) if offset else None,
    )
