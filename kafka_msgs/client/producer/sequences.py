"""Sequence numbers of batches, and their error handling (KIP-98, KIP-360).

The broker drops duplicate batches by producer id, epoch and sequence, so a batch keeps its sequence when it is retried.
If records before it were lost, the producer continues with a new epoch, whose sequences start at 0. This module follows
Kafka's class ``org.apache.kafka.clients.producer.internals.TransactionManager``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.producer_batch import (
    NO_PRODUCER,
    NO_SEQUENCE,
    ProducerBatch,
    ProducerIdAndEpoch,
    add_to_sequence,
)
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DeadlineError
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest

if TYPE_CHECKING:
    from kafka_msgs.client.core import ClientCore

__all__ = ["PartitionSequences", "SequenceManager"]

_LAST_EPOCH: Final = 2**15 - 1
_HALF: Final = 2**30
"""50 % of the sequence range: a larger distance counts as negative."""


class PartitionSequences:
    """The sequences of one partition."""

    __slots__ = ("in_flight", "last_acked", "last_offset", "next", "producer", "unresolved")

    def __init__(self) -> None:
        self.producer = NO_PRODUCER
        self.next = 0
        self.in_flight: list[ProducerBatch] = []
        """The incomplete batches with a sequence, by sequence. Some of them wait for a retry."""
        self.last_acked = NO_SEQUENCE
        """The sequence of the last acknowledged record."""
        self.last_offset = -1
        self.unresolved = False
        """Whether a batch failed without a definite response from the broker."""

    def restart(self, producer: ProducerIdAndEpoch) -> None:
        """Restart the sequences at 0 for this producer id and epoch, including batches in flight."""
        self.producer = producer
        self.next = 0
        self.last_acked = NO_SEQUENCE
        for batch in self.in_flight:
            batch.producer, batch.sequence, batch.sequence_was_reset = producer, self.next, True
            self.next = add_to_sequence(self.next, batch.count)

    def acked(self, batch: ProducerBatch) -> None:
        """Record an acknowledged batch. After a leader change, responses may arrive out of order."""
        last = add_to_sequence(batch.sequence, batch.count - 1)
        if self.last_acked == NO_SEQUENCE or add_to_sequence(last, -self.last_acked) < _HALF:
            self.last_acked = last
        if batch.base_offset >= 0:
            self.last_offset = max(self.last_offset, batch.base_offset + batch.count - 1)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Replace a batch by its parts, which share its range of sequences."""
        if batch not in self.in_flight:
            return
        sequence = batch.sequence
        for part in parts:
            part.producer, part.sequence = batch.producer, sequence
            sequence = add_to_sequence(sequence, part.count)
        place = self.in_flight.index(batch)
        self.in_flight[place : place + 1] = parts

    def is_overtaken(self, batch: ProducerBatch) -> bool:
        """Whether the broker has acknowledged a later record: it then rejects the batch in this epoch."""
        return self.last_acked != NO_SEQUENCE and add_to_sequence(self.last_acked, -batch.sequence) < _HALF

    @property
    def is_retrying(self) -> bool:
        """Whether a batch is being retried. A new batch could take its position in the log."""
        return any(batch.retried for batch in self.in_flight)

    def is_next(self, batch: ProducerBatch) -> bool:
        """Whether the batch directly follows the last acknowledged record."""
        return batch.sequence == (0 if self.last_acked == NO_SEQUENCE else add_to_sequence(self.last_acked, 1))


