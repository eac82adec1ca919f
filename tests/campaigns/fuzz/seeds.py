"""Writes the initial inputs of a target as files, one for each seed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["write"]


def write(folder: Path, seeds: Iterable[bytes], max_size: int) -> int:
    """Write one file for each seed within the size limit into a folder; return their number."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for content in seeds:
        if len(content) <= max_size:
            (folder / str(count)).write_bytes(content)
            count += 1
    return count
