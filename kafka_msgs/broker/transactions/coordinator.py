"""The transaction coordinator of a broker: transactional ids, the operations of their producers, and timeouts.

A transaction ends in two steps. First the coordinator decides its end: it responds to the request and adds a
``PendingCompletion`` to ``endings``. The caller then writes the markers and reports them with ``markers_written``.
After the last marker the transaction is complete. The source is
``kafka.coordinator.transaction.TransactionCoordinator`` with its ``TransactionStateManager``; KIP-98, KIP-890.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TypeVar

from attrs import evolve, frozen

from kafka_msgs.broker.transactions.end_checks import is_repeated
from kafka_msgs.broker.transactions.transaction_metadata import (
    LAST_EPOCH,
    TOPIC,
    TopicPartition,
    TransactionConfig,
    TransactionMetadata,
    TransactionState,
    from_value,
)
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.coordinator_runtime import CoordinatorRuntime
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.output import NO_EPOCH, MarkerAppend, ProducerIdAndEpoch, RecordAppend
from kafka_msgs.groups.runtime.shard_operation import ShardOperation
from kafka_msgs.groups.runtime.shard_runtime import CoordinatorDefinition
from kafka_msgs.groups.runtime.undo_log import Changes, HardState
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.internal_topics.records import NO_PRODUCER
from kafka_msgs.messages.transaction_log_key import TransactionLogKey
from kafka_msgs.messages.transaction_log_value import TransactionLogValue

__all__ = ["PendingCompletion", "TransactionCoordinator"]

T = TypeVar("T")

_RETRY_MS: Final = 100
"""The retry backoff in milliseconds after a failed write of a completed transaction's record."""

_WRITE_TIMEOUT_MS: Final = 5000
"""The time in milliseconds after which Kafka fails an append to the log that is not committed."""

_NOBODY: Final = ProducerIdAndEpoch()


@frozen(kw_only=True)
class PendingCompletion:
    """The decided end of a transaction. Each partition needs the producer's marker.

    ``bumps_epoch`` is True from transaction version 2 on: the marker then has a new epoch (KIP-890).
    """

    transactional_id: str
    state_partition: int
    coordinator_epoch: int
    producer: ProducerIdAndEpoch
    committed: bool
    bumps_epoch: bool
    partitions: frozenset[TopicPartition]


class _TransactionalIds(HardState):
    """The transactional ids of one partition of ``__transaction_state``."""

    __slots__ = ("transactions",)

    def __init__(self) -> None:
        super().__init__()
        self.transactions: dict[str, TransactionMetadata] = {}


class _Unmarked(dict[str, set[TopicPartition]]):
    """The partitions of each ending transaction that have no marker yet."""


class _Operation(ShardOperation):
    """One operation against the transactional ids of a partition."""

    __slots__ = ()

    state: _TransactionalIds

    def find(self, transactional_id: str) -> TransactionMetadata:
        """Return the state of a transactional id, for a request of its producer."""
        transaction = self.state.transactions.get(transactional_id)
        if transaction is None:
            raise RequestRefusedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return transaction

    def find_of(self, transactional_id: str, producer: ProducerIdAndEpoch) -> TransactionMetadata:
        """Return the state of a transactional id for its current producer, and not while it ends."""
        transaction = self.find(transactional_id)
        if transaction.producer_id != producer.id:
            raise RequestRefusedError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer.epoch:
            raise RequestRefusedError(ErrorCode.PRODUCER_FENCED)
        if transaction.status.ending:
            raise RequestRefusedError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return transaction

    def write(self, transaction: TransactionMetadata, version: int) -> None:
        """Emit the record of a new state. The previous producer epoch is not recorded."""
        self.emit(transaction.key, transaction.to_value(version), version)
        self._shard.changes.journal.set(self.state.transactions, transaction.transactional_id, transaction)


