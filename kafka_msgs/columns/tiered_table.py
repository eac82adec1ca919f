"""The records of tiered partitions as one Arrow table, streamed without Spark.

Converts ``tiered_partitions`` segments to row batches, with the same columns and rows as ``log_table``. Needs the extra
``arrow``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_msgs.columns import walk_record_table
from kafka_msgs.columns.log_table import BatchSelection, LogTable, damage_row, faults_in_file
from kafka_msgs.log.tiered_partitions import TieredPartition, TieredSegment
from kafka_msgs.log.transaction_index import IsolationLevel, TransactionIndex
from kafka_msgs.records import DEFAULT_READ_OPTIONS, ReadOptions

__all__ = ["TieredTable"]


class TieredTable(LogTable):
    """The records of the partitions from ``tiered_partitions``, one row per record, like ``LogTable``.

    Raises the errors of ``LogTable``.
    """

    def __init__(
        self,
        partitions: Sequence[TieredPartition],
        *,
        columns: Sequence[str] | None = None,
        control: bool = False,
        isolation: IsolationLevel = "read_uncommitted",
        options: ReadOptions = DEFAULT_READ_OPTIONS,
    ) -> None:
        super().__init__(columns=columns, control=control, isolation=isolation, options=options)
        self._logs = tuple(partitions)

    @property
    def files(self) -> list[Path]:
        """The remote and local segments."""
        return [segment.path for partition in self._logs for segment in partition.segments]

    def batches(self) -> Iterator[Any]:
        """Yield the rows as Arrow record batches."""
        for partition in self._logs:
            transactions = partition.transactions() if self._committed else TransactionIndex()
            known = {"topic": partition.topic, "partition": partition.number}
            for segment in partition.segments:
                yield from self._rows_of(segment, transactions, {**known, "file": str(segment.path)})

    def _rows_of(
        self, segment: TieredSegment, transactions: TransactionIndex, known: Mapping[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        batches = filter(BatchSelection(transactions, self._control).has, segment.walk_batches(self._options))
        records = walk_record_table(batches, self._options, columns=sorted({*self._sources, "offset"}))
        for item in faults_in_file(records, segment.path):
            is_rows = isinstance(item, pa.RecordBatch)
            yield self._rows(known, _between(item, segment)) if is_rows else damage_row(self.schema, known, item)


def _between(records: pa.RecordBatch, segment: TieredSegment) -> pa.RecordBatch:
    """Return the records at the offsets to read from the segment."""
    offsets = records.column("offset")
    return records.filter(pc.and_(pc.greater_equal(offsets, segment.start), pc.less(offsets, segment.end)))
