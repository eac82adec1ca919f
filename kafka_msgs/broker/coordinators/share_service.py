"""The share coordinator of each broker, and the persister that sends share partition state to the right coordinator.

They correspond to Kafka's ``ShareCoordinatorService`` and ``DefaultStatePersister``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from kafka_msgs.broker.controller.image import MetadataDelta
from kafka_msgs.broker.controller.internal_topic_configs import INTERNAL_TOPICS, SHARE_GROUP_STATE
from kafka_msgs.broker.controller.topics import auto_create_topic
from kafka_msgs.broker.coordinators.leadership import check_in_sync, follow_leaders, iter_batches, leader_of
from kafka_msgs.broker.share import ShareCoordinator, SharePartitionKey
from kafka_msgs.broker.storage import AppendOrigin, PartitionLog
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError, RequestRefusedError
from kafka_msgs.groups.runtime.coordinator_partition import partition_for_key
from kafka_msgs.groups.runtime.output import RecordAppend
from kafka_msgs.groups.runtime.record_batches import encode_batch
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import TopicRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.records import RecordBatch

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.groups.runtime.timer_queue import TimerHandle

__all__ = ["ClusterSharePersister", "ShareCoordinatorService", "share_coordinator"]

_PRUNE_MS = "share.coordinator.state.topic.prune.interval.ms"
_SNAPSHOT_MS = "share.coordinator.cold.partition.snapshot.interval.ms"


class ShareCoordinatorService:
    """The share coordinator of one broker."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._logs: dict[int, tuple[PartitionLog, int]] = {}
        self._timers: list[TimerHandle] = []
        self.coordinator = ShareCoordinator(
            self._append,
            self._partition_count,
            partitions=_partitions(cluster),
            updates_per_snapshot=cluster.configs.number("share.coordinator.snapshot.update.records.per.snapshot"),
        )

    @staticmethod
    def attach(cluster: Cluster) -> None:
        """Make the share coordinators of a cluster follow its topics and the leaders of their own topic."""
        cluster.image_listeners.append(partial(_changed, cluster))
        follow_leaders(cluster, SHARE_GROUP_STATE, partial(ShareCoordinatorService.on, cluster))

    @staticmethod
    def on(cluster: Cluster, broker_id: int) -> ShareCoordinatorService:
        """Return the share coordinator of a broker."""
        return cluster.brokers[broker_id].component(ShareCoordinatorService, lambda: ShareCoordinatorService(cluster))

    # Leadership

    def elect(self, partition: int, epoch: int, log: PartitionLog) -> None:
        """Load a partition that this broker leads."""
        self._logs[partition] = (log, epoch)
        self.coordinator.elect(partition, epoch)
        self._cluster.long_work.begin(self._load(partition, log, epoch))
        if len(self._logs) == 1:
            self._plan()

    def _load(self, partition: int, log: PartitionLog, epoch: int) -> Iterator[None]:
        """Load a partition one batch at a time. Stop when another broker becomes the leader."""
        for batch in (each for each in iter_batches(log) if isinstance(each, RecordBatch)):
            if self._logs.get(partition) != (log, epoch):
                return
            records = decode_batches(log.topic, [batch])
            states = (each for each in records if not isinstance(each, TransactionEnd))
            self.coordinator.load(partition, states, batch.base_offset)
            yield
        if self._logs.get(partition) == (log, epoch):
            self.coordinator.loaded(partition)

    def resign(self, partition: int, epoch: int | None) -> None:
        """Unload a partition that another broker leads."""
        self._logs.pop(partition, None)
        self.coordinator.resign(partition, epoch)
        if not self._logs:
            self._rest()

    # Interface for the coordinator

    def _append(self, partition: int, record: TopicRecord) -> int:
        log, epoch = self._logs[partition]
        now = self._cluster.now
        check_in_sync(self._cluster, log)
        data = encode_batch(RecordAppend(partition=partition, records=(record,)), timestamp=now)
        return log.append(data, leader_epoch=epoch, now=now, origin=AppendOrigin.COORDINATOR).last_offset

    def _partition_count(self, topic_id: UUID) -> int:
        topic = self._cluster.image.topics_by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)

    # Time

    def _plan(self) -> None:
        self._rest()
        self._timers = [
            self._cluster.call_later(self._cluster.configs.number(setting), work)
            for setting, work in ((_PRUNE_MS, self._prune), (_SNAPSHOT_MS, self._snapshot))
        ]

    def _rest(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []

    def _prune(self) -> None:
        """Delete records that no share partition needs."""
        self._timers[0] = self._cluster.call_later(self._cluster.configs.number(_PRUNE_MS), self._prune)
        for partition, offset in self.coordinator.needed_from():
            self._logs[partition][0].delete_records(offset)

    def _snapshot(self) -> None:
        interval = self._cluster.configs.number(_SNAPSHOT_MS)
        self._timers[1] = self._cluster.call_later(interval, self._snapshot)
        self.coordinator.snapshot_cold(interval, now=self._cluster.now)


def _changed(cluster: Cluster, delta: MetadataDelta) -> None:
    if delta.deleted:
        for broker in cluster.brokers.values():
            host = broker.components.get(ShareCoordinatorService)
            if host is not None:
                host.coordinator.forget_topics(delta.deleted.keys())


def _partitions(cluster: Cluster) -> int:
    """Return the number of partitions of the topic, or its configured number before creation."""
    topic = cluster.image.topics.get(SHARE_GROUP_STATE)
    return INTERNAL_TOPICS[SHARE_GROUP_STATE].partitions(cluster.configs) if topic is None else len(topic.partitions)


def share_coordinator(cluster: Cluster, key: SharePartitionKey) -> ShareCoordinator:
    """Return the coordinator of a share partition. The topic is created if it is missing.

    Raises ``RequestRefusedError`` with COORDINATOR_NOT_AVAILABLE if no broker currently coordinates it.
    """
    if SHARE_GROUP_STATE not in cluster.image.topics:
        auto_create_topic(cluster, SHARE_GROUP_STATE)
    leader = leader_of(cluster, SHARE_GROUP_STATE, partition_for_key(key.text, _partitions(cluster)))
    if leader is None:
        raise RequestRefusedError(error=ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return ShareCoordinatorService.on(cluster, leader).coordinator


class ClusterSharePersister:
    """The share partition state, for group coordinators."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def initialize(self, group_id: str, topic_id: UUID, partition: int, *, state_epoch: int, start_offset: int) -> None:
        """Create the state of a share partition. Raises ``GroupError``."""
        key = SharePartitionKey(group_id, topic_id, partition)
        try:
            coordinator = share_coordinator(self._cluster, key)
            coordinator.initialize(key, state_epoch=state_epoch, start_offset=start_offset, now=self._cluster.now)
        except RequestRefusedError as error:
            raise GroupError(error=error.error, message=error.message) from error

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Delete the state of a share partition. Raises ``GroupError``."""
        key = SharePartitionKey(group_id, topic_id, partition)
        try:
            share_coordinator(self._cluster, key).delete(key)
        except RequestRefusedError as error:
            raise GroupError(error=error.error, message=error.message) from error
