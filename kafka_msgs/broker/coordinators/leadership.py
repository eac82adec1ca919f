"""Coordinator placement: a coordinator runs on the leader of its internal topic partition.

A coordinator is elected for a partition when its broker becomes the leader, and resigns when another broker does. In
Kafka, ``BrokerMetadataPublisher`` does this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Protocol

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.cluster_services import ClusterServices
from kafka_msgs.broker.controller.image import NO_LEADER, LeaderChange, MetadataDelta, PartitionRegistration
from kafka_msgs.broker.controller.topics import automatic_topic, create_topic
from kafka_msgs.broker.storage import PartitionLog
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.internal_topics.batch_decoding import decode_batches
from kafka_msgs.internal_topics.records import InternalRecord
from kafka_msgs.internal_topics.replay import TransactionEnd
from kafka_msgs.records import Batch, read_batches

__all__ = [
    "auto_create_topic",
    "check_in_sync",
    "find_log",
    "follow_leaders",
    "iter_batches",
    "iter_records",
    "leader_of",
]

_READ_BYTES = 2**20


class HostedCoordinator(Protocol):
    """A coordinator that runs on the leaders of its topic's partitions."""

    def elect(self, partition: int, epoch: int, log: PartitionLog) -> None:
        """Become the coordinator for a partition, at a leader epoch."""

    def resign(self, partition: int, epoch: int | None) -> None:
        """Resign from a partition whose leader changed at an epoch. None means that the partition was deleted."""


def follow_leaders(cluster: BrokerInterface, topic: str, host: Callable[[int], HostedCoordinator]) -> None:
    """Make the coordinators of a topic follow its leaders. ``host`` returns the coordinator of a broker by id."""

    def changed(delta: MetadataDelta) -> None:
        for change in delta.leader_changes():
            if change.topic == topic:
                _move(cluster, change, host)

    cluster.image_listeners.append(changed)


def _move(cluster: BrokerInterface, change: LeaderChange, host: Callable[[int], HostedCoordinator]) -> None:
    before, after = change.before, change.after
    if before is not None and before.leader != NO_LEADER:
        host(before.leader).resign(before.partition, None if after is None else after.leader_epoch)
    if after is not None and after.leader != NO_LEADER:
        log = find_log(cluster, change.topic, after.partition)
        if log is not None:
            host(after.leader).elect(after.partition, after.leader_epoch, log)


def find_log(cluster: BrokerInterface, topic: str, partition: int) -> PartitionLog | None:
    """Return the log of a partition by topic name, or None if the partition does not exist."""
    found = cluster.image.topics.get(topic)
    return None if found is None else cluster.log_manager.get((found.id, partition))


def check_in_sync(cluster: BrokerInterface, log: PartitionLog) -> PartitionRegistration:
    """Return the registration of a partition.

    Raises ``RequestRefusedError`` if it has no leader or too few in-sync replicas.
    """
    state = cluster.image.partition(log.topic_id, log.partition)
    if state is None or state.leader == NO_LEADER:
        raise RequestRefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if len(state.isr) < cluster.log_manager.config_number(log.topic, "min.insync.replicas"):
        raise RequestRefusedError(ErrorCode.NOT_ENOUGH_REPLICAS)
    return state


def auto_create_topic(cluster: ClusterServices, name: str) -> None:
    """Create the topic of a coordinator automatically. If creation fails, the topic stays missing."""
    with suppress(RequestRefusedError):
        new = automatic_topic(cluster.configs, name)
        cluster.commit(create_topic(cluster.image, cluster.configs, cluster.new_id, new))


def leader_of(cluster: BrokerInterface, topic: str, partition: int) -> int | None:
    """Return the broker that leads a partition, or None."""
    found = cluster.image.topics.get(topic)
    if found is None or not 0 <= partition < len(found.partitions):
        return None
    leader = found.partitions[partition].leader
    return None if leader == NO_LEADER else leader


def iter_batches(log: PartitionLog) -> Iterator[Batch]:
    """Yield all batches of a partition."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        found = log.read(offset, _READ_BYTES, max_offset=log.log_end_offset)
        for data in found.data:
            yield from read_batches(data)
        offset = found.next_offset


def iter_records(log: PartitionLog) -> Iterator[InternalRecord | TransactionEnd]:
    """Yield all records of a partition of an internal topic, including transaction ends."""
    return decode_batches(log.topic, iter_batches(log))
