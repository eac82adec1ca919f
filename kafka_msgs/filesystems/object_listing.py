"""Objects below a path, and the sizes of objects whose names are known, on any filesystem.

Owns listing for names that are not those of a broker's files; ``files`` owns those.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from pyarrow import fs

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions, mask_uri
from kafka_msgs.filesystems.path_resolution import LogFile, resolve_path
from kafka_msgs.filesystems.resolver import filesystem_of

__all__ = ["directory_of", "list_recursively", "stat_files"]


def stat_files(files: Sequence[LogFile]) -> list[LogFile | None]:
    """Return files with their sizes, each None if it is not there. They are on one filesystem. Raises ``OSError``."""
    if not files:
        return []
    found = _filesystem(files[0]).get_file_info([file.path for file in files])
    return [
        evolve(file, size=info.size) if info.type == fs.FileType.File else None
        for file, info in zip(files, found, strict=True)
    ]


def directory_of(source: str, path: str, fs_options: FilesystemOptions = NO_OPTIONS) -> LogFile:
    """Return the directory that a path means, whose ``path`` others are below. Raises ``OptionError``."""
    found = resolve_path(source, path, fs_options)
    for each in found.paths:
        made = LogFile(found.root, each, 0, None, None, None, found.fs_options)
        if _filesystem(made).get_file_info(each).type == fs.FileType.Directory:
            return made
    raise OptionError(source=source, option="path", value=mask_uri(path), reason="there is no directory")


def list_recursively(directory: LogFile) -> list[LogFile]:
    """Return all files in a directory and in those below it. Raises ``OSError``."""
    found = _filesystem(directory).get_file_info(fs.FileSelector(directory.path, recursive=True))
    return [evolve(directory, path=info.path, size=info.size) for info in found if info.type == fs.FileType.File]


def _filesystem(file: LogFile) -> fs.FileSystem:
    return filesystem_of(file.root, file.fs_options).filesystem
