"""Directory listings, recursive walks and wildcard matching on any filesystem."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Final, TypeAlias

from pyarrow import fs

from kafka_msgs.errors import OptionError
from kafka_msgs.log.file_names import REPLACEMENT

__all__ = ["Match", "list_directory", "match_path", "walk_files"]

Match: TypeAlias = tuple[fs.FileInfo, bool]
"""An entry at a path, and whether wildcards matched it."""

_SET_ASIDE: Final = re.compile(r".+\.[^.]+-(?:delete|future|stray)")
"""Names of partition directories that a broker is deleting, is moving, or does not recognize (Kafka's ``LocalLog``)."""
_BRACES: Final = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ALTERNATIVES: Final = 256
"""The maximum number of paths from the braces in a path."""
_WILD: Final = re.compile(r"[*?[]")
_GOOGLE: Final = "gcs"
"""Arrow's name of a filesystem whose listings omit directories without an object, so they are listed recursively."""


def match_path(source: str, filesystem: fs.FileSystem, path: str) -> list[Match]:
    """Return the entries that a path denotes: the path itself if it exists, or else a pattern of wildcards and braces.

    Raises ``OptionError`` for braces with too many alternatives, and ``OSError``.
    """
    info = filesystem.get_file_info(path)
    if info.type != fs.FileType.NotFound:
        return [(info, False)]
    found: list[Match] = []
    for each in _expanded(source, path):
        named = filesystem.get_file_info(each)
        if named.type != fs.FileType.NotFound:
            found.append((named, False))
        elif _WILD.search(each):
            found += [(info, True) for info in _glob(filesystem, each.split("/"))]
    return found


def _expanded(source: str, path: str) -> list[str]:
    """Return the paths that a path with braces expands to, or the path itself."""
    made = [path]
    while any(found := [_BRACES.search(each) for each in made]):
        if sum(match[1].count(",") + 1 if match else 1 for match in found) > _ALTERNATIVES:
            reason = f"its braces expand to more than {_ALTERNATIVES} paths"
            raise OptionError(source=source, option="path", value=path, reason=reason)
        made = [
            each[: match.start()] + choice + each[match.end() :] if match else each
            for each, match in zip(made, found, strict=True)
            for choice in (match[1].split(",") if match else ("",))
        ]
    return made


def _glob(filesystem: fs.FileSystem, parts: Sequence[str]) -> list[fs.FileInfo]:
    """Return the entries that match the parts of a path with wildcards in one or more parts. Raises ``OSError``."""
    steady = next(number for number, part in enumerate(parts) if _WILD.search(part))
    found: list[fs.FileInfo] = [filesystem.get_file_info("/".join(parts[:steady]) or "/")]
    for part in parts[steady:]:
        inside = [
            each
            for info in found
            if info.type == fs.FileType.Directory
            for each in list_directory(filesystem, info.path)
        ]
        found = [info for info in inside if _passes(info.base_name, part)]
    return found


def _passes(name: str, pattern: str) -> bool:
    """Return whether a name matches. Directories being deleted or moved only match patterns with their suffix."""
    if _SET_ASIDE.fullmatch(name) and not pattern.endswith(("-delete", "-future", "-stray")):
        return False
    return fnmatchcase(name, pattern)


def list_directory(filesystem: fs.FileSystem, path: str) -> list[fs.FileInfo]:
    """Return the entries of a directory, none if it does not exist. Raises ``OSError``.

    A segment that a broker is replacing is listed in any case: see ``REPLACEMENT``.
    """
    markers_only = filesystem.type_name == _GOOGLE
    chosen = fs.FileSelector(path, allow_not_found=True, recursive=markers_only)
    found: list[fs.FileInfo] = filesystem.get_file_info(chosen)
    if not markers_only:
        return _with_replaced(found)
    inside: dict[str, fs.FileInfo] = {}
    for info in found:
        name, slash, _ = info.path.removeprefix(f"{path}/").partition("/")
        inside[name] = fs.FileInfo(f"{path}/{name}", fs.FileType.Directory) if slash else inside.get(name, info)
    return list(inside.values())


def _with_replaced(found: list[fs.FileInfo]) -> list[fs.FileInfo]:
    replacements = [match for info in found if (match := REPLACEMENT.fullmatch(info.base_name))]
    if not replacements:
        return found
    directory, sizes = found[0].path.rpartition("/")[0], {info.base_name: info.size for info in found}
    return found + [
        fs.FileInfo(f"{directory}/{match['segment']}", fs.FileType.File, size=sizes[match[0]])
        for match in replacements
        if match["segment"] not in sizes
    ]


def walk_files(filesystem: fs.FileSystem, path: str) -> Iterator[fs.FileInfo]:
    """Yield all files in a directory and its subdirectories, none if it does not exist. Raises ``OSError``.

    Links to directories are followed on a local filesystem, each directory once, so that loops end.
    """
    if isinstance(filesystem, fs.LocalFileSystem):
        yield from _walk_local(filesystem, path)
        return
    found = filesystem.get_file_info(fs.FileSelector(path, allow_not_found=True, recursive=True))
    yield from (info for info in found if info.type == fs.FileType.File)


def _walk_local(filesystem: fs.FileSystem, path: str) -> Iterator[fs.FileInfo]:
    entered: set[tuple[int, int]] = set()
    for directory, subdirectories, names in os.walk(path, followlinks=True):
        status = os.stat(directory)
        if (status.st_dev, status.st_ino) in entered:
            subdirectories.clear()
            continue
        entered.add((status.st_dev, status.st_ino))
        found = filesystem.get_file_info([f"{directory}/{name}" for name in sorted(names)])
        yield from (info for info in found if info.type == fs.FileType.File)
