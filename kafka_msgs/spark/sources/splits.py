"""How files are cut into parts that are read apart, and what must be known of whole partitions to read the parts.

Owns the cuts, and which transactions a part needs to know. A cut is where a sound batch starts, so that parts of any
size give what the whole file gives, damage included. Reading a part is left to ``log_rows``, what the transactions are
to ``read_committed``; nothing here needs Spark.
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
"""What opening a file costs, in bytes that could be read meanwhile: it keeps a split from having thousands of files."""


@frozen
class FilePart:
    """The batches of a file that start from byte ``start`` on and before ``end``."""

    file: LogFile
    start: int
    end: int
    transactions: TransactionIndex | TransactionTrail | None = None
    """None for who reads what is not committed, too. What only a trail tells is found where the part is read."""
    may_be_cut: bool = False
    """Whether a last batch that is not whole is not damage, because a broker may still be writing it."""
    offsets: OffsetRange | None = None
    """Which records are read; None for all."""

    @property
    def size(self) -> int:
        """Bytes of the part."""
        return self.end - self.start


def parts_of(stretch: ByteRange, split_bytes: int) -> list[FilePart]:
    """Return the parts of a stretch, each of about ``split_bytes``, the last of up to half as much again."""
    cuts = [stretch.start]
    if stretch.size > split_bytes * 3 // 2:
        # A broker deletes segments while reads are planned: the reader of the part reports that.
        with suppress(FileNotFoundError):
            cuts = _cuts(stretch, split_bytes)
    ends = [*cuts[1:], stretch.end]
    return [FilePart(stretch.file, *places, offsets=stretch.offsets) for places in zip(cuts, ends, strict=True)]


def _cuts(stretch: ByteRange, split_bytes: int) -> list[int]:
    """Return where the parts start. A part that ends before the offsets that are wanted is none."""
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
    """Return the parts in groups of at most about ``split_bytes``, in their order.

    Parts that need the same trail stay together, so that it is followed once.
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
    """Give a local file with the bytes of a part, and the place that its first byte has in the part's file.

    The batch after the part is in it, too: without that one, damage at the end of the part would look like another.
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
    """Return the last file of each partition on this machine: the one that a broker may be writing to."""
    groups = groupby(files, key=lambda file: file.log)
    return [file for _, group in groups if not (file := list(group)[-1]).root]


def find_truncated_tails(parts: Iterable[FilePart]) -> Iterator[LogFileError]:
    """Yield what is wrong with the end of each part that ends its file: a batch that is not whole."""
    for part in parts:
        if part.end < part.file.size:
            continue
        with suppress(FileNotFoundError):
            path = Path(part.file.path)
            for error in walk_log(path, start=_end_of_batches(path, part.start)):
                if isinstance(error, LogFileError) and is_cut_tail(error, part.file.size):
                    yield error


def is_cut_tail(error: LogFileError, size: int) -> bool:
    """Whether damage is a last batch that is not whole, in a file of ``size`` bytes."""
    return error.__cause__ is None and error.position + error.skipped >= size


def with_transactions(parts: Sequence[FilePart], listed: Iterable[LogFile] = ()) -> list[FilePart]:
    """Return the parts with what they need to know of the transactions of their partitions.

    ``listed`` are all files there are; the segments of a partition in remote storage are among them.
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
    """Return the byte of a segment before which all records have offsets below ``open_from``."""
    if end is not None and end <= open_from:
        return file.size
    return 0 if open_from <= file.first else SegmentLookup(file).position_before(open_from)


def _end_of_batches(path: Path, start: int) -> int:
    end = start
    for each in walk_headers(map_file(path), start):
        end = each.position + each.size
    return end
