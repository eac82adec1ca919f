"""The transaction coordinator of each broker: its log, its producer ids, and the markers that it writes.

A marker is written immediately if the partition has a leader, and otherwise when a leader is elected. A partition of
``__consumer_offsets`` receives its marker through the group coordinator, which completes the pending offsets.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS, TRANSACTION_STATE
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.coordinators.leadership import check_in_sync, find_log, follow_leaders, iter_records, leader_of
from kafka_msgs.broker.storage import AppendOrigin, PartitionLog, VerificationGuard
from kafka_msgs.broker.transactions import PendingCompletion, TopicPartition, TransactionConfig, TransactionCoordinator
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.coordinator_partition import partition_for_key
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch, RecordAppend
from kafka_msgs.groups.runtime.record_batches import encode_batch
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.messages.producer_ids_record import ProducerIdsRecord

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.groups.runtime.timer_queue import TimerHandle

__all__ = ["TransactionCoordinatorService", "join_transaction"]

_RETRY_MS: Final = 20
"""The backoff in milliseconds before the coordinator retries a marker for a partition without a leader."""

_PRODUCER_IDS: Final = 1000
"""The number of producer ids that a broker allocates from the controller at a time, as in Kafka."""


class TransactionCoordinatorService:
    """The transaction coordinator of one broker."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        self._cluster = cluster
        self._broker_id = broker_id
        self._logs: dict[int, tuple[PartitionLog, int]] = {}
        self._ids = range(0)
        self._timer: TimerHandle | None = None
        settings = cluster.configs
        self.coordinator = TransactionCoordinator(
            self._append,
            self.new_producer_id,
            config=TransactionConfig(
                transaction_state_log_num_partitions=settings.number("transaction.state.log.num.partitions"),
                transaction_max_timeout_ms=settings.number("transaction.max.timeout.ms"),
                transactional_id_expiration_ms=settings.number("transactional.id.expiration.ms"),
                transaction_abort_timed_out_transaction_cleanup_interval_ms=settings.number(
                    "transaction.abort.timed.out.transaction.cleanup.interval.ms"
                ),
                transaction_remove_expired_transaction_cleanup_interval_ms=settings.number(
                    "transaction.remove.expired.transaction.cleanup.interval.ms"
                ),
                transaction_version=cluster.image.features.get("transaction.version", 0),
            ),
        )

    @staticmethod
    def attach(cluster: Cluster) -> None:
        """Make the transaction coordinators of a cluster follow the leaders of their topic."""
        follow_leaders(cluster, TRANSACTION_STATE, partial(TransactionCoordinatorService.on, cluster))
        cluster.transaction_joiner = join_transaction
        cluster.clock_jump_listeners.append(partial(_jump, cluster))

    @staticmethod
    def on(cluster: Cluster, broker_id: int) -> TransactionCoordinatorService:
        """Return the transaction coordinator of a broker."""
        return cluster.brokers[broker_id].component(
            TransactionCoordinatorService, lambda: TransactionCoordinatorService(cluster, broker_id)
        )

    @staticmethod
    def of(cluster: Cluster, transactional_id: str) -> TransactionCoordinatorService | None:
        """Return the coordinator of a transactional id, or None if no broker currently coordinates it."""
        partitions = cluster.configs.number("transaction.state.log.num.partitions")
        leader = leader_of(cluster, TRANSACTION_STATE, partition_for_key(transactional_id, partitions))
        return None if leader is None else TransactionCoordinatorService.on(cluster, leader)

    # Leadership

    def elect(self, partition: int, epoch: int, log: PartitionLog) -> None:
        """Load a partition that this broker leads."""
        self._logs[partition] = (log, epoch)
        self.coordinator.elect(partition, epoch, now=self._cluster.now)
        self._cluster.long_work.begin(self._load(partition, log, epoch))

    def _load(self, partition: int, log: PartitionLog, epoch: int) -> Iterator[None]:
        """Load a partition one record at a time. Stop when another broker becomes the leader."""
        for record in iter_records(log):
            if self._logs.get(partition) != (log, epoch):
                return
            if not isinstance(record, TransactionEnd):
                self.coordinator.load(partition, (record,))
            yield
        if self._logs.get(partition) == (log, epoch):
            self.coordinator.loaded(partition, now=self._cluster.now)
            self.settle()

    def resign(self, partition: int, epoch: int | None) -> None:
        """Unload a partition that another broker leads."""
        self._logs.pop(partition, None)
        self.coordinator.resign(partition, epoch)

    # Interface for the coordinator

    def _append(self, partition: int, record: TopicRecord) -> None:
        log, epoch = self._logs[partition]
        now = self._cluster.now
        check_in_sync(self._cluster, log)
        batch = encode_batch(RecordAppend(partition=partition, records=(record,)), timestamp=now)
        log.append(batch, leader_epoch=epoch, now=now, origin=AppendOrigin.COORDINATOR)

    def new_producer_id(self) -> int:
        """Return a producer id that is new in the cluster."""
        if not self._ids:
            first = self._cluster.image.next_producer_id
            self._ids = range(first, first + _PRODUCER_IDS)
            record = ProducerIdsRecord(
                broker_id=self._broker_id, broker_epoch=0, next_producer_id=first + _PRODUCER_IDS
            )
            self._cluster.commit([record])
        given, self._ids = self._ids[0], self._ids[1:]
        return given

    def verify_or_add_partition(
        self, transactional_id: str, producer: ProducerIdAndEpoch, place: TopicPartition, *, adds: bool
    ) -> ErrorCode:
        """Add a partition to a transaction, or verify that it was added. Return the error for the producer."""
        try:
            if not adds:
                return self.coordinator.verify_partitions(transactional_id, producer, [place])[place]
            now = self._cluster.now
            self.coordinator.add_partitions(transactional_id, producer, [place], client_version=2, now=now)
        except RequestRefusedError as error:
            fenced = error.error is ErrorCode.PRODUCER_FENCED
            return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else ErrorCode(error.error)
        return ErrorCode.NONE

    # Markers and time

    def settle(self) -> None:
        """Write the markers of ending transactions and schedule the coordinator's next timer."""
        endings = self.coordinator.endings
        while endings:
            ending = endings.popleft()
            self._mark(ending, ending.partitions)
        due = self.coordinator.next_timer
        if self._timer is not None and self._timer.waiting and self._timer.at != due:
            self._timer.cancel()
        if due is not None and (self._timer is None or not self._timer.waiting):
            self._timer = self._cluster.timers.schedule(due, self._tick)

    def _tick(self) -> None:
        self.coordinator.tick(self._cluster.now)
        self.settle()

    def _mark(self, ending: PendingCompletion, partitions: Collection[TopicPartition]) -> None:
        """Write the markers of an ending transaction to these partitions. Failed writes are retried."""
        waiting = [each for each in partitions if not self._write_marker(ending, each)]
        written = set(partitions).difference(waiting)
        if written:
            self.coordinator.markers_written(ending, written, now=self._cluster.now)
        if waiting and self.coordinator.is_pending(ending):
            self._cluster.call_later(_RETRY_MS, lambda: self._again(ending, waiting))

    def _again(self, ending: PendingCompletion, partitions: list[TopicPartition]) -> None:
        if self.coordinator.is_pending(ending):
            self._mark(ending, partitions)
            self.settle()

    def _write_marker(self, ending: PendingCompletion, place: TopicPartition) -> bool:
        """Write a marker. Also return True if the partition was deleted and needs no marker."""
        cluster = self._cluster
        log = find_log(cluster, *place)
        if log is None:
            return True
        leader = leader_of(cluster, *place)
        if leader is None:
            return False
        if place.topic == CONSUMER_OFFSETS:
            host = GroupCoordinatorService.of_broker(cluster, leader)
            error = host.end_transaction(
                place.partition,
                ending.producer,
                committed=ending.committed,
                coordinator_epoch=ending.coordinator_epoch,
            )
            return error in (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH)
        try:
            state = check_in_sync(cluster, log)
            log.append_marker(
                *ending.producer,
                committed=ending.committed,
                coordinator_epoch=ending.coordinator_epoch,
                leader_epoch=state.leader_epoch,
                now=cluster.now,
                transaction_version=2 if ending.bumps_epoch else 0,
            )
        except RequestRefusedError as error:
            return error.error is ErrorCode.INVALID_PRODUCER_EPOCH
        return True


