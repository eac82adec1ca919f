"""The transactions of a partition, which determine the batches for a consumer with ``isolation.level=read_committed``.

This module finds the aborted transactions of a partition and its last stable offset. They follow from the batches and
control batches of all its segments, of which it reads little more than the headers. Kafka computes the same from its
indexes of aborted transactions and its producer state (``ProducerStateManager`` and ``TransactionIndex`` in
``org.apache.kafka.storage.internals.log``; KIP-98).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from attrs import evolve, field, frozen

from kafka_msgs.binary_layouts import CONTROL, HEADER_SIZE, TRANSACTIONAL, header_struct
from kafka_msgs.errors import RecordError
from kafka_msgs.log.faults import skip_faults
from kafka_msgs.log.file_scan import AnyBatch, BatchStart, walk_headers, walk_log
from kafka_msgs.log.mapped_file import Mapped, map_file
from kafka_msgs.records import ControlType, RecordBatch, read_batches

__all__ = ["IsolationLevel", "TransactionIndex", "TransactionMark", "find_transactions", "replay_marks", "walk_marks"]

IsolationLevel: TypeAlias = Literal["read_uncommitted", "read_committed"]
"""The values of ``isolation.level`` of Kafka's consumer."""

_FLAGS_AND_PRODUCER: Final = header_struct("attributes", "producer_id")


@frozen
class TransactionIndex:
    """The transactions of a partition.

    ``aborted`` maps producer ids to the first and last offset of each aborted transaction, in order.
    ``last_stable_offset`` is the first offset of the earliest transaction that is still open at the end of the log, or
    None without an open transaction. ``end`` is the offset up to which the transactions are known, None for all:
    a broker may add batches of other transactions before the log is read.
    """

    aborted: dict[int, list[tuple[int, int]]] = field(factory=dict)
    last_stable_offset: int | None = None
    end: int | None = field(default=None, eq=False, repr=False)

    @property
    def hidden_from(self) -> int | None:
        """The offset from which all batches are hidden, or None."""
        return min((each for each in (self.last_stable_offset, self.end) if each is not None), default=None)

    def is_hidden(self, batch: AnyBatch) -> bool:
        """Return whether ``batch`` is hidden from a consumer that reads only committed records."""
        if (hidden_from := self.hidden_from) is not None and batch.last_offset >= hidden_from:
            return True
        if not isinstance(batch, RecordBatch) or not batch.is_transactional or batch.is_control:
            return False
        spans = self.aborted.get(batch.producer_id, [])
        at = bisect_right(spans, batch.base_offset, key=itemgetter(0)) - 1
        return at >= 0 and batch.base_offset <= spans[at][1]

    def between(self, first: int, end: int | None) -> TransactionIndex:
        """Return the part for the offsets from ``first`` up to but excluding ``end``. None means the end of the log."""
        near = {
            producer: [(start, last) for start, last in spans if last >= first and (end is None or start < end)]
            for producer, spans in self.aborted.items()
        }
        return evolve(self, aborted={producer: spans for producer, spans in near.items() if spans})


def find_transactions(paths: Iterable[Path]) -> TransactionIndex:
    """Return the transactions in the segments of one partition, given as files in offset order.

    A transaction whose control record is damaged counts as open. Raises ``OSError``.
    """
    return replay_marks(mark for path in paths for mark in walk_marks(path))


def replay_marks(
    marks: Iterable[TransactionMark],
    begun: Mapping[int, int] = MappingProxyType({}),
    aborted: Mapping[int, list[tuple[int, int]]] = MappingProxyType({}),
) -> TransactionIndex:
    """Return the transactions that result from marks in offset order.

    ``begun`` and ``aborted`` describe the transactions before the first mark: the first offset of each open transaction
    by producer id, and the aborted transactions as in ``TransactionIndex``.
    """
    open_ = dict(begun)
    ended = {producer: list(spans) for producer, spans in aborted.items()}
    for mark in marks:
        if mark.end is None:
            open_.setdefault(mark.producer_id, mark.base_offset)
            continue
        first = open_.pop(mark.producer_id, None)
        if mark.end is ControlType.ABORT and first is not None:
            ended.setdefault(mark.producer_id, []).append((first, mark.base_offset))
    return TransactionIndex(ended, min(open_.values(), default=None))


class TransactionMark(NamedTuple):
    """A batch of a transaction. If ``end`` is not None, it is the control batch that ends the transaction."""

    producer_id: int
    base_offset: int
    end: ControlType | int | None


def walk_marks(path: Path, start: int = 0) -> Iterator[TransactionMark]:
    """Yield the transaction marks in a file from byte ``start`` on, the start of a batch. Raises ``OSError``.

    Complete batches are read only after damage.
    """
    data, end = map_file(path), start
    for each in walk_headers(data, start):
        end = each.position + each.size
        if mark := _mark_at(data, each):
            yield mark
    behind: Iterator[AnyBatch] = skip_faults(walk_log(path, start=end))
    for batch in behind:
        if mark := _mark_of(batch):
            yield mark


def _mark_at(data: Mapped, at: BatchStart) -> TransactionMark | None:
    if at.magic != 2 or at.size < HEADER_SIZE:
        return None
    flags, producer_id = _FLAGS_AND_PRODUCER.unpack_from(data, at.position)
    if not flags & TRANSACTIONAL:
        return None
    if not flags & CONTROL:
        return TransactionMark(producer_id, at.base_offset, None)
    try:
        return _mark_of(next(read_batches(data[at.position : at.position + at.size])))
    except RecordError:
        return None


def _mark_of(batch: AnyBatch) -> TransactionMark | None:
    """Return the mark of a batch, or None for a damaged control batch. Reading its records reports the damage.

    An empty control batch has none: compaction has removed its marker, after all records of the transaction.
    """
    if not isinstance(batch, RecordBatch) or not batch.is_transactional:
        return None
    try:
        end = next((record.type for record in batch.control_records()), None)
    except RecordError:
        return None
    return None if batch.is_control and end is None else TransactionMark(batch.producer_id, batch.base_offset, end)
