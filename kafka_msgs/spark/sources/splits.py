"""Splitting of files into separately read parts, with the offsets and the transaction state that each part needs.

Defines the split positions, and the transactions for each part. Segments are chosen by the base offsets in their names,
and positions within them by their indexes, so that the driver reads little more than the indexes of the first and the
last segment of a partition. Files are split at the start of valid batches, so that the parts together yield the same
rows and damage as the complete file. ``log_rows`` reads parts, and ``read_committed`` finds the transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve, frozen

from kafka_msgs.errors import LogFileError
from kafka_msgs.filesystems.path_resolution import LogFile
from kafka_msgs.filesystems.segment_lookup import lookup_in
from kafka_msgs.log.file_scan import walk_headers, walk_log
from kafka_msgs.log.mapped_file import map_file
from kafka_msgs.log.segment import LARGEST, Segment, next_offsets
from kafka_msgs.log.transaction_index import TransactionIndex
from kafka_msgs.spark.sources.offset_options import OffsetBounds
from kafka_msgs.spark.sources.read_committed import TransactionTrail, follow, trail_of
from kafka_msgs.spark.sources.remote_storage import RemoteSegmentFile

__all__ = [
    "FilePart",
    "OffsetRange",
    "is_cut_tail",
    "last_files",
    "selected_parts",
    "splits_of",
    "truncated_tails",
    "with_transactions",
]

_PER_FILE: Final = 2**18
"""The cost of opening a file, as bytes that could be read in that time. It limits the number of files in a split."""
_NO_TRANSACTIONS: Final = TransactionIndex()


@frozen
class OffsetRange:
    """The offsets from ``start`` to before ``end``."""

    start: int = 0
    end: int = LARGEST

    def rows(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records within the range. Requires the column ``offset``."""
        offsets = records.column("offset")
        return records.filter(pc.and_(pc.greater_equal(offsets, self.start), pc.less(offsets, self.end)))


@frozen
class FilePart:
    """The batches of a file that start from byte ``start`` to before ``end``."""

    file: LogFile
    start: int
    end: int
    offsets: OffsetRange | None = None
    """The offsets to read; None for all."""
    transactions: TransactionIndex | TransactionTrail = _NO_TRANSACTIONS
    """The transactions whose records are hidden. If it is a trail, the task that reads the part follows it."""
    may_be_cut: bool = False
    """Whether an incomplete last batch is accepted, because a broker may still be writing it."""
    closed: bool = False
    """Whether another segment follows, so that zeros at the end are damage."""

    @property
    def size(self) -> int:
        """The size of the part in bytes."""
        return self.end - self.start


def selected_parts(files: Iterable[LogFile], bounds: OffsetBounds, split_bytes: int) -> Iterator[FilePart]:
    """Yield the parts to read from files sorted by partition and offset, each of about ``split_bytes``, the last up to
    50 % larger. Raises ``OSError``.
    """
    for _, group in groupby(files, key=_log_of):
        for part in _of_partition(list(group), bounds):
            yield from _cut(part, split_bytes) if part.size > split_bytes else (part,)


def _cut(part: FilePart, split_bytes: int) -> list[FilePart]:
    cuts = [part.start]
    # A broker may delete segments during planning. The reader of the part reports that.
    with suppress(FileNotFoundError):
        early = part.offsets.start if part.offsets else -1
        cuts = list(lookup_in(part.file).cuts(part.start, part.end, split_bytes, early))
    return [evolve(part, start=start, end=end) for start, end in pairwise([*cuts, part.end])]


def _log_of(file: LogFile) -> tuple[str, ...]:
    """Return a key shared by the segments of one partition. A file without a segment name has a unique key."""
    segment = isinstance(file, RemoteSegmentFile) or (file.base_offset is not None and file.path.endswith(".log"))
    return file.log if segment else (*file.log, file.path)


def _of_partition(files: Sequence[LogFile], bounds: OffsetBounds) -> Iterator[FilePart]:
    ends = next_offsets(file.first for file in files)
    ends = [file.end if isinstance(file, RemoteSegmentFile) else end for file, end in zip(files, ends, strict=True)]
    # A remote segment may end after the offsets that are read from it.
    lookups = [
        lookup_in(file, file.ends if isinstance(file, RemoteSegmentFile) else end)
        for file, end in zip(files, ends, strict=True)
    ]
    wanted = OffsetRange(*(each.offset_in(files[0], lookups) for each in (bounds.starting, bounds.ending)))
    for file, end, lookup in zip(files, ends, lookups, strict=True):
        if max(file.first, wanted.start) < min(end, wanted.end):
            yield _part(file, end, lookup, wanted)


