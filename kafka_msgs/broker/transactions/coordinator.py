"""The transaction coordinator of a broker: transactional ids, the operations of their producers, and timeouts.

``TransactionCoordinator`` uses no sockets, clocks or threads. Each state change is a record, which the coordinator
passes to its ``append`` function. If the append fails, the state is unchanged. The records of ``__transaction_state``
therefore determine the state, except for the previous producer epochs.

A transaction ends in two steps. First the coordinator decides its end: it responds to the request and adds a
``PendingCompletion`` to ``endings``. The caller then writes the markers and reports them with ``markers_written``.
After the last marker the transaction is complete. The source is
``kafka.coordinator.transaction.TransactionCoordinator`` with its ``TransactionStateManager``; KIP-98, KIP-890.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from attrs import Factory, define, evolve, frozen

from kafka_msgs.broker.transactions.config import TransactionConfig
from kafka_msgs.broker.transactions.end_checks import is_repeated, refuse
from kafka_msgs.broker.transactions.state import TransactionState
from kafka_msgs.broker.transactions.transaction_metadata import (
    LAST_EPOCH,
    NO_EPOCH,
    TOPIC,
    TopicPartition,
    TransactionMetadata,
    from_value,
)
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.coordinator_partition import partition_for_key
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch
from kafka_msgs.internal_topics.records import NO_PRODUCER, InternalRecord, TopicRecord
from kafka_msgs.messages.transaction_log_key import TransactionLogKey
from kafka_msgs.messages.transaction_log_value import TransactionLogValue

__all__ = ["PendingCompletion", "TransactionCoordinator"]

_RETRY_MS: Final = 100
"""The retry backoff in milliseconds after a failed write of a completed transaction's record."""

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


@define
class _Shard:
    """The transactional ids of one partition of ``__transaction_state``.

    ``unmarked`` holds the partitions of each ending transaction that have no marker yet.
    """

    epoch: int
    loading: bool = True
    transactions: dict[str, TransactionMetadata] = Factory(dict)
    unmarked: dict[str, set[TopicPartition]] = Factory(dict)


