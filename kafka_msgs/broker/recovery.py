"""Recovery of a cluster from its directory, before its brokers start."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafka_msgs.broker.controller.elections import elect_unclean, leader_changes_on_shutdown, replace_replicas
from kafka_msgs.broker.controller.image import NO_LEADER, MetadataDelta
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.broker_registration_change_record import BrokerRegistrationChangeRecord

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster

__all__ = ["elect_missing_leaders", "recover_image"]

_FENCE: Final = 1


def recover_image(cluster: Cluster, records: Iterable[MetadataRecord], end_offset: int) -> MetadataDelta:
    """Apply the records of a metadata log that ends at an offset.

    No broker runs yet, so all brokers are fenced and all partitions are leaderless.
    """
    delta = MetadataDelta()
    for record in records:
        cluster.image.apply(record, delta)
    cluster.image.offset = end_offset
    for broker in tuple(cluster.image.brokers.values()):
        if broker.alive:
            fenced = BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE)
            cluster.apply([fenced], delta)
    cluster.apply(leader_changes_on_shutdown(cluster), delta)
    return delta


def elect_missing_leaders(cluster: Cluster) -> None:
    """Elect leaders for partitions without a leader: the directory may belong to only one of several nodes.

    Its files contain the records, so one of the brokers here leads the partitions.
    """
    first = min(cluster.brokers)
    states = [state for topic in cluster.image.topics.values() for state in topic.partitions]
    for state in states:
        if state.leader != NO_LEADER:
            continue
        if any(map(cluster.image.is_alive, state.replicas)):
            cluster.commit([elect_unclean(cluster, state)])
        else:
            cluster.commit([replace_replicas(cluster, state, (first,))])
