"""Objects below a path, and the sizes of objects with known names, on any filesystem.

Defines listings of names other than broker files, which ``path_resolution`` lists.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from pyarrow import fs

from kafka_msgs.errors import OptionError
from kafka_msgs.filesystems.listing import walk_files
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import LogFile, resolve_path
from kafka_msgs.filesystems.resolver import filesystem_of

__all__ = ["directory_of", "list_recursively", "stat_files"]


def stat_files(files: Sequence[LogFile]) -> list[LogFile | None]:
    """Return files of one filesystem with their sizes, and None for each missing file. Raises ``OSError``."""
    if not files:
        return []
    found = _filesystem(files[0]).get_file_info([file.path for file in files])
    return [
        evolve(file, size=info.size) if info.type == fs.FileType.File else None
        for file, info in zip(files, found, strict=True)
    ]


def directory_of(source: str, path: str, fs_options: FilesystemOptions = NO_OPTIONS) -> LogFile:
    """Return the directory at a path, as the root of a listing. Raises ``OptionError``."""
    found = resolve_path(source, path, fs_options)
    for each in found.paths:
        made = LogFile(found.root, each, 0, None, None, None, found.fs_options)
        if _filesystem(made).get_file_info(each).type == fs.FileType.Directory:
            return made
    raise OptionError(source=source, option="path", value=mask_uri(path), reason="there is no directory")


def list_recursively(directory: LogFile) -> list[LogFile]:
    """Return all files in a directory and its subdirectories. Raises ``OSError``."""
    found = walk_files(_filesystem(directory), directory.path)
    return [evolve(directory, path=info.path, size=info.size) for info in found]


def _filesystem(file: LogFile) -> fs.FileSystem:
    return filesystem_of(file.root, file.fs_options).filesystem
