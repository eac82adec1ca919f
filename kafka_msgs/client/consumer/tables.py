"""Arrow tables of buffered records: columns are built directly from the bytes, without record objects.

This is the only consumer module that requires the extra ``arrow``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from kafka_msgs.client.consumer.assigned_partitions import AssignedPartition
from kafka_msgs.client.consumer.fetch_collector import iter_batches, skip_batch
from kafka_msgs.client.consumer.isolation import AnyBatch
from kafka_msgs.columns import read_record_table, record_schema
from kafka_msgs.records import ReadOptions, RecordBatch

__all__ = ["DEFAULT_COLUMNS", "TableBuilder"]

DEFAULT_COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
"""The default columns of a table, in addition to ``topic`` and ``partition``."""

_TOPIC: Final = pa.dictionary(pa.int32(), pa.string())


class TableBuilder:
    """A builder that collects the records of several partitions in one table.

    ``rows`` is the number of records. ``columns`` are column names from ``kafka_msgs.columns.record_schema``.
    """

    def __init__(self, columns: Sequence[str] | None) -> None:
        self._columns = tuple(columns or DEFAULT_COLUMNS)
        fields = [pa.field("topic", _TOPIC), pa.field("partition", pa.int32()), *record_schema(self._columns)]
        self._schema = pa.schema(fields)
        self._pieces: list[Any] = []
        self.rows = 0

    def take(self, partition: AssignedPartition, max_records: int, options: ReadOptions) -> None:
        """Add buffered batches of a partition up to about ``max_records`` rows. Batches are never split."""
        start = partition.position or 0
        older = 0
        batches = _until_full(partition, max_records, options)
        for first in batches:
            older = sum(offset < start for offset in first.offsets()) if _first_offset(first) < start else 0
            self._add(partition, read_record_table(_chained(first, batches), columns=self._columns), older)

    def _add(self, partition: AssignedPartition, tables: Iterable[Any], older: int) -> None:
        for table in tables:
            if older:
                table, older = table.slice(older), max(0, older - table.num_rows)
            if table.num_rows:
                self._pieces.append(self._placed(partition, table))
                self.rows += table.num_rows

    def _placed(self, partition: AssignedPartition, table: Any) -> Any:
        """Return the rows with topic and partition columns."""
        count = table.num_rows
        numbers = pa.repeat(pa.scalar(0, pa.int32()), count)
        topic = pa.DictionaryArray.from_arrays(numbers, pa.array([partition.name.topic]))
        number = pa.repeat(pa.scalar(partition.name.partition, pa.int32()), count)
        return pa.RecordBatch.from_arrays([topic, number, *table.columns], schema=self._schema)

    def table(self) -> Any:
        """Return the table, which is empty if no records were added."""
        return pa.Table.from_batches(self._pieces, schema=self._schema)


def _until_full(partition: AssignedPartition, max_records: int, options: ReadOptions) -> Iterator[AnyBatch]:
    """Yield batches with at least ``max_records`` records in total, and move the position past each yielded batch."""
    for batch, _ in iter_batches(partition, options):
        yield batch
        skip_batch(partition, batch)
        max_records -= batch.count if isinstance(batch, RecordBatch) else 1
        if max_records <= 0:
            return


def _chained(first: AnyBatch, rest: Iterator[AnyBatch]) -> Iterator[AnyBatch]:
    yield first
    yield from rest


def _first_offset(batch: AnyBatch) -> int:
    return batch.base_offset if isinstance(batch, RecordBatch) else 0
