"""Writes generated files: only changes, each atomically, and removes files that are no longer generated.

A directory's index lists the files that belong to the generator. The generator never removes or overwrites any other
file.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from attrs import frozen

from kafka_msgs_generator.atomic_write import write_atomically
from kafka_msgs_generator.c_header import C_MARK
from kafka_msgs_generator.emit import MARK
from kafka_msgs_generator.package_files import INDEX

__all__ = ["Changes", "ForeignFileError", "apply", "plan", "summary"]

_LONGEST: Final = 255
"""The longest file name that file systems allow."""
_MARKS: Final = (MARK, C_MARK)


class ForeignFileError(Exception):
    """An output file already exists and does not belong to the generator; ``path`` is its path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path} was not written by the generator; move it away first")


@frozen
class Changes:
    """The changes that bring a directory up to date: paths below ``root`` with their text, and paths to remove."""

    root: Path
    written: Mapping[str, str]
    removed: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.written or self.removed)


def plan(root: Path, files: Mapping[str, str]) -> Changes:
    """Compare ``root`` with ``files``, path to text; raise `ForeignFileError` if one would overwrite a foreign file."""
    written = {path: text for path, text in sorted(files.items()) if _current(root / path) != text}
    for path in written:
        current = _current(root / path)
        if current is not None and current.strip() and not current.startswith(_MARKS):
            raise ForeignFileError(root / path)
    orphans = sorted(_owned(root) - files.keys())
    return Changes(root, written, tuple(path for path in orphans if (_current(root / path) or "").startswith(_MARKS)))


def apply(changes: Changes) -> None:
    """Apply the changes to the directory. The index is written last, because it lists the written files."""
    for path, text in sorted(changes.written.items(), key=lambda item: item[0] == INDEX):
        write_atomically(changes.root / path, text)
    for path in changes.removed:
        (changes.root / path).unlink()
        _remove_if_empty((changes.root / path).parent, changes.root)


def summary(changes: Changes) -> list[str]:
    """List the changes, one line per file."""
    lines = []
    for path, text in changes.written.items():
        current = _current(changes.root / path)
        lines.append(f"missing  {path}" if current is None else f"changed  {path} ({_difference(current, text)})")
    return lines + [f"orphaned {path}" for path in changes.removed]


def _difference(current: str, text: str) -> str:
    diff = list(difflib.unified_diff(current.splitlines(), text.splitlines(), n=0, lineterm=""))[2:]
    return f"+{sum(line.startswith('+') for line in diff)} -{sum(line.startswith('-') for line in diff)} lines"


def _current(path: Path) -> str | None:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


def _owned(root: Path) -> set[str]:
    """Return the files that the last run wrote below ``root``; paths outside it are ignored."""
    text = _current(root / INDEX)
    if text is None or not text.startswith(MARK):
        return set()
    try:
        statements = ast.parse(text).body
    except SyntaxError:
        return set()
    for statement in statements:
        match statement:
            case ast.AnnAssign(target=ast.Name(id="FILES"), value=ast.Tuple(elts=items)):
                names = (item.value for item in items if isinstance(item, ast.Constant))
                return {name for name in names if isinstance(name, str) and _inside(name)}
    return set()


def _inside(path: str) -> bool:
    pure = PurePosixPath(path)
    return not pure.is_absolute() and ".." not in pure.parts and all(len(part) <= _LONGEST for part in pure.parts)


def _remove_if_empty(directory: Path, root: Path) -> None:
    leftovers = [entry for entry in directory.iterdir() if entry.name != "__pycache__"]
    if directory != root and not leftovers:
        for cached in (directory / "__pycache__").glob("*.pyc"):
            cached.unlink()
        for empty in (directory / "__pycache__", directory):
            if empty.is_dir():
                empty.rmdir()