def _jump(cluster: Cluster, ms: int) -> None:
    for broker in cluster.brokers.values():
        host = broker.components.get(TransactionCoordinatorService)
        if host is not None:
            host.coordinator.jump(ms)


def join_transaction(
    cluster: Cluster,
    log: PartitionLog,
    transactional_id: str,
    producer: tuple[int, int],
    sequence: int,
    *,
    adds: bool,
    abortable: bool,
) -> VerificationGuard | None:
    """Ensure that a partition is in a producer's transaction before its records are appended (KIP-890).

    Return the guard for the append, or None if the partition already has records of the transaction. ``adds`` adds the
    partition; otherwise the client must have added it. ``abortable`` is True if the client supports the error
    TRANSACTION_ABORTABLE. Raises ``RequestRefusedError``.
    """
    guard = log.verify(*producer, sequence, bumps_epoch=adds, now=cluster.now)
    if guard is None or not (adds or cluster.configs.flag("transaction.partition.verification.enable")):
        return guard
    host = TransactionCoordinatorService.of(cluster, transactional_id)
    if host is None:
        raise RequestRefusedError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    place = TopicPartition(log.topic, log.partition)
    error = host.verify_or_add_partition(transactional_id, ProducerIdAndEpoch(*producer), place, adds=adds)
    if error is ErrorCode.TRANSACTION_ABORTABLE and not abortable:
        error = ErrorCode.INVALID_TXN_STATE
    if error is not ErrorCode.NONE:
        raise RequestRefusedError(error=error)
    return guard
