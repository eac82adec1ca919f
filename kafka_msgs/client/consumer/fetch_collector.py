"""Conversion of fetched bytes to the results of ``poll``: record lists or Arrow tables.

This module decodes only the records that the caller takes, applies the isolation level, and advances the position with
each batch. It raises an error when it reaches damaged bytes; the position then stays before them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from kafka_msgs.client.consumer.assigned_partitions import AssignedPartition, FetchedRecords
from kafka_msgs.client.consumer.isolation import AnyBatch, visible_batches
from kafka_msgs.records import ConsumerRecord, ReadOptions, RecordBatch, read_batches

__all__ = ["CompletedFetch", "collect_records", "iter_batches"]

_NO_EPOCH: Final = -1


class CompletedFetch:
    """The records of one partition in one response, in the process of being returned."""

    def __init__(self, fetched: FetchedRecords, options: ReadOptions) -> None:
        self._batches = visible_batches(read_batches(fetched.records, options), fetched.aborted)
        self._records: Iterator[ConsumerRecord] = iter(())
        self._batch: AnyBatch | None = None

    def next_batch(self, partition: AssignedPartition) -> AnyBatch | None:
        """Return the next visible batch that ends at or after the position, or None after the last batch."""
        for batch, visible in self._batches:
            if batch.last_offset < (partition.position or 0):
                continue
            if visible:
                return batch
            skip_batch(partition, batch)
        return None

    def take(self, partition: AssignedPartition, max_records: int) -> list[ConsumerRecord] | None:
        """Return up to ``max_records`` records and move the position past them, or return None after the last batch."""
        if self._batch is None:
            self._batch = self.next_batch(partition)
            if self._batch is None:
                return None
            records = self._batch.consumer_records(*partition.name)
            if records and records[0].offset < (partition.position or 0):
                records = [record for record in records if record.offset >= (partition.position or 0)]
            if len(records) <= max_records:
                return self._end(partition, records)
            self._records = iter(records)
        taken = list(islice(self._records, max_records))
        if len(taken) < max_records:
            return self._end(partition, taken)
        partition.position = taken[-1].offset + 1
        return taken

    def next_record(self, partition: AssignedPartition) -> ConsumerRecord | None:
        """Return the next record of the current batch and move the position past it, or None after the last record."""
        record = next(self._records, None)
        if record is not None:
            partition.position = record.offset + 1
        return record

    def _end(self, partition: AssignedPartition, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Finish a batch after all its records are returned."""
        assert self._batch is not None
        skip_batch(partition, self._batch)
        self._batch = None
        return records


def skip_batch(partition: AssignedPartition, batch: AnyBatch) -> None:
    """Move the position past a batch."""
    partition.position = max(partition.position or 0, batch.last_offset + 1)
    partition.position_epoch = batch.partition_leader_epoch if isinstance(batch, RecordBatch) else _NO_EPOCH


def collect_records(
    partition: AssignedPartition, max_records: int, options: ReadOptions, into: list[ConsumerRecord]
) -> None:
    """Add up to ``max_records`` buffered records of a partition to a list."""
    while max_records > 0 and (reading := _reading(partition, options)) is not None:
        found = reading.take(partition, max_records)
        if found is None:
            partition.decoding = None
        else:
            into += found
            max_records -= len(found)


def iter_batches(partition: AssignedPartition, options: ReadOptions) -> Iterator[tuple[AnyBatch, int]]:
    """Yield each buffered batch of a partition with the current position; the first records may be before it.

    After taking a batch, the caller moves the position past it with ``skip_batch``.
    """
    while (reading := _reading(partition, options)) is not None:
        batch = reading.next_batch(partition)
        if batch is None:
            partition.decoding = None
        else:
            yield batch, partition.position or 0


def _reading(partition: AssignedPartition, options: ReadOptions) -> Any:
    """Return the current ``CompletedFetch`` of a partition, or the next one, or None if the buffer is empty."""
    if partition.decoding is None and partition.buffer:
        partition.decoding = CompletedFetch(partition.take(), options)
    return partition.decoding
