"""The share coordinator of each broker, and the persister that sends share partition state to the right coordinator.

They correspond to Kafka's ``ShareCoordinatorService`` and ``DefaultStatePersister``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from uuid import UUID

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.controller.image import MetadataDelta
from kafka_msgs.broker.controller.internal_topic_configs import INTERNAL_TOPICS, SHARE_GROUP_STATE
from kafka_msgs.broker.coordinators.coordinator_service import CoordinatorService
from kafka_msgs.broker.coordinators.leadership import auto_create_topic, leader_of
from kafka_msgs.broker.share import ShareCoordinator, ShareCoordinatorConfig, SharePartitionKey
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError, RequestRefusedError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key

__all__ = ["ClusterSharePersister", "ShareCoordinatorService", "call_share_coordinator", "find_share_service"]

T = TypeVar("T")


class ShareCoordinatorService(CoordinatorService[ShareCoordinator]):
    """The share coordinator of one broker."""

    topic = SHARE_GROUP_STATE

    def __init__(self, cluster: BrokerInterface, broker_id: int) -> None:
        super().__init__(cluster, broker_id)
        number = cluster.configs.number
        self.coordinator = ShareCoordinator(
            self.append,
            self._partition_count,
            lambda partition, offset: self._logs[partition][0].delete_records(offset),
            config=ShareCoordinatorConfig(
                partitions=_partitions(cluster),
                updates_per_snapshot=number("share.coordinator.snapshot.update.records.per.snapshot"),
                snapshot_interval_ms=number("share.coordinator.cold.partition.snapshot.interval.ms"),
                prune_interval_ms=number("share.coordinator.state.topic.prune.interval.ms"),
                write_timeout_ms=number("share.coordinator.write.timeout.ms"),
            ),
        )

    def apply_delta(self, delta: MetadataDelta) -> None:
        """Delete the state of the share partitions of deleted topics."""
        if delta.deleted:
            self.coordinator.forget_topics(delta.deleted.keys())
            self.settle()

    def _partition_count(self, topic_id: UUID) -> int:
        topic = self.cluster.image.topics_by_id.get(topic_id)
        return 0 if topic is None else len(topic.partitions)


def _partitions(cluster: BrokerInterface) -> int:
    """Return the number of partitions of the topic, or its configured number before creation."""
    topic = cluster.image.topics.get(SHARE_GROUP_STATE)
    return INTERNAL_TOPICS[SHARE_GROUP_STATE].partitions(cluster.configs) if topic is None else len(topic.partitions)


def find_share_service(cluster: BrokerInterface, key: SharePartitionKey) -> ShareCoordinatorService:
    """Return the coordinator of a share partition. The topic is created if it is missing.

    Raises ``RequestRefusedError`` with COORDINATOR_NOT_AVAILABLE if no broker currently coordinates it.
    """
    if SHARE_GROUP_STATE not in cluster.image.topics:
        auto_create_topic(cluster, SHARE_GROUP_STATE)
    leader = leader_of(cluster, SHARE_GROUP_STATE, partition_for_key(key.text, _partitions(cluster)))
    if leader is None:
        raise RequestRefusedError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return ShareCoordinatorService.of_broker(cluster, leader)


def call_share_coordinator(
    cluster: BrokerInterface, key: SharePartitionKey, request: Callable[[ShareCoordinator], Future[T]]
) -> T:
    """Return the result of a request to the coordinator of a share partition. Raises ``ApiError``."""
    service = find_share_service(cluster, key)
    future = request(service.coordinator)
    service.settle()
    return future.result()


class ClusterSharePersister:
    """The share partition state, for group coordinators. Its methods raise ``GroupError``."""

    def __init__(self, cluster: BrokerInterface) -> None:
        self._cluster = cluster

    def initialize(self, group_id: str, topic_id: UUID, partition: int, *, state_epoch: int, start_offset: int) -> None:
        """Create the state of a share partition."""
        key, now = SharePartitionKey(group_id, topic_id, partition), self._cluster.now
        epoch, start = state_epoch, start_offset
        self._call(key, lambda each: each.initialize_state(key, state_epoch=epoch, start_offset=start, now=now))

    def delete(self, group_id: str, topic_id: UUID, partition: int) -> None:
        """Delete the state of a share partition."""
        key = SharePartitionKey(group_id, topic_id, partition)
        self._call(key, lambda each: each.delete_state(key, now=self._cluster.now))

    def _call(self, key: SharePartitionKey, request: Callable[[ShareCoordinator], Future[None]]) -> None:
        try:
            call_share_coordinator(self._cluster, key, request)
        except ApiError as error:
            raise GroupError(error.error, error.message) from error
