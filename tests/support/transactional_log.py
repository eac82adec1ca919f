"""A partition with transactions as a broker writes it: segments, indexes and producer snapshots."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from attrs import define, field

from kafka_msgs import EndTxnMarker
from kafka_msgs.log.indexes import AbortedTransaction
from kafka_msgs.log.writers.segment_writer import SegmentWriter
from kafka_msgs.log.writers.small_files import format_producer_snapshot
from kafka_msgs.messages.producer_snapshot import ProducerEntry, ProducerSnapshot
from kafka_msgs.records import BatchBuilder, BatchHeader, ControlType

__all__ = ["START_MS", "History"]

START_MS: Final = 1_767_225_600_000
"""The time of offset 0; each offset is a millisecond later."""
_PRODUCERS: Final = range(40, 44)


@define
class History:
    """Random producer activity, and the resulting committed records.

    ``open`` maps producers to the offsets of the records of their open transactions.
    """

    home: Path
    dice: random.Random
    size: int = 10
    """Bytes per value."""
    next_offset: int = 0
    open: dict[int, list[int]] = field(factory=dict)
    committed: list[int] = field(factory=list)
    marked: set[int] = field(factory=set)
    """Producers that have ended a transaction."""

    def write(self, segments: int, steps: int) -> None:
        """Write segments, each with this many batches."""
        for number in range(segments):
            if number:
                self.snapshot()
            with SegmentWriter(self.home, self.next_offset, interval=self.size * 20) as segment:
                for _ in range(steps):
                    self.step(segment)

    def snapshot(self) -> None:
        """Write the snapshot that a broker writes when it begins a segment or stops."""
        entries = [
            ProducerEntry(
                producer_id=producer,
                coordinator_epoch=0 if producer in self.marked else -1,
                current_txn_first_offset=self.open.get(producer, [-1])[0],
            )
            for producer in sorted(self.marked | set(self.open))
        ]
        data = format_producer_snapshot(ProducerSnapshot(producer_entries=tuple(entries)))
        (self.home / f"{self.next_offset:020}.snapshot").write_bytes(data)

    def visible(self) -> list[int]:
        """Return the offsets of the records that a consumer of committed records receives."""
        stable = min((own[0] for own in self.open.values()), default=self.next_offset)
        return sorted(offset for offset in self.committed if offset < stable)

    def step(self, segment: SegmentWriter) -> None:
        """Write a batch of one producer, or the end of its transaction."""
        producer = self.dice.choice((None, *_PRODUCERS))
        if producer in self.open and self.dice.random() < 0.5:
            self._end(segment, producer, aborted=self.dice.random() < 0.5)
            return
        header = BatchHeader(
            base_offset=self.next_offset,
            producer_id=-1 if producer is None else producer,
            producer_epoch=-1 if producer is None else 0,
            base_sequence=-1 if producer is None else self.next_offset,
            transactional=producer is not None,
        )
        builder = BatchBuilder(header)
        count = self.dice.randrange(1, 4)
        for offset in range(self.next_offset, self.next_offset + count):
            builder.append(None, self.dice.randbytes(self.size), timestamp=START_MS + offset)
        segment.append(builder.build())
        own = self.committed if producer is None else self.open.setdefault(producer, [])
        own += range(self.next_offset, self.next_offset + count)
        self.next_offset += count

    def _end(self, segment: SegmentWriter, producer: int, *, aborted: bool) -> None:
        own, marker = self.open.pop(producer), self.next_offset
        self.marked.add(producer)
        builder = BatchBuilder(
            BatchHeader(base_offset=marker, producer_id=producer, producer_epoch=0, transactional=True, control=True)
        )
        kind = ControlType.ABORT if aborted else ControlType.COMMIT
        builder.append_control(kind, EndTxnMarker(), timestamp=START_MS + marker)
        segment.append(builder.build())
        self.next_offset += 1
        if not aborted:
            self.committed += own
            return
        stable = min((other[0] for other in self.open.values()), default=self.next_offset)
        segment.add_aborted(
            AbortedTransaction(
                version=0, producer_id=producer, first_offset=own[0], last_offset=marker, last_stable_offset=stable
            )
        )
