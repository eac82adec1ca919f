"""Which sequence a batch gets, and what follows from its errors (KIP-98, KIP-360).

The broker drops a batch that it has already, by producer id, epoch and sequence. So a batch keeps its sequence when it
is sent again. If records were lost in between, the producer goes on with a new epoch, in which sequences start at 0.
The rules are those of Kafka's class ``org.apache.kafka.clients.producer.internals.TransactionManager``.
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
"""Half of all sequences: a sequence that is further ahead is behind."""


class PartitionSequences:
    """The sequences of one partition."""

    __slots__ = ("in_flight", "last_acked", "last_offset", "next", "producer", "unresolved")

    def __init__(self) -> None:
        self.producer = NO_PRODUCER
        self.next = 0
        self.in_flight: list[ProducerBatch] = []
        """The batches that have a sequence and are not done, by sequence. Some of them wait to be sent again."""
        self.last_acked = NO_SEQUENCE
        """The sequence of the last record that the broker has."""
        self.last_offset = -1
        self.unresolved = False
        """Whether a batch was given up without knowing if the broker has it."""

    def restart(self, producer: ProducerIdAndEpoch) -> None:
        """Let the sequences start at 0 for this producer, also those of the batches that are on their way."""
        self.producer = producer
        self.next = 0
        self.last_acked = NO_SEQUENCE
        for batch in self.in_flight:
            batch.producer, batch.sequence, batch.sequence_was_reset = producer, self.next, True
            self.next = add_to_sequence(self.next, batch.count)

    def acked(self, batch: ProducerBatch) -> None:
        """Learn that the broker has a batch. Answers come out of order after a change of the leader."""
        last = add_to_sequence(batch.sequence, batch.count - 1)
        if self.last_acked == NO_SEQUENCE or add_to_sequence(last, -self.last_acked) < _HALF:
            self.last_acked = last
        if batch.base_offset >= 0:
            self.last_offset = max(self.last_offset, batch.base_offset + batch.count - 1)

    def replace(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Let the parts of a batch have its sequences."""
        if batch not in self.in_flight:
            return
        sequence = batch.sequence
        for part in parts:
            part.producer, part.sequence = batch.producer, sequence
            sequence = add_to_sequence(sequence, part.count)
        place = self.in_flight.index(batch)
        self.in_flight[place : place + 1] = parts

    def is_overtaken(self, batch: ProducerBatch) -> bool:
        """Whether the broker has a later record than those of the batch, which it then never takes in this epoch."""
        return self.last_acked != NO_SEQUENCE and add_to_sequence(self.last_acked, -batch.sequence) < _HALF

    @property
    def is_retrying(self) -> bool:
        """Whether a batch is being sent again. What follows it could be taken in its place."""
        return any(batch.retried for batch in self.in_flight)

    def is_next(self, batch: ProducerBatch) -> bool:
        """Whether the batch follows the last record that the broker has."""
        return batch.sequence == (0 if self.last_acked == NO_SEQUENCE else add_to_sequence(self.last_acked, 1))


class SequenceManager:
    """The identity of the producer, and the rules about the sequences of its partitions."""

    def __init__(self, *, transactional: bool) -> None:
        self.producer = NO_PRODUCER
        self._transactional = transactional
        self._restart: set[PartitionSequences] = set()
        """The partitions whose sequences start again with the next epoch."""
        self._unresolved: set[PartitionSequences] = set()
        self.needs_new_id = False
        """Whether the epochs of the producer id are used up, so that another id is needed."""

    def may_send(self, sequences: PartitionSequences, batch: ProducerBatch) -> bool:
        """Whether the first batch of a partition may leave now.

        Nothing follows the first batch of a producer before the broker has it. A broker that does not know the
        producer yet accepts any sequence. If it refused the first batch (it is not the leader yet) and accepted the
        second, it would refuse the first for ever. For the same reason nothing new follows a batch that is sent again:
        the broker may have lost its state.
        """
        if self.producer == NO_PRODUCER or self.needs_new_id:
            return False
        if batch.sequence == NO_SEQUENCE:
            unknown = sequences.producer != self.producer or sequences.last_acked == NO_SEQUENCE
            return not (unknown and sequences.in_flight) and not sequences.unresolved and not sequences.is_retrying
        return sequences.in_flight[0] is batch

    def assign(self, sequences: PartitionSequences, batch: ProducerBatch) -> None:
        """Give a batch that leaves for the first time its sequence."""
        batch.sequence_was_reset = False
        if batch.sequence != NO_SEQUENCE:
            return
        if sequences.producer != self.producer:
            sequences.restart(self.producer)
        batch.producer, batch.sequence = self.producer, sequences.next
        sequences.next = add_to_sequence(sequences.next, batch.count)
        sequences.in_flight.append(batch)

    def completed(self, sequences: PartitionSequences, batch: ProducerBatch) -> None:
        """Learn that the broker has a batch."""
        if batch in sequences.in_flight:
            sequences.in_flight.remove(batch)
        if batch.producer != sequences.producer:
            return
        if batch.is_stamped:
            sequences.acked(batch)
        else:  # it was numbered anew while it was in flight, so those behind it have wrong numbers
            self._restart.add(sequences)

    def failed(self, sequences: PartitionSequences, batch: ProducerBatch, *, known: bool) -> None:
        """Learn that a batch was given up. ``known`` says that the broker does not have it."""
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
        """Whether a batch is sent again after an error of the broker. May ask for a new epoch."""
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
        """Find out what became of batches that were given up, and go on with a new epoch if records were lost."""
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
        """Go on with this id and epoch. Sequences start at 0: at once where records were lost, later elsewhere."""
        self.producer = producer
        self.needs_new_id = False
        for sequences in self._restart:
            sequences.restart(producer)
            sequences.unresolved = False
            self._unresolved.discard(sequences)
        self._restart.clear()

    def init_producer_id(self, core: ClientCore, config: ProducerConfig) -> Flow[None]:
        """Get a producer id from any broker, for a producer without transactions."""
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
