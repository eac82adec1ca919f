"""A small log directory of a real broker, to try the library. It comes with the package.

It has groups of every kind (classic, consumer, share, streams), including empty ones, the topics that they read, an
open transaction, and the metadata log. This module knows where the sample is, and writes it. The command is
``kafka-msgs sample``.
"""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Final
from zipfile import ZipFile

from kafka_msgs.errors import JobPathError

__all__ = ["LOG_DIRECTORY", "write_sample"]

LOG_DIRECTORY: Final = "log-directory.zip"
"""The file of the package with the sample."""


def write_sample(directory: Path) -> list[Path]:
    """Write the sample log directory to ``directory``, which must be new or empty. Return the directories of its
    partitions.

    Raises ``JobPathError`` for a directory that is not empty, and ``OSError``.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise JobPathError(path=str(directory), reason="already exists and is not empty; nothing was written")
    directory.mkdir(parents=True, exist_ok=True)
    with files(__name__).joinpath(LOG_DIRECTORY).open("rb") as packed, ZipFile(packed) as archive:
        archive.extractall(directory)
    return sorted(path for path in directory.iterdir() if path.is_dir())
