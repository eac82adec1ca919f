"""Completion of batches: delivered, retried, split or failed.

``sequences`` decides which errors allow a retry. ``sender`` sends the batches.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import frozen

from kafka_msgs.client.broker_errors import broker_error
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.producer import produce_request
from kafka_msgs.client.producer.broker_channels import InFlightRequest
from kafka_msgs.client.producer.config import ProducerConfig
from kafka_msgs.client.producer.metadata_refresh import MetadataRefresher
from kafka_msgs.client.producer.producer_batch import ProducerBatch, RecordMetadata
from kafka_msgs.client.producer.record_accumulator import RecordAccumulator
from kafka_msgs.client.producer.sequences import SequenceManager
from kafka_msgs.client.producer.transaction_manager import TransactionManager, TransactionManagerState
from kafka_msgs.client.retry_log import RetryLog
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError, DeadlineError, RecordsPurgedError, TransactionStateError, UndeliveredError
from kafka_msgs.messages.produce_response import PartitionProduceResponse, ProduceResponse

if TYPE_CHECKING:
    from kafka_msgs.client.core import ClientCore

__all__ = ["BatchCompletion", "FailedBatch", "OnDelivery", "Undelivered"]

_E: Final = ErrorCode
_LOG: Final = logging.getLogger("kafka_msgs.client.producer")
_MOVED: Final = frozenset(
    {
        _E.UNKNOWN_TOPIC_OR_PARTITION, _E.LEADER_NOT_AVAILABLE, _E.NOT_LEADER_OR_FOLLOWER, _E.REPLICA_NOT_AVAILABLE,
        _E.KAFKA_STORAGE_ERROR, _E.FENCED_LEADER_EPOCH, _E.UNKNOWN_LEADER_EPOCH, _E.UNKNOWN_TOPIC_ID,
    }
)  # fmt: skip
"""Errors after which the producer refreshes the partition leaders."""
STOPPED: Final = (TransactionManagerState.ABORTABLE, TransactionManagerState.FATAL)
"""Transaction states in which the producer sends no batches."""


_MOST_KEPT: Final = 1000
"""Maximum number of failed batches to keep until the program receives their errors."""

OnDelivery: TypeAlias = Callable[["RecordMetadata | None", "Exception | None"], object]
"""A user callback for the result of one record: its metadata, or the error."""


@frozen
class FailedBatch:
    """Records that could not be delivered: their partition, their number and the error."""

    topic: str
    partition: int
    count: int
    error: Exception


class Undelivered:
    """Failed batches with unreported errors."""

    def __init__(self, on_failure: Callable[[FailedBatch], object] | None = None) -> None:
        self._on_failure = on_failure
        self._batches: deque[ProducerBatch] = deque()
        self._more = 0

    def add(self, batch: ProducerBatch, error: Exception) -> None:
        """Add a failed batch, or pass it to ``on_failure``."""
        if self._on_failure is not None:
            call_user(self._on_failure, FailedBatch(batch.topic, batch.partition, batch.count, error))
        elif batch.callbacks is None or len(batch.callbacks) < batch.count:
            self._batches.append(batch)
            if len(self._batches) > _MOST_KEPT:
                self._more += self._batches.pop().count

    def error(self) -> UndeliveredError | None:
        """Return one error for all unreported failures, and clear them. Any thread may call this."""
        batches, self._batches = self._batches, deque()
        more, self._more = self._more, 0
        unseen = [batch for batch in batches if not batch.error_observed]
        if not unseen:
            return None
        first = unseen[0].error
        assert first is not None
        error = UndeliveredError(count=sum(batch.count for batch in unseen) + more, cause=first)
        error.__cause__ = first
        return error


def call_user(function: Callable[..., object], *arguments: Any) -> None:
    """Call a user callback, and log its exceptions."""
    try:
        function(*arguments)
    except Exception:
        _LOG.exception("a callback of a producer raised: %r", function)


class BatchCompletion:
    """Completes, retries, splits or fails the batches of one producer."""

    def __init__(
        self,
        core: ClientCore,
        config: ProducerConfig,
        accumulator: RecordAccumulator,
        identity: SequenceManager | None,
        transactions: TransactionManager | None,
        leaders: MetadataRefresher,
        undelivered: Undelivered,
    ) -> None:
        self._core = core
        self._config = config
        self._accumulator = accumulator
        self._identity = identity
        self._transactions = transactions
        self._leaders = leaders
        self._undelivered = undelivered
        self._retries = RetryLog(_LOG, core.network.now)
        self.troubles: dict[int, Exception] = {}
        """The last connection error of each broker."""

    def handle_response(self, response: ProduceResponse, sent: InFlightRequest, now: float) -> None:
        """Handle the response to a request. With ``acks=0`` there is none, and the batches count as delivered."""
        if not self._config.acks:
            for batch in sent.batches:
                self._complete(batch, -1)
            return
        for batch, answer in produce_request.match_responses(response, sent.batches, sent.ids):
            if answer is not None:
                self._learn(batch, answer, now)
            else:
                self.handle_disconnect((batch,), DeadlineError(waiting_for="the answer for a partition"), now)

    def handle_disconnect(self, batches: Iterable[ProducerBatch], error: Exception, now: float) -> None:
        """Retry batches whose request got no response: the broker may have written them or not."""
        for batch in batches:
            if batch.done:
                continue
            self._leaders.invalidate((batch.topic,))
            if self._config.acks:
                self._reenqueue(batch, now, error)
            else:
                self._fail(batch, error, known=False)

    def expire(self, now: float) -> float | None:
        """Fail the batches that have expired, and return when the next one expires. Batches expire in order."""
        incomplete = self._accumulator.incomplete
        while incomplete:
            batch = next(iter(incomplete))
            end = batch.created + self._config.delivery_timeout
            if end > now:
                return end
            self._abandon(batch, self._late(batch))
        return None

    def give_up(self, error: Exception) -> None:
        """Fail all undelivered records."""
        for batch in tuple(self._accumulator.incomplete):
            self._abandon(batch, error)

    def drop_unsent(self, error: Exception) -> None:
        """Fail the unsent batches of a transaction that is being aborted."""
        for _, batch in self._accumulator.pending_by_partition():
            self._abandon(batch, error)

    def purge(self) -> int:
        """Drop batches that were never sent, and return the number of their records."""
        purged = [batch for _, batch in self._accumulator.pending_by_partition() if not batch.retried]
        for batch in purged:
            batch.error_observed = True
            self._abandon(batch, RecordsPurgedError())
        return sum(batch.count for batch in purged)

    def _learn(self, batch: ProducerBatch, answer: PartitionProduceResponse, now: float) -> None:
        """Handle the response for one batch."""
        error = ErrorCode(answer.error_code)
        if batch.done:
            return
        if error in (_E.NONE, _E.DUPLICATE_SEQUENCE_NUMBER):
            self._complete(batch, answer.base_offset, answer.log_append_time_ms)
            return
        if error == _E.MESSAGE_TOO_LARGE and batch.count > 1 and not self._is_stopped:
            self._split(batch)
            return
        self._refused(batch, error, answer, now)

    def _complete(self, batch: ProducerBatch, base_offset: int, log_append_time: int = -1) -> None:
        queue = self._accumulator.incomplete.get(batch)
        if queue is None:
            return
        batch.base_offset = base_offset
        self._retries.passed((batch.topic, batch.partition))
        if self._identity is not None:
            self._identity.completed(queue.sequences, batch)
        size = batch.size
        batch.complete(base_offset, log_append_time)
        self._accumulator.release(batch)
        self._core.directory.hooks.call(
            "batch_written", batch.topic, batch.partition, batch.count, size, base_offset, batch.attempts,
            self._core.network.now() - batch.created,
        )  # fmt: skip
        self._tell(batch)

    def _refused(self, batch: ProducerBatch, error: ErrorCode, answer: PartitionProduceResponse, now: float) -> None:
        queue = self._accumulator.incomplete[batch]
        if error in _MOVED:
            self._moved(batch, answer)
        if self._identity is None:
            again = error.retriable
        else:
            again = self._identity.retries(queue.sequences, batch, error, answer.log_start_offset)
        subject = TopicPartition(batch.topic, batch.partition)
        failure = broker_error(error, api="Produce", subject=subject, message=answer.error_message)
        if again:
            self._reenqueue(batch, now, failure)
            return
        because = {each.batch_index: each.batch_index_error_message for each in answer.record_errors}
        self._fail(batch, failure, known=True, because=because)

    def _moved(self, batch: ProducerBatch, answer: PartitionProduceResponse) -> None:
        """Use the new leader in a response (KIP-951), or refresh the metadata."""
        leader = answer.current_leader
        if leader.leader_id >= 0 and leader.leader_id in self._core.cluster.brokers:
            self._core.cluster.set_leader(batch.topic, batch.partition, leader.leader_id, leader.leader_epoch)
        else:
            self._leaders.invalidate((batch.topic,))

    def _reenqueue(self, batch: ProducerBatch, now: float, error: Exception) -> None:
        batch.last_error = error
        if self._is_stopped and self._transactions is not None:
            self._fail(batch, self._transactions.reason, known=False)
            return
        expected = isinstance(error, BrokerError) and error.error in _MOVED
        self._retries.failed((batch.topic, batch.partition), error, expected=expected)
        batch.attempts += 1
        batch.retried = True
        batch.retry_at = now + self._config.backoff(batch.attempts)
        self._accumulator.requeue(batch)

    @property
    def _is_stopped(self) -> bool:
        """Whether the transaction can only be aborted."""
        return self._transactions is not None and self._transactions.state in STOPPED

    def _split(self, batch: ProducerBatch) -> None:
        queue = self._accumulator.incomplete[batch]
        queue.sequences.replace(batch, self._accumulator.split(batch))

    def _fail(
        self, batch: ProducerBatch, error: Exception, *, known: bool, because: dict[int, str | None] | None = None
    ) -> None:
        """Fail a batch. ``known`` means that the broker does not have it."""
        queue = self._accumulator.incomplete[batch]
        if self._identity is not None:
            self._identity.failed(queue.sequences, batch, known=known)
        batch.fail(error, because)
        self._accumulator.release(batch)
        if self._transactions is not None:
            self._transactions.batch_failed(error)
        else:
            self._undelivered.add(batch, error)
        self._core.directory.hooks.call("batch_failed", batch.topic, batch.partition, batch.count, error)
        if not isinstance(error, TransactionStateError):
            _LOG.warning("%d records for %s-%d failed: %s", batch.count, batch.topic, batch.partition, error)
        self._tell(batch)

    def _tell(self, batch: ProducerBatch) -> None:
        """Call the user callbacks of this batch. Their exceptions are logged."""
        callbacks, batch.callbacks = batch.callbacks, None
        for index, timestamp, function in callbacks or ():
            if batch.error is None:
                call_user(function, batch.metadata(index, timestamp), None)
            else:
                call_user(function, None, batch.error)

    def _abandon(self, batch: ProducerBatch, error: Exception) -> None:
        """Fail a batch in any state. If it was sent, the broker may have it."""
        queue = self._accumulator.incomplete[batch]
        sent = batch.attempts > 0
        if not self._accumulator.take_out(queue, batch):
            sent = True
        self._fail(batch, error, known=not sent)

    def cause_of(self, batch: ProducerBatch) -> Exception | None:
        """Return the last error of a batch, or None."""
        leader = self._core.cluster.leader(batch.topic, batch.partition)
        return batch.last_error or (None if leader is None else self.troubles.get(leader)) or self._leaders.trouble

    def _late(self, batch: ProducerBatch) -> DeadlineError:
        records = "a record" if batch.count == 1 else f"{batch.count} records"
        place = f"{batch.topic}-{batch.partition}"
        return DeadlineError(waiting_for=f"the delivery of {records} to {place}", cause=self.cause_of(batch))
