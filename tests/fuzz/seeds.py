"""Where the fuzzer starts: the bytes of the vectors, those that must be refused too."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.target import head
from tests.vectors.files import read_all

__all__ = ["write"]


def write(folder: Path) -> int:
    """Write one input for each vector into a folder; return how many."""
    folder.mkdir(parents=True, exist_ok=True)
    count = 0
    for vectors in read_all():
        for vector in (*vectors.valid, *vectors.invalid):
            content = head(vectors.message, vector.version) + bytes.fromhex(vector.hex)
            (folder / f"{vectors.message}-{count}").write_bytes(content)
            count += 1
    return count
