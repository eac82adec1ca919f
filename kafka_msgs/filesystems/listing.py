"""What is in a directory of any filesystem, and what matches wildcards."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from pyarrow import fs

__all__ = ["glob", "has_wildcards", "list_directory"]

_SET_ASIDE: Final = re.compile(r".+\.[^.]+-(?:delete|future|stray)")
"""How a broker names the directory of a partition that it deletes, moves, or does not know (Kafka's
``LocalLogBounds``).
"""
_WILD: Final = re.compile(r"[*?[]")
_GOOGLE: Final = "gcs"
"""Arrow's name of a filesystem where a listing has no directory without an object of its own: all below is listed."""


def has_wildcards(text: str) -> bool:
    """Whether a path or a part of one has a wildcard."""
    return _WILD.search(text) is not None


def glob(filesystem: fs.FileSystem, parts: Sequence[str]) -> list[fs.FileInfo]:
    """Return what matches the parts of a path, of which one or more have wildcards; raises ``OSError``."""
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
    """Whether a name matches; a directory that is set aside matches only a pattern that asks for such."""
    if _SET_ASIDE.fullmatch(name) and not pattern.endswith(("-delete", "-future", "-stray")):
        return False
    return fnmatchcase(name, pattern)


def list_directory(filesystem: fs.FileSystem, path: str) -> list[fs.FileInfo]:
    """Return what is in a directory; nothing if there is none. Raises ``OSError``."""
    markers_only = filesystem.type_name == _GOOGLE
    chosen = fs.FileSelector(path, allow_not_found=True, recursive=markers_only)
    found: list[fs.FileInfo] = filesystem.get_file_info(chosen)
    if not markers_only:
        return found
    inside: dict[str, fs.FileInfo] = {}
    for info in found:
        name, slash, _ = info.path.removeprefix(f"{path}/").partition("/")
        inside[name] = fs.FileInfo(f"{path}/{name}", fs.FileType.Directory) if slash else inside.get(name, info)
    return list(inside.values())
