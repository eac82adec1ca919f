"""The transaction state of a partition for readers of committed records, mainly from files of its broker.

A broker stores the transactions that were aborted in a segment (``.txnindex``), and the transactions that are open when
it starts a segment or shuts down (``.snapshot``). These files are trusted if they are valid and the segment also has an
``.index``, as a broker's segments do. After the newest snapshot, only batch headers contain the transactions. For local
files, the driver reads these headers. For remote files, it would have to fetch them, so the tasks that read the batches
do it instead.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import attrgetter
from typing import Final

from attrs import evolve, frozen

from kafka_msgs.binary_layouts import HEADER_SIZE, LENGTH_AND_OFFSET_STRUCT, header_struct
from kafka_msgs.errors import LogFileError
from kafka_msgs.filesystems.path_resolution import (
    FileSlice,
    LogFile,
    is_there,
    list_siblings,
    local_copy,
    open_file,
    read_small,
    stat_files,
)
from kafka_msgs.filesystems.segment_lookup import lookup_in
from kafka_msgs.log.indexes import ABORTED_LAYOUT, AbortedTransaction, read_aborted_transactions
from kafka_msgs.log.segment import LARGEST, next_offsets
from kafka_msgs.log.small_files import read_producer_snapshot
from kafka_msgs.log.transaction_index import TransactionIndex, TransactionMark, replay_marks, walk_marks
from kafka_msgs.spark.sources.remote_storage import RemoteSegmentFile

__all__ = ["TransactionTrail", "follow", "trail_of"]

_SNAPSHOT: Final = re.compile(r"(?P<offset>[0-9]{20})\.snapshot")
_FACTS: Final = header_struct("base_offset", "size", "magic", "last_offset_delta")
_FIRST: Final = attrgetter("first")
_MOST_HEADERS: Final = 64
"""The maximum number of headers between an index entry and the offset of a snapshot."""
_SHARE: Final = 100
"""The driver fetches at most one byte out of this many."""


@frozen(eq=False)
class TransactionTrail:
    """The transactions of a partition at ``offset``, and the location of the batches after it.

    ``aborted`` is the attribute of ``TransactionIndex``. ``begun`` maps producer ids to the first offset of each open
    transaction. The batches from ``offset`` on are in ``files``, starting at byte ``start`` of the first file.
    """

    aborted: Mapping[int, list[tuple[int, int]]]
    begun: Mapping[int, int]
    offset: int
    files: tuple[LogFile, ...]
    start: int

    @property
    def open_from(self) -> int:
        """The offset from which batches after the snapshot determine the committed records."""
        return min((self.offset, *self.begun.values()))


@lru_cache(maxsize=1)
def follow(trail: TransactionTrail) -> TransactionIndex:
    """Return the transactions up to the end of the log. Files deleted in the meantime are skipped.

    A trail is followed once for all parts of a split, which are read sequentially. Raises ``OSError``.
    """
    left = [file for file in trail.files if file.size]
    while True:
        left = [file for file in left if is_there(file)]
        try:
            # A broker may complete a batch at the end before it is read.
            last = next((file for file in left[-1:] if file.is_segment and not file.root), None)
            end = None if last is None else lookup_in(last).end_offset()
            return evolve(replay_marks(_marks(trail, left), trail.begun, trail.aborted), end=end)
        except FileNotFoundError:
            if all(map(is_there, left)):
                raise


def _marks(trail: TransactionTrail, files: Iterable[LogFile]) -> Iterator[TransactionMark]:
    for file in files:
        # A remote segment is read up to its end; marks before its first offset are read from the file before it.
        first, end = (file.first, file.end) if isinstance(file, RemoteSegmentFile) else (0, LARGEST)
        first, start = (0, trail.start) if file is trail.files[0] else (first, 0)
        with local_copy(file, start, file.size) as (path, shift):
            marks = walk_marks(path, start - shift)
            yield from (mark for mark in marks if first <= mark.base_offset < end)


def trail_of(
    files: Sequence[LogFile], end: int, tier: Sequence[RemoteSegmentFile] = ()
) -> tuple[list[LogFile], TransactionTrail, bool]:
    """Return all segments of the partition of ``files``, its trail, and whether the driver should follow the trail.

    ``files`` are the sorted files to read from one directory, up to the offset ``end``. A file without a segment name
    is handled alone. For a partition in remote storage, ``tier`` contains all segments. Raises ``OSError``.
    """
    directory = _TierDirectory(tier) if tier else _Directory(files[0])
    if files[0].path not in (each.path for each in directory.segments):
        segments = list(dict.fromkeys(files))
        trail = TransactionTrail({}, {}, 0, tuple(segments), 0)
    else:
        segments = directory.segments
        trail = directory.trail(files[0], end)
    here = not any(file.root for file in (*files[:1], *trail.files))
    unread = sum(file.size for file in trail.files) - trail.start
    return segments, trail, here or unread * _SHARE <= sum(each.size for each in segments)


class _Directory:
    """The directory of a partition, from a single listing."""

    def __init__(self, file: LogFile) -> None:
        self._beside = list_siblings(file)
        self.segments = sorted((each for each in self._beside.values() if each.is_segment), key=_FIRST)

    def trail(self, first: LogFile, end: int) -> TransactionTrail:
        """Return the trail for a reader of the offsets below ``end``, from the segment ``first`` on."""
        listed: list[AbortedTransaction] = []
        for file, end_of_file in zip(self.segments, next_offsets(map(_FIRST, self.segments)), strict=True):
            if file.first < first.first:
                continue
            found = self._aborted_in(file, end_of_file)
            if found is None:
                return self._from_snapshot(listed, file.first)
            listed += found
            if found and found[-1].last_stable_offset >= end:
                # When that transaction ended, no open transaction had begun before the end.
                return TransactionTrail(_by_producer(listed), {}, LARGEST, (), 0)
        return self._from_snapshot(listed, LARGEST)

    def _from_snapshot(self, listed: Sequence[AbortedTransaction], limit: int) -> TransactionTrail:
        """Return the trail from the newest snapshot at or below ``limit``, or from the start without a snapshot."""
        snapshots = self._snapshots()
        for offset in sorted((each for each in snapshots if each <= limit), reverse=True):
            number = bisect_right(self.segments, offset, key=_FIRST) - 1
            start = _place_within(self.segments[number], offset) if number >= 0 else None
            begun = None if start is None else self._begun(snapshots[offset], offset)
            if start is not None and begun is not None:
                aborted = _by_producer(each for each in listed if each.last_offset < offset)
                return TransactionTrail(aborted, begun, offset, tuple(self.segments[number:]), start)
        return TransactionTrail({}, {}, 0, tuple(self.segments), 0)

    def _aborted_in(self, file: LogFile, end: int) -> list[AbortedTransaction] | None:
        """Return the aborted transactions that ended in a segment, or None without a valid index."""
        stem = file.path.rpartition("/")[2].removesuffix(".log")
        if f"{stem}.index" not in self._beside:
            return None
        found = _listed(self._beside.get(f"{stem}.txnindex"))
        return found if found is None or all(file.first <= each.last_offset < end for each in found) else None

    def _begun(self, snapshot: LogFile, offset: int) -> dict[int, int] | None:
        """Return the first offsets of open transactions at a snapshot by producer id, or None if it is damaged."""
        try:
            found = read_small(snapshot, read_producer_snapshot)
        except LogFileError:
            return None
        if found is None:
            return None
        open_ = (each for each in found.producer_entries if each.current_txn_first_offset >= 0)
        begun = {each.producer_id: each.current_txn_first_offset for each in open_}
        return begun if all(first < offset for first in begun.values()) else None

    def _snapshots(self) -> dict[int, LogFile]:
        """Return the snapshots by offset."""
        named = ((_SNAPSHOT.fullmatch(name), file) for name, file in self._beside.items())
        return {int(match["offset"]): file for match, file in named if match}


class _TierDirectory(_Directory):
    """The segments of a tiered partition, from a single listing.

    As in a broker, the transaction index of a segment lists the transactions that were aborted in it. A remote snapshot
    describes the end of its segment.
    """

    def __init__(self, files: Sequence[RemoteSegmentFile]) -> None:
        self.segments = list(files)
        self._files = files
        self._beside = next((list_siblings(file) for file in files if file.layout is None), {})

    def _aborted_in(self, file: LogFile, end: int) -> list[AbortedTransaction] | None:
        if isinstance(file, RemoteSegmentFile) and file.no_aborted:
            return []
        sides = [file.sibling_with_suffix(ending) for ending in (".index", ".txnindex")]
        unknown = [side for side in sides if side is not None and not isinstance(side, FileSlice)]
        sizes = dict(zip(unknown, stat_files(unknown), strict=True))
        offsets, index = (sizes.get(side, side) if side is not None else None for side in sides)
        found = None if offsets is None else _listed(index)
        return found and [each for each in found if file.first <= each.last_offset < end]

    def _snapshots(self) -> dict[int, LogFile]:
        remote = (file for file in self._files if file.layout is not None and file.end == file.ends < LARGEST)
        return super()._snapshots() | {file.end: file for file in remote}

    def _begun(self, snapshot: LogFile, offset: int) -> dict[int, int] | None:
        file = snapshot.sibling_with_suffix(".snapshot") if isinstance(snapshot, RemoteSegmentFile) else snapshot
        return None if file is None else super()._begun(file, offset)


def _listed(index: LogFile | None) -> list[AbortedTransaction] | None:
    """Return the entries of a transaction index, none without an index; None if it is damaged."""
    if index is None or not index.size:
        return []
    try:
        with local_copy(index) as (path, _):
            found = list(read_aborted_transactions(path))
    except (LogFileError, FileNotFoundError):
        return None
    return found if len(found) * ABORTED_LAYOUT.size == index.size else None


def _place_within(file: LogFile, offset: int) -> int | None:
    """Return the start of the batches from an offset on in a segment, or None if it cannot be found."""
    if file.base_offset == offset:
        return 0
    with suppress(FileNotFoundError):
        at = lookup_in(file).position_of(offset)
        with open_file(file) as data:
            for _ in range(_MOST_HEADERS):
                header = data.read_at(HEADER_SIZE, at)
                if len(header) < HEADER_SIZE:
                    return None
                base, size, magic, delta = _FACTS.unpack(header)
                if magic != 2 or size + LENGTH_AND_OFFSET_STRUCT < HEADER_SIZE or base >= offset:
                    return at if magic == 2 and base >= offset else None
                at += size + LENGTH_AND_OFFSET_STRUCT
                if base + delta + 1 >= offset:
                    return at if base + delta + 1 == offset and at <= file.size else None
    return None


def _by_producer(entries: Iterable[AbortedTransaction]) -> dict[int, list[tuple[int, int]]]:
    found: dict[int, list[tuple[int, int]]] = {}
    for each in entries:
        found.setdefault(each.producer_id, []).append((each.first_offset, each.last_offset))
    return {producer: sorted(spans) for producer, spans in found.items()}
