"""Takes buffered records of a consumer's partitions in turn, deserializes them, and moves the positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_msgs.client.consumer.assigned_partitions import AssignedPartition
from kafka_msgs.client.consumer.consumer_state import ConsumerState
from kafka_msgs.client.consumer.fetch_collector import collect_records
from kafka_msgs.errors import ClientError, DeserializationError, RecordError
from kafka_msgs.records import ConsumerRecord, ReadOptions

if TYPE_CHECKING:
    from kafka_msgs.client.consumer.tables import TableBuilder

__all__ = ["Deserializer", "RecordCollector"]

Deserializer: TypeAlias = Callable[[bytes], object]
"""A function that turns the bytes of a key or value into an object."""


class RecordCollector:
    """Takes records from the buffers. The caller holds the lock of the consumer's state."""

    def __init__(self, state: ConsumerState, key: Deserializer | None, value: Deserializer | None) -> None:
        self._state = state
        self._options = ReadOptions(check_crc=state.config.check_crc)
        self._deserializers: tuple[Callable[[bytes], Any] | None, ...] = key, value
        self._deserializes = key is not None or value is not None

    def is_readable(self, partition: AssignedPartition) -> bool:
        """Whether a poll may return a record or an error of a partition now."""
        if partition.paused or not partition.ready:
            return False
        return not partition.empty or partition.error is not None

    def collect(self, max_records: int, into: list[ConsumerRecord]) -> None:
        """Take up to ``max_records`` records."""
        take = self._take_deserialized if self._deserializes else collect_records
        self._take(
            lambda: max_records - len(into), lambda part, left: take(part, left, self._options, into), lambda: into
        )

    def _take_deserialized(
        self, partition: AssignedPartition, max_records: int, options: ReadOptions, into: list[ConsumerRecord]
    ) -> None:
        """Take records one by one, so that the position stays at a record that cannot be deserialized."""
        one: list[ConsumerRecord] = []
        while max_records > 0:
            position, epoch = partition.position, partition.position_epoch
            collect_records(partition, 1, options, one)
            if not one:
                return
            try:
                into.append(self.deserialize(partition, one.pop()))
            except DeserializationError:
                partition.position, partition.position_epoch = position, epoch
                raise
            max_records -= 1

    def deserialize(self, partition: AssignedPartition, record: ConsumerRecord) -> ConsumerRecord:
        """Return a record with deserialized key and value. Raises ``DeserializationError``."""
        if not self._deserializes:
            return record
        key, value = self._deserializers
        try:
            return ConsumerRecord(
                record.offset,
                record.timestamp,
                record.key if key is None or record.key is None else key(bytes(record.key)),
                record.value if value is None or record.value is None else value(bytes(record.value)),
                record.headers,
                record.topic,
                record.partition,
            )
        except Exception as error:
            topic, number = partition.name
            raise DeserializationError(topic=topic, partition=number, offset=record.offset, cause=error) from error

    def collect_table(self, max_records: int, builder: TableBuilder) -> None:
        """Take about ``max_records`` records as columns."""
        self._take(
            lambda: max_records - builder.rows,
            lambda part, left: builder.take(part, left, self._options),
            lambda: builder.rows,
        )

    def _take(
        self, left: Callable[[], int], take: Callable[[AssignedPartition, int], None], found: Callable[[], object]
    ) -> None:
        """Take buffered records of the partitions in turn.

        If no records can be returned, raise the error of a partition. Otherwise the next poll raises it.
        """
        for partition in self._state.partitions.in_turn():
            if left() <= 0:
                return
            if self.is_readable(partition):
                try:
                    if partition.error is not None and partition.empty:
                        raise partition.error
                    take(partition, left())
                    self._state.note_returned(partition)
                except (RecordError, ClientError) as error:
                    if partition.position is not None:
                        partition.rewind(partition.position, partition.position_epoch)
                    partition.error = error if found() else None
                    if not found():
                        raise
