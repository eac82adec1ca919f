"""Splitting of files into separately read parts, with the transaction state that each part needs.

Defines the split positions, and the transactions for each part. Files are split at the start of valid batches, so that
the parts together yield the same rows and damage as the complete file. ``log_rows`` reads parts, and ``read_committed``
finds the transactions. This module does not need Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from kafka_msgs.binary_layouts import LENGTH_AND_OFFSET_STRUCT
from kafka_msgs.columns.python import stated_offset
from kafka_msgs.errors import LogFileError
from kafka_msgs.filesystems.path_resolution import LogFile, local_copy, open_file
from kafka_msgs.log.file_scan import walk_headers, walk_log
from kafka_msgs.log.mapped_file import map_file
from kafka_msgs.log.transaction_index import TransactionIndex
from kafka_msgs.spark.sources.offset_bounds import ByteRange
from kafka_msgs.spark.sources.offset_options import LARGEST
from kafka_msgs.spark.sources.offset_range import OffsetRange
from kafka_msgs.spark.sources.read_committed import TransactionTrail, trail_of
from kafka_msgs.spark.sources.remote_files import RemoteSegmentFile
from kafka_msgs.spark.sources.segment_lookup import SegmentLookup, sound_batch

__all__ = [
    "FilePart",
    "find_truncated_tails",
    "is_cut_tail",
    "last_files",
    "local_copy_of",
    "parts_of",
    "splits_of",
    "with_transactions",
]

_PER_FILE: Final = 2**18
"""The cost of opening a file, as bytes that could be read in that time. It limits the number of files in a split."""


@frozen
class FilePart:
    """The batches of a file that start from byte ``start`` to before ``end``."""

    file: LogFile
    start: int
    end: int
    transactions: TransactionIndex | TransactionTrail | None = None
    """None for ``read_uncommitted``. If it is a trail, the task that reads the part follows it."""
    may_be_cut: bool = False
    """Whether an incomplete last batch is accepted, because a broker may still be writing it."""
    offsets: OffsetRange | None = None
    """The offsets to read; None for all."""

    @property
    def size(self) -> int:
        """The size of the part in bytes."""
        return self.end - self.start


def parts_of(stretch: ByteRange, split_bytes: int) -> list[FilePart]:
    """Return the parts of a byte range, each of about ``split_bytes``, the last up to 50 % larger."""
    cuts = [stretch.start]
    if stretch.size > split_bytes * 3 // 2:
        # A broker may delete segments during planning. The reader of the part reports that.
        with suppress(FileNotFoundError):
            cuts = _cuts(stretch, split_bytes)
    ends = [*cuts[1:], stretch.end]
    return [FilePart(stretch.file, *places, offsets=stretch.offsets) for places in zip(cuts, ends, strict=True)]


def _cuts(stretch: ByteRange, split_bytes: int) -> list[int]:
    """Return the start positions of the parts. Parts that end before the requested offsets are omitted."""
    cuts, last = [stretch.start], stretch.start
    with open_file(stretch.file) as data:
        for position in SegmentLookup(stretch.file).places(stretch.start, stretch.end):
            far_enough = position - last >= split_bytes and stretch.end - position >= split_bytes // 2
            if far_enough and (batch := sound_batch(data, position)) is not None:
                early = stretch.offsets is not None and stated_offset(batch) <= stretch.offsets.start
                cuts = [position] if early else [*cuts, position]
                last = position
    return cuts


def splits_of(parts: Iterable[FilePart], split_bytes: int) -> list[tuple[FilePart, ...]]:
    """Return the parts in order, in groups of at most about ``split_bytes``.

    Parts that need the same trail stay together, so that it is followed only once.
    """
    splits: list[tuple[FilePart, ...]] = []
    group: list[FilePart] = []
    size = 0
    for part in parts:
        cost = part.size + _PER_FILE
        same = (
            bool(group)
            and isinstance(part.transactions, TransactionTrail)
            and part.transactions is group[-1].transactions
        )
        if group and size + cost > split_bytes and not same:
            splits.append(tuple(group))
            group, size = [], 0
        group.append(part)
        size += cost
    return [*splits, tuple(group)] if group else splits


@contextmanager
def local_copy_of(part: FilePart) -> Iterator[tuple[Path, int]]:
    """Provide a local file with the bytes of a part, and the position of its first byte in the part's file.

    It also contains the batch after the part, because damage at the end of the part is reported differently without it.
    """
    end = part.end
    if part.file.root and end < part.file.size:
        with open_file(part.file) as data:
            start = data.read_at(LENGTH_AND_OFFSET_STRUCT, end)
        end = min(
            end + LENGTH_AND_OFFSET_STRUCT + max(int.from_bytes(start[8:], "big", signed=True), 0), part.file.size
        )
    with local_copy(part.file, part.start, end) as copy:
        yield copy


def last_files(files: Iterable[LogFile]) -> list[LogFile]:
    """Return the last file of each local partition, which a broker may be writing to."""
    groups = groupby(files, key=lambda file: file.log)
    return [file for _, group in groups if not (file := list(group)[-1]).root]


def find_truncated_tails(parts: Iterable[FilePart]) -> Iterator[LogFileError]:
    """Yield an error for each part at the end of its file whose last batch is incomplete."""
    for part in parts:
        if part.end < part.file.size:
            continue
        with suppress(FileNotFoundError):
            path = Path(part.file.path)
            for error in walk_log(path, start=_end_of_batches(path, part.start)):
                if isinstance(error, LogFileError) and is_cut_tail(error, part.file.size):
                    yield error


def is_cut_tail(error: LogFileError, size: int) -> bool:
    """Return whether damage is an incomplete last batch in a file of ``size`` bytes."""
    return error.__cause__ is None and error.position + error.skipped >= size


def with_transactions(parts: Sequence[FilePart], listed: Iterable[LogFile] = ()) -> list[FilePart]:
    """Return the parts with the transaction state of their partitions.

    ``listed`` are all existing files, including the segments of partitions in remote storage.
    """
    tiers: dict[tuple[str, ...], list[RemoteSegmentFile]] = {}
    for file in listed:
        if isinstance(file, RemoteSegmentFile):
            tiers.setdefault(file.log, []).append(file)
    groups = groupby(parts, key=lambda part: part.file.log)
    return [part for log, group in groups for part in _of_partition(list(group), tiers.get(log, ()))]


def _of_partition(parts: Sequence[FilePart], tier: Sequence[RemoteSegmentFile]) -> Iterator[FilePart]:
    wanted = LARGEST if any(part.offsets is None for part in parts) else max(map(_wanted_end, parts))
    segments, trail, here = trail_of([part.file for part in parts], wanted, tier)
    known = trail.followed() if here else trail.decided()
    ends = {(file.path, file.first): after.first for file, after in pairwise(segments)}
    for file, group in groupby(parts, key=lambda part: part.file):
        first, end = file.first, ends.get((file.path, file.first))
        decided = file.size if here else _decided(file, end, trail.open_from)
        near = known.between(first, end)
        yield from (evolve(part, transactions=near if part.end <= decided else trail) for part in group)


def _wanted_end(part: FilePart) -> int:
    return LARGEST if part.offsets is None else part.offsets.end


def _decided(file: LogFile, end: int | None, open_from: int) -> int:
    """Return the byte position in a segment before which all records have offsets below ``open_from``."""
    if end is not None and end <= open_from:
        return file.size
    return 0 if open_from <= file.first else SegmentLookup(file).position_before(open_from)


def _end_of_batches(path: Path, start: int) -> int:
    end = start
    for each in walk_headers(map_file(path), start):
        end = each.position + each.size
    return end
