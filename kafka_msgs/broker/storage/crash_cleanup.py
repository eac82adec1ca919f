"""Cleanup of a partition directory after a crash.

A rewritten segment has the suffix ``.cleaned`` until it is complete, and ``.swap`` while it replaces the old segments.
Therefore ``.cleaned`` files are removed, and ``.swap`` files complete their replacement. The order matches Kafka's
``LogLoader``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from kafka_msgs.broker.storage.batch_headers import iter_headers
from kafka_msgs.broker.storage.file_segment import SUFFIXES, FileSegment
from kafka_msgs.broker.storage.open_files import OpenFileCache
from kafka_msgs.broker.storage.partition_files import PartitionFiles

__all__ = ["finish_interrupted_swaps"]

_SWAP: Final = ".swap"


def finish_interrupted_swaps(directory: Path) -> None:
    """Remove incomplete and obsolete files, and finish complete replacements. Raises ``OSError``."""
    for ending in (".cleaned", ".deleted", ".tmp"):
        for path in directory.glob(f"*{ending}"):
            path.unlink()
    for path in directory.glob(f"*.log{_SWAP}"):
        _finish_swap(directory, int(path.name[:20]))
    for path in directory.glob(f"*{_SWAP}"):
        path.unlink()


def _finish_swap(directory: Path, base_offset: int) -> None:
    swapped = FileSegment(PartitionFiles(OpenFileCache(1), directory), base_offset, ending=_SWAP)
    swapped.size = swapped.path().stat().st_size
    end = max((batch.last_offset + 1 for batch in iter_headers(swapped)), default=base_offset)
    for path in directory.glob("*.log"):
        if path.stem.isdecimal() and base_offset <= int(path.stem) < end:
            for suffix in SUFFIXES:
                path.with_suffix(suffix).unlink(missing_ok=True)
    swapped.rename("")
