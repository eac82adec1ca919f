"""Where the fuzzer starts, written as files: one for each seed that a target has."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["write"]


def write(folder: Path, seeds: Iterable[bytes], max_size: int) -> int:
    """Write one input for each seed that is not too long into a folder; return how many."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for content in seeds:
        if len(content) <= max_size:
            (folder / str(count)).write_bytes(content)
            count += 1
    return count