class TransactionCoordinator(CoordinatorRuntime[_TransactionalIds, _Operation]):
    """The coordinator of the transactional ids whose partitions it leads.

    ``append`` appends records to a partition of ``__transaction_state``, returns the offset after them, and raises
    ``ApiError`` on failure. ``new_producer_id`` returns a new unique producer id. ``endings`` queues decided ends for
    the caller. Times are in milliseconds since the epoch. Futures settle when the records are
    committed.
    """

    def __init__(
        self,
        append: Callable[[RecordAppend | MarkerAppend], int],
        new_producer_id: Callable[[], int],
        *,
        config: TransactionConfig | None = None,
    ) -> None:
        self.config = config = config or TransactionConfig()
        self.endings: deque[PendingCompletion] = deque()
        self._new_producer_id = new_producer_id
        super().__init__(
            CoordinatorDefinition(
                topic=TOPIC,
                new_state=_TransactionalIds,
                new_operation=_Operation,
                appliers={TransactionLogKey: _apply_transaction},
                write_timeout_ms=_WRITE_TIMEOUT_MS,
                on_loaded=self._on_loaded,
            ),
            append,
        )
        for interval, task in (
            (config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self._abort_late),
            (config.transaction_remove_expired_transaction_cleanup_interval_ms, self._expire),
        ):
            self.run_periodically(interval, task, catches_up=False)

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of ``__transaction_state`` that contains a transactional id."""
        return partition_for_key(transactional_id, self.config.transaction_state_log_num_partitions)

    # Requests

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, expected: ProducerIdAndEpoch | None, *, now: int
    ) -> Future[ProducerIdAndEpoch]:
        """Return the producer of a transactional id with a new epoch, and fence earlier epochs.

        ``expected`` is the producer's current id and epoch from the request (KIP-360). Without a transactional id the
        result is a new producer. An open transaction is aborted first, with the error CONCURRENT_TRANSACTIONS.
        """
        if transactional_id is None:
            future: Future[ProducerIdAndEpoch] = Future()
            future.resolve(ProducerIdAndEpoch(self._new_producer_id(), 0))
            return future
        if not transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.config.transaction_max_timeout_ms:
            return _refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        return self._operate(transactional_id, partial(self._init, transactional_id, timeout_ms, expected), now)

    def _init(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None, op: _Operation
    ) -> ProducerIdAndEpoch | Future[ProducerIdAndEpoch]:
        transaction = op.state.transactions.get(transactional_id)
        if transaction is None:
            transaction = TransactionMetadata(
                transactional_id=transactional_id,
                producer_id=self._new_producer_id(),
                timeout_ms=timeout_ms,
                updated_ms=op.now,
            )
        elif expected is not None and not _may_go_on(transaction, expected):
            raise RequestRefusedError(ErrorCode.PRODUCER_FENCED)
        if transaction.status is TransactionState.ONGOING:
            self._fence(op, transaction)
            return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        if not transaction.status.at_rest:
            raise RequestRefusedError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.exhausted and (expected is None or expected.epoch == transaction.producer_epoch):
            known = expected is not None
            renewed = transaction.with_new_producer_id(self._new_producer_id(), timeout_ms, op.now, keep_last=known)
        else:
            renewed = transaction.renewed(timeout_ms, expected, op.now)
        op.write(renewed, self._version)
        return renewed.producer

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
        *,
        client_version: int,
        now: int,
    ) -> Future[None]:
        """Add partitions to a producer's transaction. The first ones open it."""
        added = frozenset(partitions)

        def add(op: _Operation) -> None:
            transaction = op.find_of(transactional_id, producer)
            if transaction.status is not TransactionState.ONGOING or not added <= transaction.partitions:
                op.write(transaction.with_partitions(added, client_version, op.now), self._version)

        return self._operate(transactional_id, add, now)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition whether it is in a producer's transaction (KIP-890). Raises ``ApiError``."""
        _require_id(transactional_id)
        transaction = self.read(self.partition_for(transactional_id), lambda op: op.find_of(transactional_id, producer))
        joined = transaction.partitions
        return {each: ErrorCode.NONE if each in joined else ErrorCode.TRANSACTION_ABORTABLE for each in partitions}

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, committed: bool, client_version: int, now: int
    ) -> Future[ProducerIdAndEpoch]:
        """Decide the end of a transaction. From transaction version 2 on, return the producer for the next transaction.

        Before version 2 the response contains no producer: id and epoch are -1.
        """
        bumps = client_version >= 2

        def decide(op: _Operation) -> ProducerIdAndEpoch:
            transaction = op.find(transactional_id)
            if is_repeated(transaction, producer, committed=committed, bumps_epoch=bumps):
                return transaction.producer if bumps else _NOBODY
            ended = self._end(op, transaction, committed, client_version)
            return ended.completed(op.now).producer if bumps else _NOBODY

        return self._operate(transactional_id, decide, now)

    def describe(self, transactional_id: str) -> TransactionMetadata:
        """Return the state of a transactional id. Raises ``ApiError``."""
        _require_id(transactional_id)
        partition = self.partition_for(transactional_id)
        transaction = self.read(partition, lambda op: op.state.transactions.get(transactional_id))
        if transaction is None:
            raise RequestRefusedError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return transaction

    def transactions(self) -> Iterator[TransactionMetadata]:
        """Yield all transactional ids, for ListTransactions. Raises ``ApiError`` while a partition is loading."""
        for shard in self.shards.values():
            shard.require_active()
        for partition in self.shards:
            yield from self.read(partition, lambda op: tuple(op.state.transactions.values()))

    # Markers

    def markers_written(self, ending: PendingCompletion, partitions: Iterable[TopicPartition], *, now: int) -> None:
        """Record that the markers of some partitions are written, or that a partition was deleted.

        After the last one the transaction is complete. Endings of an earlier leader epoch are ignored.
        """
        unmarked = self._unmarked(ending)
        if unmarked is not None:
            unmarked.difference_update(partitions)
            if not unmarked:
                self.write(ending.state_partition, partial(_complete, ending.transactional_id, self._version), now=now)

    def is_pending(self, ending: PendingCompletion) -> bool:
        """Return whether this coordinator still has to write markers of an ending."""
        return bool(self._unmarked(ending))

    def _unmarked(self, ending: PendingCompletion) -> set[TopicPartition] | None:
        shard = self.shards.get(ending.state_partition)
        if shard is None or shard.epoch != ending.coordinator_epoch:
            return None
        return shard.soft.get(_Unmarked).get(ending.transactional_id)

    # Time

    def _abort_late(self) -> None:
        """Abort transactions that exceed their timeout."""
        for shard in self.shards.values():
            for transaction in shard.state.transactions.values() if shard.is_active else ():
                if transaction.timed_out(self._clock.now):
                    shard.enqueue(partial(shard.run, partial(self._abort, transaction)))

    def _abort(self, transaction: TransactionMetadata, op: _Operation) -> None:
        if op.state.transactions.get(transaction.transactional_id) == transaction:
            self._fence(op, transaction)

    def _expire(self) -> None:
        """Remove transactional ids without recent transactions."""
        latest = self._clock.now - self.config.transactional_id_expiration_ms
        for shard in self.shards.values():
            for transaction in shard.state.transactions.values() if shard.is_active else ():
                if transaction.status.at_rest and transaction.updated_ms <= latest:
                    shard.enqueue(partial(shard.run, partial(_remove, transaction.key)))

    # Helpers

    @property
    def _version(self) -> int:
        """The version of record values."""
        return 1 if self.config.transaction_version >= 1 else 0

    def _operate(self, transactional_id: str, operation: Callable[[_Operation], T | Future[T]], now: int) -> Future[T]:
        if not transactional_id:
            return _refused(ErrorCode.INVALID_REQUEST)
        return self.write(self.partition_for(transactional_id), operation, now=now)

    def _fence(self, op: _Operation, transaction: TransactionMetadata) -> None:
        """Abort an open transaction and fence its producer."""
        version = self.config.transaction_version
        if version < 2:
            epoch = min(transaction.producer_epoch + 1, LAST_EPOCH + 1)
            transaction = evolve(transaction, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)
            version = 0
        self._end(op, transaction, False, version)

    def _end(
        self, op: _Operation, transaction: TransactionMetadata, committed: bool, client_version: int
    ) -> TransactionMetadata:
        rotates = client_version >= 2 and transaction.exhausted
        following = self._new_producer_id() if rotates else NO_PRODUCER
        ended = transaction.ended(
            committed=committed, client_version=client_version, next_producer_id=following, now=op.now
        )
        op.write(ended, self._version)
        self._decide(op, ended)
        return ended

    def _on_loaded(self, op: _Operation) -> None:
        """Decide ends again that an earlier leader decided."""
        for transaction in op.state.transactions.values():
            if transaction.status.ending:
                self._decide(op, transaction)

    def _decide(self, op: _Operation, transaction: TransactionMetadata) -> None:
        """Request the markers of an ending transaction when its record is committed."""
        epoch = self.shards[op.partition].epoch

        def request_markers(error: ApiError | None) -> None:
            if error is not None:
                return
            transactional_id = transaction.transactional_id
            op.soft.get(_Unmarked)[transactional_id] = set(transaction.partitions)
            if not transaction.partitions:
                op.submit(partial(_complete, transactional_id, self._version))
                return
            self.endings.append(
                PendingCompletion(
                    transactional_id=transactional_id,
                    state_partition=op.partition,
                    coordinator_epoch=epoch,
                    producer=transaction.producer,
                    committed=transaction.status is TransactionState.PREPARE_COMMIT,
                    bumps_epoch=transaction.bumps_epoch,
                    partitions=transaction.partitions,
                )
            )

        op.on_committed(request_markers)


