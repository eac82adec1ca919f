"""Takes buffered records in the frame of the caller of a poll, and puts them back if they never reach it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.assigned_partitions import AssignedPartition
from kafka_msgs.client.consumer.assignment_manager import AssignmentManager
from kafka_msgs.client.consumer.consumer_state import ConsumerState
from kafka_msgs.client.consumer.record_collector import RecordCollector
from kafka_msgs.errors import ClientError, WakeupError
from kafka_msgs.records import ConsumerRecord

if TYPE_CHECKING:
    from kafka_msgs.client.consumer.tables import TableBuilder

__all__ = ["RecordTaker", "Undo"]

Undo: TypeAlias = "list[tuple[AssignedPartition, int | None, int, int]]"
"""Partitions with their positions, position epochs and versions before the records were taken."""


class RecordTaker:
    """Takes the records of one consumer, without waiting. Positions move here only."""

    def __init__(
        self,
        state: ConsumerState,
        assignment: AssignmentManager,
        collector: RecordCollector,
        needs_poll: Callable[[], bool],
    ) -> None:
        self._state = state
        self._assignment = assignment
        self._collector = collector
        self._needs_poll = needs_poll
        self._network = state.client.network
        self._stores_offsets = state.config.auto_offset_store
        self.woken = False
        """Whether the next call raises ``WakeupError``."""
        self._iterated: AssignedPartition | None = None
        self._reading: Any = None

    @property
    def has_news(self) -> bool:
        """Whether the caller has an error to raise or records to take."""
        if self._assignment.faults or self.woken:
            return True
        return self._has_lease and any(self._collector.is_readable(each) for each in self._state.partitions)

    @property
    def _has_lease(self) -> bool:
        membership = self._state.membership
        return membership is None or self._network.uptime() < membership.lease_ends

    def take(self, max_records: int, undo: Undo) -> list[ConsumerRecord]:
        """Take up to ``max_records`` buffered records without waiting, and move the positions past them.

        Fills ``undo`` for ``put_back``, in case an exception occurs before the caller has the records; a signal handler
        may raise one anywhere. Raises errors of background tasks.
        """
        records: list[ConsumerRecord] = []
        self._raise_fault()
        with self._state.lock:
            self._assignment.polled_at = self._network.monotonic()
            if not self._has_lease:
                return records
            buffered = self._state.partitions.buffered
            self._note(undo)
            self._collector.collect(max_records, records)
            drained = self._state.partitions.buffered != buffered
        if drained:
            self._network.post(self._state.drained.notify)
        return records

    def take_table(self, max_records: int, builder: TableBuilder, undo: Undo) -> None:
        """Take about ``max_records`` buffered records as columns; otherwise like ``take``."""
        self._raise_fault()
        with self._state.lock:
            self._assignment.polled_at = self._network.monotonic()
            if self._has_lease:
                self._note(undo)
                self._collector.collect_table(max_records, builder)
        self._network.post(self._state.drained.notify)

    def take_next(self, undo: Undo) -> ConsumerRecord | None:
        """Take the next buffered record without waiting, and mark the previous record as handled."""
        assignment, network = self._assignment, self._network
        with self._state.lock:
            last, reading = self._iterated, self._reading
            if last is not None and self._stores_offsets:
                last.handled = last.position
            if assignment.faults or self.woken:
                self._raise_fault()
            assignment.polled_at = network.monotonic()
            if self._needs_poll() or not self._has_lease:
                return None
            if reading is not None and last is not None and last.decoding is reading and not last.paused:
                undo.append((last, last.position, last.position_epoch, last.version))
                if (record := reading.next_record(last)) is not None:
                    return self._collector.deserialize(last, record)
                undo.clear()
        return self._take_first(undo)

    def _take_first(self, undo: Undo) -> ConsumerRecord | None:
        """Take the first record of the next buffered batch."""
        records = self.take(1, undo)
        if not records:
            return None
        self._iterated = last = self._state.partitions.get(TopicPartition(records[0].topic, records[0].partition))
        self._reading = None if last is None else last.decoding
        return records[0]

    def put_back(self, undo: Undo) -> None:
        """Restore the positions from before a failed call took records that never reached the caller.

        The buffers are dropped, because records may have left them even if the position did not move.
        """
        with self._state.lock:
            for partition, position, epoch, version in undo:
                if position is not None and partition.version == version:
                    partition.rewind(position, epoch)
        undo.clear()
        with suppress(ClientError):
            self._network.post(self._state.changed.notify)

    def _note(self, undo: Undo) -> None:
        undo.clear()
        for each in self._state.partitions:
            if self._stores_offsets:
                each.handled = each.position
            undo.append((each, each.position, each.position_epoch, each.version))

    def _raise_fault(self) -> None:
        """Raise a pending wakeup or background error, once."""
        if self.woken:
            self.woken = False
            raise WakeupError()
        if self._assignment.faults:
            raise self._assignment.faults.popleft()
