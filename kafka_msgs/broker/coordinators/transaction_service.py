"""The transaction coordinator of each broker: its log, its producer ids, and the markers that it writes.

A marker is written immediately if the partition has a leader, and otherwise when a leader is elected. A partition of
``__consumer_offsets`` receives its marker through the group coordinator, which completes the pending offsets.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from attrs import fields_dict

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS, TRANSACTION_STATE
from kafka_msgs.broker.coordinators.coordinator_service import CoordinatorService
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.coordinators.leadership import check_in_sync, find_log, leader_of
from kafka_msgs.broker.storage import PartitionLog, VerificationGuard
from kafka_msgs.broker.transactions import PendingCompletion, TopicPartition, TransactionConfig, TransactionCoordinator
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.output import CoordinatorOutput, ProducerIdAndEpoch
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.messages.producer_ids_record import ProducerIdsRecord

__all__ = ["TransactionCoordinatorService", "join_transaction", "write_marker"]

_RETRY_MS: Final = 20
"""The backoff in milliseconds before the coordinator retries a marker for a partition without a leader."""

_PRODUCER_IDS: Final = 1000
"""The number of producer ids that a broker allocates from the controller at a time, as in Kafka."""


class TransactionCoordinatorService(CoordinatorService[TransactionCoordinator]):
    """The transaction coordinator of one broker."""

    topic = TRANSACTION_STATE

    def __init__(self, cluster: BrokerInterface, broker_id: int) -> None:
        super().__init__(cluster, broker_id)
        self._ids = range(0)
        self.coordinator = TransactionCoordinator(self.append, self.new_producer_id, config=_config(cluster))

    @classmethod
    def attach(cls, cluster: BrokerInterface) -> None:
        """Make the transaction coordinators of a cluster follow the leaders of their topic."""
        super().attach(cluster)
        cluster.transaction_joiner = join_transaction

    @classmethod
    def of_id(cls, cluster: BrokerInterface, transactional_id: str) -> TransactionCoordinatorService | None:
        """Return the coordinator of a transactional id, or None if no broker currently coordinates it."""
        partitions = cluster.configs.number("transaction.state.log.num.partitions")
        leader = leader_of(cluster, TRANSACTION_STATE, partition_for_key(transactional_id, partitions))
        return None if leader is None else cls.of_broker(cluster, leader)

    def new_producer_id(self) -> int:
        """Return a producer id that is new in the cluster."""
        if not self._ids:
            first = self.cluster.image.next_producer_id
            self._ids = range(first, first + _PRODUCER_IDS)
            record = ProducerIdsRecord(broker_id=self.broker_id, broker_epoch=0, next_producer_id=first + _PRODUCER_IDS)
            self.cluster.commit([record])
        given, self._ids = self._ids[0], self._ids[1:]
        return given

    def verify_or_add_partition(
        self, transactional_id: str, producer: ProducerIdAndEpoch, place: TopicPartition, *, adds: bool
    ) -> ErrorCode:
        """Add a partition to a transaction, or verify that it was added. Return the error for the producer."""
        try:
            if not adds:
                return self.coordinator.verify_partitions(transactional_id, producer, [place])[place]
            now = self.cluster.now
            added = self.coordinator.add_partitions(transactional_id, producer, [place], client_version=2, now=now)
            self.settle()
            added.result()
        except ApiError as error:
            fenced = error.error is ErrorCode.PRODUCER_FENCED
            return ErrorCode.INVALID_PRODUCER_EPOCH if fenced else ErrorCode(error.error)
        return ErrorCode.NONE

    # Markers

    def settle(self, output: CoordinatorOutput | None = None) -> None:
        """Write the markers of ending transactions, and schedule the coordinator's next timer."""
        super().settle(output)
        endings = self.coordinator.endings
        if endings:
            while endings:
                ending = endings.popleft()
                self._mark(ending, ending.partitions)
            super().settle()

    def _mark(self, ending: PendingCompletion, partitions: Collection[TopicPartition]) -> None:
        """Write the markers of an ending transaction to these partitions. Failed writes are retried."""
        waiting = [each for each in partitions if not self._write_marker(ending, each)]
        written = set(partitions).difference(waiting)
        if written:
            self.coordinator.markers_written(ending, written, now=self.cluster.now)
        if waiting and self.coordinator.is_pending(ending):
            self.cluster.call_later(_RETRY_MS, lambda: self._again(ending, waiting))

    def _again(self, ending: PendingCompletion, partitions: list[TopicPartition]) -> None:
        if self.coordinator.is_pending(ending):
            self._mark(ending, partitions)
            self.settle()

    def _write_marker(self, ending: PendingCompletion, place: TopicPartition) -> bool:
        """Write a marker. Also return True if the partition was deleted and needs no marker."""
        cluster = self.cluster
        log = find_log(cluster, *place)
        if log is None:
            return True
        leader = leader_of(cluster, *place)
        if leader is None:
            return False
        error = write_marker(
            cluster,
            place,
            log,
            leader,
            ending.producer,
            committed=ending.committed,
            coordinator_epoch=ending.coordinator_epoch,
            transaction_version=2 if ending.bumps_epoch else 0,
        )
        return error in (ErrorCode.NONE, ErrorCode.INVALID_PRODUCER_EPOCH)


def write_marker(
    cluster: BrokerInterface,
    place: TopicPartition,
    log: PartitionLog,
    leader: int,
    producer: tuple[int, int],
    *,
    committed: bool,
    coordinator_epoch: int,
    transaction_version: int,
) -> ErrorCode:
    """Write the marker that ends a producer's transaction in a partition. Return the error, which may be NONE.

    Raises ``RecordWriteError`` for a producer that no log accepts.
    """
    end: dict[str, Any] = {"committed": committed, "coordinator_epoch": coordinator_epoch}
    if place.topic == CONSUMER_OFFSETS:
        return GroupCoordinatorService.of_broker(cluster, leader).end_transaction(place.partition, producer, **end)
    try:
        epoch = check_in_sync(cluster, log).leader_epoch
        log.append_marker(
            *producer, leader_epoch=epoch, now=cluster.now, transaction_version=transaction_version, **end
        )
    except RequestRefusedError as error:
        return ErrorCode(error.error)
    return ErrorCode.NONE


def _config(cluster: BrokerInterface) -> TransactionConfig:
    number = cluster.configs.number
    names = (each for each in fields_dict(TransactionConfig) if each != "transaction_version")
    return TransactionConfig(
        transaction_version=cluster.image.features.get("transaction.version", 0),
        **{name: number(name.replace("_", ".")) for name in names},
    )


def join_transaction(
    cluster: BrokerInterface,
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
    host = TransactionCoordinatorService.of_id(cluster, transactional_id)
    if host is None:
        raise RequestRefusedError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    place = TopicPartition(log.topic, log.partition)
    error = host.verify_or_add_partition(transactional_id, ProducerIdAndEpoch(*producer), place, adds=adds)
    if error is ErrorCode.TRANSACTION_ABORTABLE and not abortable:
        error = ErrorCode.INVALID_TXN_STATE
    if error is not ErrorCode.NONE:
        raise RequestRefusedError(error)
    return guard
