"""A segment in its files: ``.log``, ``.index``, ``.timeindex`` and ``.txnindex``.

Batches are written immediately. The indexes are written when the segment is flushed, closed or rolled; after a crash
they are rebuilt from the batches.
"""

from __future__ import annotations

from array import array
from itertools import chain
from pathlib import Path
from struct import Struct
from typing import Final

from attrs import define

from kafka_msgs.broker.storage.batch_headers import iter_headers
from kafka_msgs.broker.storage.open_files import OpenFileCache
from kafka_msgs.broker.storage.partition_files import PartitionFiles
from kafka_msgs.codec import Buffer
from kafka_msgs.errors import LogFileError
from kafka_msgs.log.indexes import OFFSET_LAYOUT, TIME_LAYOUT, AbortedTransaction, read_aborted_transactions
from kafka_msgs.log.mapped_file import read_whole
from kafka_msgs.log.writers.index_writer import SegmentIndexes

__all__ = ["FileSegment", "finish_interrupted_swaps", "segment_name"]

SUFFIXES: Final = (".log", ".index", ".timeindex", ".txnindex")
"""The suffixes of a segment's files."""


def segment_name(base_offset: int, suffix: str = ".log") -> str:
    """Return the name of a segment file."""
    return f"{base_offset:020}{suffix}"


@define(eq=False)
class FileSegment:
    """The segment that starts at ``base_offset``. ``ending`` is an additional file name suffix such as ``.cleaned``."""

    files: PartitionFiles
    base_offset: int
    size: int = 0
    ending: str = ""

    def name(self, suffix: str = ".log") -> str:
        """Return the name of a segment file."""
        return segment_name(self.base_offset, suffix + self.ending)

    def path(self, suffix: str = ".log") -> Path:
        """Return the path of a segment file for reading."""
        return self.files.path(self.name(suffix))

    @property
    def modified(self) -> int | None:
        """The last modification time of the batch file, in milliseconds since the epoch."""
        return self.path().stat().st_mtime_ns // 1_000_000

    def append(self, data: Buffer) -> None:
        """Append complete batches. Raises ``OSError``."""
        self.files.write(self.name(), self.size, data)
        self.size += len(data)

    def read(self, start: int, stop: int) -> list[Buffer]:
        """Return the bytes from ``start`` up to but excluding ``stop``. Raises ``OSError``."""
        return [self.files.read(self.name(), start, stop - start)] if stop > start else []

    def truncate(self, size: int) -> None:
        """Keep only the first ``size`` bytes. Raises ``OSError``."""
        self.files.truncate(self.name(), size)
        self.size = size

    def flush(self) -> None:
        """Flush the batches to disk, so that they survive a machine crash. Raises ``OSError``."""
        self.files.flush(self.name())

    def load_indexes(self, interval: int) -> SegmentIndexes | None:
        """Return the indexes from the files, or None if one is missing or damaged. Raises ``OSError``."""
        try:
            offsets = _entries(self.path(".index"), OFFSET_LAYOUT)
            times = _entries(self.path(".timeindex"), TIME_LAYOUT)
            aborted = self._load_aborted()
        except (FileNotFoundError, LogFileError):
            return None
        base = self.base_offset
        found = SegmentIndexes(
            base,
            interval,
            offsets=array("q", (base + offset for offset in offsets[0])),
            positions=offsets[1],
            times=times[0],
            time_offsets=array("q", (base + offset for offset in times[1])),
            aborted=aborted,
        )
        found.take_latest_time()
        sound = all(map(_ascends, (found.offsets, found.positions, found.times)))
        return found if sound and (not found.positions or found.positions[-1] < self.size) else None

    def _load_aborted(self) -> list[AbortedTransaction]:
        path = self.path(".txnindex")
        return list(read_aborted_transactions(path)) if path.exists() else []

    def save_indexes(self, indexes: SegmentIndexes) -> None:
        """Write the indexes. Raises ``OSError``."""
        self.files.replace(self.name(".index"), indexes.offset_index())
        self.files.replace(self.name(".timeindex"), indexes.time_index())
        if indexes.aborted or self.path(".txnindex").exists():
            self.files.replace(self.name(".txnindex"), indexes.transaction_index())

    def rename(self, ending: str) -> None:
        """Rename all files to another additional suffix. Raises ``OSError``."""
        for suffix in SUFFIXES:
            self.files.rename(self.name(suffix), segment_name(self.base_offset, suffix + ending))
        self.ending = ending

    def unlink(self) -> None:
        """Remove all files. Raises ``OSError``."""
        for suffix in SUFFIXES:
            self.files.unlink(self.name(suffix))


def _entries(path: Path, layout: Struct) -> tuple[array[int], array[int]]:
    """Return the two columns of an index. Zeros after the last entry belong to an index that was not closed."""
    data = read_whole(path)
    used = layout.size * -(-len(data.rstrip(b"\0")) // layout.size)
    if len(data) % layout.size:
        raise LogFileError(file=str(path), position=len(data), skipped=0, reason="the last entry is not complete")
    values = array("q", chain.from_iterable(layout.iter_unpack(data[:used])))
    return values[::2], values[1::2]


def _ascends(values: array[int]) -> bool:
    return all(values[at] < values[at + 1] for at in range(len(values) - 1))


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