class TransactionCoordinator:
    """The coordinator of the transactional ids whose partitions it leads.

    ``append`` appends a record to a partition of ``__transaction_state``, and raises ``RequestRefusedError`` on
    failure. ``new_producer_id`` returns a new unique producer id. ``endings`` lists decided ends that the caller has
    not taken yet. Times are in milliseconds since the epoch.
    """

    def __init__(
        self,
        append: Callable[[int, TopicRecord], None],
        new_producer_id: Callable[[], int],
        *,
        config: TransactionConfig | None = None,
    ) -> None:
        self.config = config or TransactionConfig()
        self.endings: deque[PendingCompletion] = deque()
        self._append = append
        self._new_producer_id = new_producer_id
        self._shards: dict[int, _Shard] = {}
        self._abort_at: int | None = None
        self._expire_at: int | None = None
        self._retry_at: int | None = None

    # Requests

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, expected: ProducerIdAndEpoch | None, *, now: int
    ) -> ProducerIdAndEpoch:
        """Return the producer of a transactional id with a new epoch, and fence earlier epochs.

        ``expected`` is the producer's current id and epoch from the request (KIP-360). Without a transactional id the
        result is a new producer. Raises ``RequestRefusedError``. An open transaction is aborted first, with the error
        CONCURRENT_TRANSACTIONS.
        """
        if transactional_id is None:
            return ProducerIdAndEpoch(self._new_producer_id(), 0)
        if not transactional_id:
            refuse(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.config.transaction_max_timeout_ms:
            refuse(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        shard = self._shard(transactional_id)
        transaction = shard.transactions.get(transactional_id)
        if transaction is None:
            producer_id = self._new_producer_id()
            transaction = TransactionMetadata(
                transactional_id=transactional_id, producer_id=producer_id, timeout_ms=timeout_ms, updated_ms=now
            )
        elif expected is not None and not _may_go_on(transaction, expected):
            refuse(ErrorCode.PRODUCER_FENCED)
        if transaction.status is TransactionState.ONGOING:
            self._fence(shard, transaction, now)
        if not transaction.status.at_rest:
            refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
        if transaction.exhausted and (expected is None or expected.epoch == transaction.producer_epoch):
            known = expected is not None
            renewed = transaction.with_new_producer_id(self._new_producer_id(), timeout_ms, now, keep_last=known)
        else:
            renewed = transaction.renewed(timeout_ms, expected, now)
        self._write(shard, renewed)
        return renewed.producer

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[TopicPartition],
        *,
        client_version: int,
        now: int,
    ) -> None:
        """Add partitions to a producer's transaction. The first ones open it. Raises ``RequestRefusedError``."""
        shard, transaction = self._checked(transactional_id, producer)
        if transaction.status.ending:
            refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
        added = frozenset(partitions)
        if transaction.status is TransactionState.ONGOING and added <= transaction.partitions:
            return
        self._write(shard, transaction.with_partitions(added, client_version, now))

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition whether it is in a producer's transaction (KIP-890).

        Raises ``RequestRefusedError``.
        """
        _, transaction = self._checked(transactional_id, producer)
        if transaction.status.ending:
            refuse(ErrorCode.CONCURRENT_TRANSACTIONS)
        joined = transaction.partitions
        return {each: ErrorCode.NONE if each in joined else ErrorCode.TRANSACTION_ABORTABLE for each in partitions}

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, *, committed: bool, client_version: int, now: int
    ) -> ProducerIdAndEpoch:
        """Decide the end of a transaction. From transaction version 2 on, return the producer for the next transaction.

        Before version 2 the response contains no producer: id and epoch are -1. Raises ``RequestRefusedError``.
        """
        shard, transaction = self._found(transactional_id)
        bumps = client_version >= 2
        if is_repeated(transaction, producer, committed=committed, bumps_epoch=bumps):
            return transaction.producer if bumps else _NOBODY
        ended = self._end(shard, transaction, committed, client_version, now)
        return ended.completed(now).producer if bumps else _NOBODY

    def describe(self, transactional_id: str) -> TransactionMetadata:
        """Return the state of a transactional id. Raises ``RequestRefusedError``."""
        if not transactional_id:
            refuse(ErrorCode.INVALID_REQUEST)
        transaction = self._shard(transactional_id).transactions.get(transactional_id)
        if transaction is None:
            refuse(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
        return transaction

    def transactions(self) -> Iterator[TransactionMetadata]:
        """Yield all transactional ids, for ListTransactions.

        Raises ``RequestRefusedError`` while a partition is loading.
        """
        if any(shard.loading for shard in self._shards.values()):
            refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        for shard in self._shards.values():
            yield from shard.transactions.values()

    # Markers

    def markers_written(self, ending: PendingCompletion, partitions: Iterable[TopicPartition], *, now: int) -> None:
        """Record that the markers of some partitions are written, or that a partition was deleted.

        After the last one the transaction is complete. Endings of an earlier leader epoch are ignored.
        """
        shard = self._shards.get(ending.state_partition)
        if shard is None or shard.epoch != ending.coordinator_epoch:
            return
        unmarked = shard.unmarked.get(ending.transactional_id)
        if unmarked is not None:
            unmarked.difference_update(partitions)
            if not unmarked:
                self._complete(shard, ending.transactional_id, now)

    def is_pending(self, ending: PendingCompletion) -> bool:
        """Return whether this coordinator still has to write markers of an ending."""
        shard = self._shards.get(ending.state_partition)
        return (
            shard is not None
            and shard.epoch == ending.coordinator_epoch
            and bool(shard.unmarked.get(ending.transactional_id))
        )

    def _complete(self, shard: _Shard, transactional_id: str, now: int) -> None:
        try:
            self._write(shard, shard.transactions[transactional_id].completed(now))
        except RequestRefusedError:
            self._retry_at = now + _RETRY_MS
        else:
            del shard.unmarked[transactional_id]

    # Time

    @property
    def next_timer(self) -> int | None:
        """The time of the next call to ``tick`` in ms, or None."""
        moments = (self._abort_at, self._expire_at, self._retry_at)
        return min((moment for moment in moments if moment is not None), default=None)

    def jump(self, ms: int) -> None:
        """Follow a clock jump of ``ms``, so that the remaining delay of the next transaction check stays the same."""
        self._abort_at, self._expire_at, self._retry_at = (
            None if moment is None else moment + ms for moment in (self._abort_at, self._expire_at, self._retry_at)
        )

    def tick(self, now: int) -> None:
        """Abort transactions that exceed their timeout, and remove expired transactional ids."""
        if self._retry_at is not None and self._retry_at <= now:
            self._retry_at = None
            for shard in self._shards.values():
                for transactional_id in [each for each, unmarked in shard.unmarked.items() if not unmarked]:
                    self._complete(shard, transactional_id, now)
        if self._abort_at is not None and self._abort_at <= now:
            self._abort_at = now + self.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
            self._abort_late(now)
        if self._expire_at is not None and self._expire_at <= now:
            self._expire_at = now + self.config.transaction_remove_expired_transaction_cleanup_interval_ms
            self._expire(now)

    def _abort_late(self, now: int) -> None:
        for shard in self._loaded().values():
            for transaction in [each for each in shard.transactions.values() if each.timed_out(now)]:
                try:
                    self._fence(shard, transaction, now)
                except RequestRefusedError:
                    continue

    def _expire(self, now: int) -> None:
        latest = now - self.config.transactional_id_expiration_ms
        for partition, shard in self._loaded().items():
            unused = [each for each in shard.transactions.values() if each.status.at_rest and each.updated_ms <= latest]
            for transaction in unused:
                key = TransactionLogKey(transactional_id=transaction.transactional_id)
                try:
                    self._append(partition, TopicRecord(topic=TOPIC, key=key))
                except RequestRefusedError:
                    continue
                del shard.transactions[transaction.transactional_id]

    # Partitions

    def partition_for(self, transactional_id: str) -> int:
        """Return the partition of ``__transaction_state`` that contains a transactional id."""
        return partition_for_key(transactional_id, self.config.transaction_state_log_num_partitions)

    def elect(self, partition: int, epoch: int, *, now: int) -> None:
        """Become the leader of a partition. Until ``loaded``, requests get COORDINATOR_LOAD_IN_PROGRESS."""
        self._shards[partition] = _Shard(epoch)
        if self._abort_at is None:
            self._abort_at = now + self.config.transaction_abort_timed_out_transaction_cleanup_interval_ms
            self._expire_at = now + self.config.transaction_remove_expired_transaction_cleanup_interval_ms

    def load(self, partition: int, records: Iterable[InternalRecord]) -> None:
        """Replay records of a loading partition, in order. It may be called several times."""
        transactions = self._shards[partition].transactions
        for record in records:
            if isinstance(record, TopicRecord) and isinstance(record.key, TransactionLogKey):
                transactional_id = record.key.transactional_id
                if isinstance(record.value, TransactionLogValue):
                    transactions[transactional_id] = from_value(transactional_id, record.value)
                else:
                    transactions.pop(transactional_id, None)

    def loaded(self, partition: int, *, now: int) -> None:
        """Mark a partition as completely loaded. Ends that were decided earlier are in ``endings`` again."""
        shard = self._shards[partition]
        shard.loading = False
        for transaction in list(shard.transactions.values()):
            if transaction.status.ending:
                self._decided(shard, transaction, now)

    def resign(self, partition: int, epoch: int | None = None) -> None:
        """Resign from a partition whose leader changed at an epoch. None means at any epoch."""
        shard = self._shards.get(partition)
        if shard is not None and (epoch is None or shard.epoch < epoch):
            del self._shards[partition]

    # Helpers

    def _loaded(self) -> dict[int, _Shard]:
        return {partition: shard for partition, shard in self._shards.items() if not shard.loading}

    def _shard(self, transactional_id: str) -> _Shard:
        shard = self._shards.get(self.partition_for(transactional_id))
        if shard is None:
            refuse(ErrorCode.NOT_COORDINATOR)
        if shard.loading:
            refuse(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return shard

    def _found(self, transactional_id: str) -> tuple[_Shard, TransactionMetadata]:
        if not transactional_id:
            refuse(ErrorCode.INVALID_REQUEST)
        shard = self._shard(transactional_id)
        transaction = shard.transactions.get(transactional_id)
        if transaction is None:
            refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return shard, transaction

    def _checked(self, transactional_id: str, producer: ProducerIdAndEpoch) -> tuple[_Shard, TransactionMetadata]:
        shard, transaction = self._found(transactional_id)
        if transaction.producer_id != producer.id:
            refuse(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if transaction.producer_epoch != producer.epoch:
            refuse(ErrorCode.PRODUCER_FENCED)
        return shard, transaction

    def _fence(self, shard: _Shard, transaction: TransactionMetadata, now: int) -> None:
        """Abort an open transaction and fence its producer."""
        version = self.config.transaction_version
        if version < 2:
            epoch = min(transaction.producer_epoch + 1, LAST_EPOCH + 1)
            transaction = evolve(transaction, producer_epoch=epoch, last_producer_epoch=NO_EPOCH)
            version = 0
        self._end(shard, transaction, False, version, now)

    def _end(
        self, shard: _Shard, transaction: TransactionMetadata, committed: bool, client_version: int, now: int
    ) -> TransactionMetadata:
        rotates = client_version >= 2 and transaction.exhausted
        following = self._new_producer_id() if rotates else NO_PRODUCER
        ended = transaction.ended(
            committed=committed, client_version=client_version, next_producer_id=following, now=now
        )
        self._write(shard, ended)
        self._decided(shard, ended, now)
        return ended

    def _decided(self, shard: _Shard, transaction: TransactionMetadata, now: int) -> None:
        """Request the markers of an ending transaction. Without partitions it is complete."""
        transactional_id = transaction.transactional_id
        shard.unmarked[transactional_id] = set(transaction.partitions)
        if not transaction.partitions:
            self._complete(shard, transactional_id, now)
            return
        self.endings.append(
            PendingCompletion(
                transactional_id=transactional_id,
                state_partition=self.partition_for(transactional_id),
                coordinator_epoch=shard.epoch,
                producer=transaction.producer,
                committed=transaction.status is TransactionState.PREPARE_COMMIT,
                bumps_epoch=transaction.bumps_epoch,
                partitions=transaction.partitions,
            )
        )

    def _write(self, shard: _Shard, transaction: TransactionMetadata) -> None:
        """Append the record of a new state, then apply the state."""
        version = 1 if self.config.transaction_version >= 1 else 0
        self._append(self.partition_for(transaction.transactional_id), transaction.record(version))
        shard.transactions[transaction.transactional_id] = transaction


def _may_go_on(transaction: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Return whether a producer may get a new epoch: it has the current producer id, or the exhausted previous one."""
    if transaction.producer_epoch == NO_EPOCH or expected.id == transaction.producer_id:
        return True
    return expected.id == transaction.previous_producer_id and expected.epoch >= LAST_EPOCH