def _complete(transactional_id: str, version: int, op: _Operation) -> None:
    """Write the record of a completed transaction. After a failure, retry."""

    def completed(error: ApiError | None) -> None:
        if error is None:
            op.soft.get(_Unmarked).pop(transactional_id, None)
        else:
            again = partial(_complete, transactional_id, version)
            op.timers.schedule(f"complete-{transactional_id}", _RETRY_MS, again, retry_backoff_ms=None)

    op.on_committed(completed)
    op.write(op.state.transactions[transactional_id].completed(op.now), version)


def _remove(key: TransactionLogKey, op: _Operation) -> None:
    op.emit(key, None)


def _apply_transaction(
    state: _TransactionalIds, changes: Changes, key: TransactionLogKey, value: TransactionLogValue | None
) -> None:
    if value is None:
        changes.delete(state.transactions, key.transactional_id)
    else:
        changes.set(state.transactions, key.transactional_id, from_value(key.transactional_id, value))


def _require_id(transactional_id: str) -> None:
    if not transactional_id:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)


def _refused(error: ErrorCode) -> Future[T]:
    return Future.from_error(RequestRefusedError(error))


def _may_go_on(transaction: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Return whether a producer may get a new epoch: it has the current producer id, or the exhausted previous one."""
    if transaction.producer_epoch == NO_EPOCH or expected.id == transaction.producer_id:
        return True
    return expected.id == transaction.previous_producer_id and expected.epoch >= LAST_EPOCH
