"""The leaders and the logs of internal topic partitions, which coordinators use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from kafka_msgs.broker.broker_interface import BrokerInterface
from kafka_msgs.broker.cluster_services import ClusterServices
from kafka_msgs.broker.controller.image import NO_LEADER, PartitionRegistration
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
    "iter_batches",
    "iter_records",
    "leader_of",
]

_READ_BYTES = 2**20


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
