"""How files are cut into parts that are read apart, and what must be known of whole partitions to read the parts.

Owns the cuts, and which transactions a part needs to know. A cut is where a sound batch starts, so that parts of any
size give what the whole file gives, damage included. Reading a part is left to ``rows``, what the transactions are to
``kafka_msgs.log.transactions``; nothing here needs Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

from attrs import evolve, frozen
from pyarrow import NativeFile

from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.layouts import MAGIC_AT, SIZE_AND_OFFSET
from kafka_msgs.log.faults import without_faults
from kafka_msgs.log.index import walk_offset_index
from kafka_msgs.log.mapping import mapped
from kafka_msgs.log.scan import walk_headers, walk_log
from kafka_msgs.log.transactions import Transactions, find_transactions
from kafka_msgs.records import read_batches
from kafka_msgs.spark.sources.files import LogFile, is_there, local_copy, opened, siblings

__all__ = [
    "Part",
    "cut_tails",
    "is_cut_tail",
    "last_files",
    "parts_of",
    "splits_of",
    "with_transactions",
]

_PER_FILE: Final = 2**18
"""What opening a file costs, in bytes that could be read meanwhile: it keeps a split from having thousands of files."""


@frozen
class Part:
    """The batches of a file that start from byte ``start`` on and before ``end``."""

    file: LogFile
    start: int
    end: int
    transactions: Transactions | None = None
    """None for who reads what is not committed, too."""
    may_be_cut: bool = False
    """Whether a last batch that is not whole is not damage, because a broker may still be writing it."""

    @property
    def size(self) -> int:
        """Bytes of the part."""
        return self.end - self.start


def parts_of(file: LogFile, split_bytes: int) -> list[Part]:
    """Return the parts of a file, each of about ``split_bytes``, the last of up to half as much again."""
    cuts = [0]
    if file.size > split_bytes * 3 // 2:
        # A broker deletes segments while reads are planned: the reader of the part reports that.
        with suppress(FileNotFoundError):
            cuts += _cuts(file, split_bytes)
    return [Part(file, start, end) for start, end in zip(cuts, [*cuts[1:], file.size], strict=True)]


def _cuts(file: LogFile, split_bytes: int) -> list[int]:
    cuts, last = [], 0
    with opened(file) as data:
        for position in _batches(file):
            far_enough = position - last >= split_bytes and file.size - position >= split_bytes // 2
            if far_enough and _is_sound(data, position):
                cuts.append(position)
                last = position
    return cuts


def splits_of(parts: Iterable[Part], split_bytes: int) -> list[tuple[Part, ...]]:
    """Return the parts in groups of at most about ``split_bytes``, in their order."""
    splits: list[tuple[Part, ...]] = []
    group: list[Part] = []
    size = 0
    for part in parts:
        cost = part.size + _PER_FILE
        if group and size + cost > split_bytes:
            splits.append(tuple(group))
            group, size = [], 0
        group.append(part)
        size += cost
    return [*splits, tuple(group)] if group else splits


def last_files(files: Iterable[LogFile]) -> list[LogFile]:
    """Return the last file of each partition on this machine: the one that a broker may be writing to."""
    groups = groupby(files, key=lambda file: (file.root, file.directory))
    return [file for _, group in groups if not (file := list(group)[-1]).root]


def cut_tails(files: Iterable[LogFile]) -> Iterator[LogFileError]:
    """Yield what is wrong with the end of each file: a batch that is not whole."""
    for file in files:
        with suppress(FileNotFoundError):
            last = _end_of_batches(Path(file.path))
            for error in walk_log(Path(file.path), start=last):
                if isinstance(error, LogFileError) and is_cut_tail(error, file.size):
                    yield error


def is_cut_tail(error: LogFileError, size: int) -> bool:
    """Whether damage is a last batch that is not whole, in a file of ``size`` bytes."""
    return error.__cause__ is None and error.position + error.skipped >= size


def with_transactions(parts: Sequence[Part]) -> list[Part]:
    """Return the parts with the transactions of their partitions, which the segments up to the last one tell."""
    found: list[Part] = []
    for _, group in groupby(parts, key=lambda part: (part.file.root, part.file.directory)):
        own = list(group)
        first = own[0].file
        files = siblings(first)
        files = files[files.index(first) :] if first in files else list(dict.fromkeys(part.file for part in own))
        whole = _transactions_in(files)
        ends = {file.path: after.base_offset for file, after in pairwise(files)}
        found += [
            evolve(part, transactions=whole.between(part.file.base_offset or 0, ends.get(part.file.path)))
            for part in own
        ]
    return found


def _batches(file: LogFile) -> Iterator[int]:
    """Yield places where batches should start: all on this machine, on another filesystem those of the index."""
    if not file.root:
        yield from (start.position for start in walk_headers(mapped(Path(file.path))))
        return
    index = evolve(file, path=file.path.removesuffix(".log") + ".index")
    try:
        with opened(index) as data:
            index = evolve(index, size=data.size())
        with local_copy(index) as (path, _):
            yield from [entry.position for entry in without_faults(walk_offset_index(path))]
    except OSError:
        return


def _is_sound(data: NativeFile, position: int) -> bool:
    start = data.read_at(SIZE_AND_OFFSET, position)
    size = int.from_bytes(start[8:], "big", signed=True) + SIZE_AND_OFFSET
    if not MAGIC_AT < size <= data.size() - position:
        return False
    try:
        return next(read_batches(data.read_at(size, position)), None) is not None
    except RecordError:
        return False


def _end_of_batches(path: Path) -> int:
    end = 0
    for start in walk_headers(mapped(path)):
        end = start.position + start.size
    return end


def _transactions_in(files: Iterable[LogFile]) -> Transactions:
    """Return the transactions of a partition; files of another filesystem are fetched, one at a time.

    Files that are deleted meanwhile are left out.
    """
    left = list(files)
    while True:
        left = [file for file in left if is_there(file)]
        try:
            return find_transactions(_copies(left))
        except FileNotFoundError:
            if all(map(is_there, left)):
                raise


def _copies(files: Iterable[LogFile]) -> Iterator[Path]:
    for file in files:
        with local_copy(file) as (path, _):
            yield path
