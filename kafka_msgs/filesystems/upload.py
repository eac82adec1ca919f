"""Upload of local directories to another filesystem."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyarrow import fs

from kafka_msgs.errors import JobPathError, OptionError
from kafka_msgs.filesystems.listing import list_directory
from kafka_msgs.filesystems.location import mask_uri
from kafka_msgs.filesystems.options import NO_OPTIONS, FilesystemOptions
from kafka_msgs.filesystems.path_resolution import resolve_path
from kafka_msgs.filesystems.resolver import filesystem_of

__all__ = ["check_empty", "copy_directory", "resolve_uri"]

_SOURCE: Final = "kafka-msgs"


def check_empty(uri: str, fs_options: FilesystemOptions = NO_OPTIONS) -> None:
    """Raise ``JobPathError`` if the location of a URI is not empty or cannot be listed."""
    filesystem, path = resolve_uri(uri, fs_options)
    try:
        named = filesystem.get_file_info(path)
        inside = list_directory(filesystem, path) if not named.is_file else [named]
    except OSError as error:
        raise JobPathError(path=mask_uri(uri), reason=fs_options.mask_secrets(str(error))) from None
    if inside:
        raise JobPathError(path=mask_uri(uri), reason="it exists and is not empty; nothing is overwritten")


def copy_directory(directory: Path, uri: str, fs_options: FilesystemOptions = NO_OPTIONS) -> None:
    """Copy the content of a directory to a URI. Raises ``JobPathError``, including for an incomplete copy."""
    filesystem, path = resolve_uri(uri, fs_options)
    try:
        fs.copy_files(str(directory), path, fs.LocalFileSystem(), filesystem)
        lost = _lost(directory, filesystem, path)
    except OSError as error:
        raise JobPathError(path=mask_uri(uri), reason=fs_options.mask_secrets(str(error))) from None
    if lost is not None:
        raise JobPathError(path=f"{mask_uri(uri)}/{lost}", reason="it could not be written")


def _lost(directory: Path, filesystem: fs.FileSystem, path: str) -> str | None:
    """Return a file that was not copied completely, or None. Some libraries do not report files refused by a server."""
    files = {file.relative_to(directory).as_posix(): file for file in directory.rglob("*") if file.is_file()}
    found = filesystem.get_file_info([f"{path}/{name}" for name in files])
    return next(
        (name for name, info in zip(files, found, strict=True) if info.size != files[name].stat().st_size), None
    )


def resolve_uri(uri: str, fs_options: FilesystemOptions = NO_OPTIONS) -> tuple[fs.FileSystem, str]:
    """Return the filesystem of a URI, and the path on it. Raises ``JobPathError``."""
    try:
        found = resolve_path(_SOURCE, uri, fs_options)
    except OptionError as error:
        raise JobPathError(path=mask_uri(uri), reason=error.reason) from None
    return filesystem_of(found.root, found.fs_options).filesystem, found.paths[0]
