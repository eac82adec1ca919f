"""The committed offsets in a partition of ``__consumer_offsets``, as a reducer.

The latest effective commit of each group, topic and partition counts, a record without a value is a deletion, and a
commit in a transaction counts if the transaction was committed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import pyarrow as pa
from attrs import define, field

from kafka_msgs.analysis.live_records import ROWS, UNDECIDED, LiveRecords, rows_since, rows_with
from kafka_msgs.analysis.offset_tables import EndOffsets, committed_offsets, pending_offsets
from kafka_msgs.analysis.record_classification import ClassifiedRecords

__all__ = ["COUNTS", "CommittedOffsets"]

COUNTS: Final = ("commits", "deletions", "in transactions", "records of groups", "markers", "committed", "aborted")
"""The counts of records: by role, and of the commits in completed transactions by outcome."""


@define
class CommittedOffsets:
    """The state of a range: its live records, and the counts of the records that were read."""

    records: LiveRecords = field(factory=LiveRecords)
    _counts: Counter[str] = field(factory=Counter)

    @classmethod
    def from_checkpoint(
        cls, rows: pa.Table, counts: Mapping[str, int], first_offset: int = 0, *, open_start: bool = False
    ) -> CommittedOffsets:
        """Return the state in a checkpoint, without records before ``first_offset``, which retention has deleted."""
        committed, aborted = counts.get("committed", 0), counts.get("aborted", 0)
        records = LiveRecords(rows_since(rows, first_offset).cast(ROWS), committed, aborted, open_start)
        return cls(records, Counter(counts))

    def add(self, batch: ClassifiedRecords) -> None:
        """Add the next records of the range."""
        deletions = batch.commits["value"].null_count
        waiting = rows_with(batch.commits, UNDECIDED).num_rows
        commits = batch.commits.num_rows - deletions - waiting
        read = commits, deletions, waiting, batch.others.num_rows, batch.markers.num_rows
        self._counts.update(dict(zip(COUNTS, read, strict=False)))
        self.records.add(batch.rows)

    def merge(self, later: CommittedOffsets) -> CommittedOffsets:
        """Return the state of this range and of the range after it."""
        return CommittedOffsets(self.records.merge(later.records), self._counts + later._counts)

    def checkpoint(self) -> tuple[pa.Table, dict[str, int]]:
        """Return the live rows and the counts."""
        return self.rows, self.counts

    @property
    def rows(self) -> pa.Table:
        """The live rows."""
        return self.records.finish()

    @property
    def counts(self) -> dict[str, int]:
        """The counts by name, as far as they are not 0."""
        self.records.finish()
        outcomes = {"committed": self.records.committed, "aborted": self.records.aborted}
        found = {**self._counts, **outcomes}
        return {name: found[name] for name in COUNTS if found.get(name)}

    def offsets(self, number: int, ends: EndOffsets) -> Iterator[pa.RecordBatch]:
        """Yield the committed offsets at the end of the partition with this number, with lags for known ends."""
        return committed_offsets(self.rows, number, ends)

    def pending(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the offsets that open transactions would commit."""
        return pending_offsets(self.rows, number)
