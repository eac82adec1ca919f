"""The files of a path: the path itself, or the files of a partition directory or log directory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kafka_msgs.cli.render.log_files import is_log_file
from kafka_msgs.errors import JobPathError
from kafka_msgs.log.log_directory import LogDirectory

__all__ = ["log_files"]


def log_files(paths: Iterable[Path], topic: str | None) -> list[Path]:
    """Return the files to dump, with the files of a directory in the order of their names.

    Of a directory only the files that a broker keeps there are included. For a log directory these are its own small
    files and the files of all partitions or, with ``topic``, only the files of the partitions of that topic. Raises
    ``JobPathError`` for a directory without such files.
    """
    return [file for path in paths for file in (_in_directory(path, topic) if path.is_dir() else [path])]


def _in_directory(path: Path, topic: str | None) -> list[Path]:
    partitions = LogDirectory(path).partitions
    own = [] if partitions and topic is not None else _own_files(path)
    below = [_own_files(partition.path) for partition in partitions if topic in (None, partition.topic)]
    found = [file for files in (own, *below) for file in files]
    if not found:
        what = "file of a log directory" if topic is None else f"partition of {topic}"
        raise JobPathError(path=str(path), reason=f"there is no {what} in it")
    return found


def _own_files(directory: Path) -> list[Path]:
    return sorted(path for path in directory.iterdir() if is_log_file(path) and path.is_file())
