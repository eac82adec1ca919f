"""How files are cut into parts that are read apart, and what must be known of whole partitions to read the parts.

Owns the cuts and the transactions of a partition. A cut is where a sound batch starts, so that parts of any size give
what the whole file gives, damage included. Reading a part is left to ``rows``; nothing here needs Spark.
"""

from __future__ import annotations

import mmap
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple, TypeVar

from attrs import evolve, field, frozen
from pyarrow import NativeFile

from kafka_msgs.errors import LogFileError, RecordError
from kafka_msgs.log.index import read_offset_index
from kafka_msgs.log.scan import AnyBatch, read_log
from kafka_msgs.records import ControlType, RecordBatch, read_batches
from kafka_msgs.records.batch import CRC_FROM, HEADER_SIZE
from kafka_msgs.records.common import CONTROL, MAGIC_AT, SIZE_AND_OFFSET, TRANSACTIONAL
from kafka_msgs.spark.sources.files import LogFile, local_copy, opened, siblings

__all__ = [
    "Part",
    "Transactions",
    "cut_tails",
    "headers",
    "is_cut_tail",
    "last_files",
    "parts_of",
    "splits_of",
    "with_transactions",
]

T = TypeVar("T")

_START: Final = Struct(">qiib")
_TRANSACTION: Final = Struct(">h20xq")
"""The flags of a batch, and the id of its producer."""
_PER_FILE: Final = 2**18
"""What opening a file costs, in bytes that could be read meanwhile: it keeps a split from having thousands of files."""


class Header(NamedTuple):
    """Where a batch is, by what its first bytes say."""

    position: int
    size: int
    base_offset: int
    magic: int


@frozen
class Transactions:
    """What a partition's markers say, for who reads only what is committed.

    ``aborted`` has for each producer the first and the last offset of its transactions that were aborted. Records from
    offset ``stable`` on are not stable: a transaction was open there when the log ended; None where none was.
    """

    aborted: dict[int, list[tuple[int, int]]] = field(factory=dict)
    stable: int | None = None

    def hides(self, batch: AnyBatch) -> bool:
        """Whether a reader of what is committed does not see a batch."""
        if self.stable is not None and batch.last_offset >= self.stable:
            return True
        if not isinstance(batch, RecordBatch) or not batch.is_transactional or batch.is_control:
            return False
        spans = self.aborted.get(batch.producer_id, [])
        at = bisect_right(spans, batch.base_offset, key=itemgetter(0)) - 1
        return at >= 0 and batch.base_offset <= spans[at][1]

    def between(self, first: int, end: int | None) -> Transactions:
        """Return what matters for records from offset ``first`` on and before ``end``."""
        near = {
            producer: [(start, last) for start, last in spans if last >= first and (end is None or start < end)]
            for producer, spans in self.aborted.items()
        }
        return evolve(self, aborted={producer: spans for producer, spans in near.items() if spans})


@frozen
class Part:
    """The batches of a file that start from byte ``start`` on and before ``end``."""

    file: LogFile
    start: int
    end: int
    transactions: Transactions | None = None
    """None for who reads what is not committed, too."""
    may_be_cut: bool = False
    """Whether a last batch that is not whole is no damage, since a broker may be writing it."""

    @property
    def size(self) -> int:
        """Bytes of the part."""
        return self.end - self.start


def headers(data: mmap.mmap | bytes, start: int = 0) -> Iterator[Header]:
    """Yield the batches that follow each other from ``start`` on, as far as each says where the next one is."""
    position, size = start, len(data)
    while size - position > MAGIC_AT:
        offset, stated, _, magic = _START.unpack_from(data, position)
        stated += SIZE_AND_OFFSET
        if not (0 <= magic <= 2 and MAGIC_AT < stated <= size - position):
            return
        yield Header(position, stated, offset, magic)
        position += stated


def parts_of(file: LogFile, split_bytes: int) -> list[Part]:
    """Return the parts of a file, each of about ``split_bytes``, the last of up to half as much again."""
    cuts = [0]
    if file.size > split_bytes * 3 // 2:
        with opened(file) as data:
            for position in _batches(file):
                far_enough = position - cuts[-1] >= split_bytes and file.size - position >= split_bytes // 2
                if far_enough and _is_sound(data, position):
                    cuts.append(position)
    return [Part(file, start, end) for start, end in zip(cuts, [*cuts[1:], file.size], strict=True)]


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
        last = _read(Path(file.path), _end_of_batches)
        for error in read_log(Path(file.path), start=last, on_error="yield"):
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
        whole = _transactions(files)
        ends = {file.path: after.base_offset for file, after in pairwise(files)}
        found += [
            evolve(part, transactions=whole.between(part.file.base_offset or 0, ends.get(part.file.path)))
            for part in own
        ]
    return found


def _batches(file: LogFile) -> Iterator[int]:
    """Yield places where batches should start: all on this machine, on another filesystem those of the index."""
    if not file.root:
        yield from _read(Path(file.path), lambda data: [header.position for header in headers(data)])
        return
    index = evolve(file, path=file.path.removesuffix(".log") + ".index")
    try:
        with opened(index) as data:
            index = evolve(index, size=data.size())
        with local_copy(index) as (path, _):
            yield from [entry.position for entry in read_offset_index(path, on_error="skip")]
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


def _end_of_batches(data: mmap.mmap) -> int:
    end = 0
    for header in headers(data):
        end = header.position + header.size
    return end


def _read(path: Path, work: Callable[[mmap.mmap], T]) -> T:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return work(data)


class _Mark(NamedTuple):
    """A batch of a transaction, or (where ``end`` says how) the marker that ends it."""

    producer_id: int
    base_offset: int
    end: ControlType | int | None


def _transactions(files: Iterable[LogFile]) -> Transactions:
    begun: dict[int, int] = {}
    aborted: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for file in files:
        for mark in _marks(file) if file.size else ():
            if mark.end is None:
                begun.setdefault(mark.producer_id, mark.base_offset)
                continue
            first = begun.pop(mark.producer_id, None)
            if mark.end is ControlType.ABORT and first is not None:
                aborted[mark.producer_id].append((first, mark.base_offset))
    return Transactions(dict(aborted), min(begun.values(), default=None))


def _marks(file: LogFile) -> list[_Mark]:
    """Return what a file has of transactions; hardly more than headers is read, unless the file is damaged."""
    with local_copy(file) as (path, _):
        marks = _read(path, lambda data: [mark for at in headers(data) if (mark := _mark_at(data, at))])
        behind = read_log(path, start=_read(path, _end_of_batches), on_error="skip")
        return [*marks, *(mark for batch in behind if (mark := _mark_of(batch)))]


def _mark_at(data: mmap.mmap, at: Header) -> _Mark | None:
    if at.magic != 2 or at.size < HEADER_SIZE:
        return None
    flags, producer_id = _TRANSACTION.unpack_from(data, at.position + CRC_FROM)
    if not flags & TRANSACTIONAL:
        return None
    if not flags & CONTROL:
        return _Mark(producer_id, at.base_offset, None)
    try:
        return _mark_of(next(read_batches(data[at.position : at.position + at.size])))
    except RecordError:
        # Whoever reads the records is told; without the marker its transaction stays open.
        return None


def _mark_of(batch: AnyBatch) -> _Mark | None:
    if not isinstance(batch, RecordBatch) or not batch.is_transactional:
        return None
    end = next((record.type for record in batch.control_records()), None)
    return _Mark(batch.producer_id, batch.base_offset, end)
