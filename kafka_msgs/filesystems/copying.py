"""Local directories on their way to another filesystem."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyarrow import fs

from kafka_msgs.errors import JobPathError, OptionError
from kafka_msgs.filesystems.files import resolved
from kafka_msgs.filesystems.listing import listed
from kafka_msgs.filesystems.opening import filesystem_of
from kafka_msgs.filesystems.settings import NO_SETTINGS, Settings, shown_uri

__all__ = ["check_empty", "copy_directory", "place_of"]

_SOURCE: Final = "kafka-msgs"


def check_empty(uri: str, settings: Settings = NO_SETTINGS) -> None:
    """Raise ``JobPathError`` where something is under a URI, or where it cannot be looked at."""
    filesystem, path = place_of(uri, settings)
    try:
        named = filesystem.get_file_info(path)
        inside = listed(filesystem, path) if not named.is_file else [named]
    except OSError as error:
        raise JobPathError(path=shown_uri(uri), reason=settings.hidden_in(str(error))) from None
    if inside:
        raise JobPathError(path=shown_uri(uri), reason="it exists and is not empty; nothing is overwritten")


def copy_directory(directory: Path, uri: str, settings: Settings = NO_SETTINGS) -> None:
    """Copy what is in a directory to a URI. Raises ``JobPathError``, also where not all of it has arrived."""
    filesystem, path = place_of(uri, settings)
    try:
        fs.copy_files(str(directory), path, fs.LocalFileSystem(), filesystem)
        lost = _lost(directory, filesystem, path)
    except OSError as error:
        raise JobPathError(path=shown_uri(uri), reason=settings.hidden_in(str(error))) from None
    if lost is not None:
        raise JobPathError(path=f"{shown_uri(uri)}/{lost}", reason="it could not be written")


def _lost(directory: Path, filesystem: fs.FileSystem, path: str) -> str | None:
    """Return a file that was not copied whole, or None: some libraries do not report that a server refused one."""
    files = {file.relative_to(directory).as_posix(): file for file in directory.rglob("*") if file.is_file()}
    found = filesystem.get_file_info([f"{path}/{name}" for name in files])
    return next(
        (name for name, info in zip(files, found, strict=True) if info.size != files[name].stat().st_size), None
    )


def place_of(uri: str, settings: Settings = NO_SETTINGS) -> tuple[fs.FileSystem, str]:
    """Return the filesystem that a URI means, and the path on it. Raises ``JobPathError``."""
    try:
        found = resolved(_SOURCE, uri, settings)
    except OptionError as error:
        raise JobPathError(path=shown_uri(uri), reason=error.reason) from None
    return filesystem_of(found.root, found.settings).filesystem, found.paths[0]