class SequenceManager:
    """The producer id and epoch, and the sequences of all partitions."""

    def __init__(self, *, transactional: bool) -> None:
        self.producer = NO_PRODUCER
        self._transactional = transactional
        self._restart: set[PartitionSequences] = set()
        """The partitions whose sequences restart with the next epoch."""
        self._unresolved: set[PartitionSequences] = set()
        self.needs_new_id = False
        """Whether the producer id has used all of its epochs, so that a new id is needed."""

    def may_send(self, sequences: PartitionSequences, batch: ProducerBatch) -> bool:
        """Whether the first batch of a partition may be sent now.

        After the first batch of a producer, the next batch waits for the acknowledgement: a broker without state of
        this producer accepts any sequence, so if it refused the first batch (it is not the leader yet) and accepted the
        second, it would refuse the first permanently. New batches also wait while a batch is retried, because the
        broker may have lost its state.
        """
        if self.producer == NO_PRODUCER or self.needs_new_id:
            return False
        if batch.sequence == NO_SEQUENCE:
            unknown = sequences.producer != self.producer or sequences.last_acked == NO_SEQUENCE
            return not (unknown and sequences.in_flight) and not sequences.unresolved and not sequences.is_retrying
        return sequences.in_flight[0] is batch

    def assign(self, sequences: PartitionSequences, batch: ProducerBatch) -> None:
        """Assign a sequence to a batch that is sent for the first time."""
        batch.sequence_was_reset = False
        if batch.sequence != NO_SEQUENCE:
            return
        if sequences.producer != self.producer:
            sequences.restart(self.producer)
        batch.producer, batch.sequence = self.producer, sequences.next
        sequences.next = add_to_sequence(sequences.next, batch.count)
        sequences.in_flight.append(batch)

    def completed(self, sequences: PartitionSequences, batch: ProducerBatch) -> None:
        """Record a delivered batch."""
        if batch in sequences.in_flight:
            sequences.in_flight.remove(batch)
        if batch.producer != sequences.producer:
            return
        if batch.is_stamped:
            sequences.acked(batch)
        else:  # it was renumbered while it was in flight, so later batches have wrong sequences
            self._restart.add(sequences)

    def failed(self, sequences: PartitionSequences, batch: ProducerBatch, *, known: bool) -> None:
        """Record a failed batch. ``known`` means that the broker does not have it."""
        if batch in sequences.in_flight:
            sequences.in_flight.remove(batch)
        if self._transactional or batch.sequence == NO_SEQUENCE:
            return
        if known:
            self._restart.add(sequences)
        else:
            sequences.unresolved = True
            self._unresolved.add(sequences)

    def retries(
        self, sequences: PartitionSequences, batch: ProducerBatch, error: ErrorCode, log_start_offset: int
    ) -> bool:
        """Return whether to retry a batch after a broker error. May request a new epoch."""
        if error == ErrorCode.UNKNOWN_PRODUCER_ID:
            return self._retries_unknown(sequences, batch, log_start_offset)
        if error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return self._retries_out_of_order(sequences, batch)
        return error.retriable

    def _retries_unknown(self, sequences: PartitionSequences, batch: ProducerBatch, log_start_offset: int) -> bool:
        if log_start_offset == -1 or batch.sequence_was_reset:
            return True
        if sequences.last_offset < log_start_offset and self._transactional:
            sequences.restart(self.producer)
            return True
        if not self._transactional:
            self._restart.add(sequences)
        return not self._transactional

    def _retries_out_of_order(self, sequences: PartitionSequences, batch: ProducerBatch) -> bool:
        overtaken = sequences.is_overtaken(batch)
        if not (sequences.unresolved or overtaken) and (batch.sequence_was_reset or not sequences.is_next(batch)):
            return True
        if self._transactional:
            return False
        if overtaken or not sequences.unresolved or sequences.in_flight[:1] == [batch]:
            self._restart.add(sequences)
        return True

    def resolve_unresolved(self) -> None:
        """Resolve failed batches without a definite response; continue with a new epoch if records were lost."""
        for sequences in [each for each in self._unresolved if not each.in_flight]:
            self._unresolved.discard(sequences)
            sequences.unresolved = False
            expected = 0 if sequences.last_acked == NO_SEQUENCE else add_to_sequence(sequences.last_acked, 1)
            if sequences.next != expected:
                self._restart.add(sequences)
        if self._restart:
            self._bump()

    def _bump(self) -> None:
        if self.producer.epoch >= _LAST_EPOCH:
            self.needs_new_id = True
            return
        self.begin(ProducerIdAndEpoch(self.producer.id, self.producer.epoch + 1))

    def begin(self, producer: ProducerIdAndEpoch) -> None:
        """Use this id and epoch. Sequences restart at 0: at once after lost records, otherwise at the next batch."""
        self.producer = producer
        self.needs_new_id = False
        for sequences in self._restart:
            sequences.restart(producer)
            sequences.unresolved = False
            self._unresolved.discard(sequences)
        self._restart.clear()

    def init_producer_id(self, core: ClientCore, config: ProducerConfig) -> Flow[None]:
        """Request a producer id from any broker, for a producer without transactions."""
        deadline = core.deadline(config.delivery_timeout)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        backoff = core.directory.new_backoff(deadline)
        while True:
            try:
                response = yield from core.call(request, deadline=deadline)
            except DeadlineError as error:
                raise backoff.timeout_error(error) from None
            if not response.error_code:
                break
            failure = broker_error(response.error_code, api="InitProducerId")
            backoff.record_failure(failure, final=not failure.retriable)
            yield from backoff.wait()
        self.begin(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))