def _part(file: LogFile, end: int, lookup: Segment, wanted: OffsetRange) -> FilePart:
    begins, ends = file.first < wanted.start, wanted.end < end
    if isinstance(file, RemoteSegmentFile):
        wanted = OffsetRange(max(file.first, wanted.start), min(end, wanted.end))
        begins, ends = (file.base_offset or 0) < wanted.start, wanted.end < file.ends
    start, stop = 0, file.size
    # A broker may delete segments during planning. The reader of the part reports that.
    with suppress(FileNotFoundError):
        start = lookup.position_of(wanted.start) if begins else 0
        stop = lookup.position_after(wanted.end) if ends else file.size
    return FilePart(file, start, stop, wanted if begins or ends else None, closed=end < LARGEST)


def splits_of(parts: Iterable[FilePart], split_bytes: int) -> list[tuple[FilePart, ...]]:
    """Return the parts in order, in groups of at most about ``split_bytes``.

    Parts that need the same trail stay together, so that it is followed only once.
    """
    splits: list[list[FilePart]] = []
    size, last = 0, None
    for part in parts:
        size += part.size + _PER_FILE
        same = isinstance(part.transactions, TransactionTrail) and part.transactions is last
        if not splits or (size > split_bytes and not same):
            splits.append([])
            size = part.size + _PER_FILE
        splits[-1].append(part)
        last = part.transactions
    return [tuple(each) for each in splits]


def last_files(files: Iterable[LogFile]) -> list[LogFile]:
    """Return the last file of each local partition, which a broker may be writing to."""
    groups = groupby(files, key=lambda file: file.log)
    return [file for _, group in groups if not (file := list(group)[-1]).root]


def truncated_tails(parts: Iterable[FilePart]) -> Iterator[LogFileError]:
    """Yield an error for each part at the end of its file whose last batch is incomplete."""
    for part in parts:
        if part.end < part.file.size:
            continue
        with suppress(FileNotFoundError):
            path, end = Path(part.file.path), part.start
            for each in walk_headers(map_file(path), end):
                end = each.position + each.size
            for error in walk_log(path, start=end):
                if isinstance(error, LogFileError) and is_cut_tail(error, part.file.size):
                    yield error


def is_cut_tail(error: LogFileError, size: int) -> bool:
    """Return whether damage is an incomplete last batch in a file of ``size`` bytes."""
    return error.__cause__ is None and error.position + error.skipped >= size


def with_transactions(parts: Iterable[FilePart], listed: Iterable[LogFile] = ()) -> Iterator[FilePart]:
    """Yield the parts with the transaction state of their partitions.

    ``listed`` are all existing files, including the segments of partitions in remote storage.
    """
    tiers: dict[tuple[str, ...], list[RemoteSegmentFile]] = {}
    for file in listed:
        if isinstance(file, RemoteSegmentFile):
            tiers.setdefault(file.log, []).append(file)
    for log, group in groupby(parts, key=lambda part: part.file.log):
        yield from _with_transactions(list(group), tiers.get(log, ()))


def _with_transactions(parts: Sequence[FilePart], tier: Sequence[RemoteSegmentFile]) -> Iterator[FilePart]:
    wanted = max(LARGEST if part.offsets is None else part.offsets.end for part in parts)
    segments, trail, here = trail_of([part.file for part in parts], wanted, tier)
    known = follow(trail) if here else TransactionIndex(dict(trail.aborted))
    ends = {(file.path, file.first): after.first for file, after in pairwise(segments)}
    for file, group in groupby(parts, key=lambda part: part.file):
        first, end = file.first, ends.get((file.path, file.first))
        decided = file.size if here else _decided(file, end, trail.open_from)
        near = known.between(first, end)
        yield from (evolve(part, transactions=near if part.end <= decided else trail) for part in group)


def _decided(file: LogFile, end: int | None, open_from: int) -> int:
    """Return the byte position in a segment before which all records have offsets below ``open_from``."""
    if end is not None and end <= open_from:
        return file.size
    return 0 if open_from <= file.first else lookup_in(file).position_of(open_from)
