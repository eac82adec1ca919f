"""Recovery of a cluster from its directory, before its brokers start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kafka_msgs.broker.controller.config_defs import BrokerConfigs
from kafka_msgs.broker.controller.elections import elect_unclean, leader_changes_on_shutdown, replace_replicas
from kafka_msgs.broker.controller.image import NO_LEADER, MetadataDelta, MetadataImage
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.broker_registration_change_record import BrokerRegistrationChangeRecord

__all__ = ["elect_missing_leaders", "recover_image", "stop_all"]

_FENCE: Final = 1


def recover_image(image: MetadataImage, records: Iterable[MetadataRecord], end_offset: int) -> MetadataDelta:
    """Apply the records of a metadata log that ends at an offset."""
    delta = MetadataDelta()
    for record in records:
        image.apply(record, delta)
    image.offset = end_offset
    return delta


def stop_all(image: MetadataImage, configs: BrokerConfigs) -> Iterator[list[MetadataRecord]]:
    """Yield the records after which all brokers are fenced and all partitions are leaderless: no broker runs yet.

    Each list depends on the image after the one before.
    """
    for broker in tuple(image.brokers.values()):
        if broker.alive:
            yield [BrokerRegistrationChangeRecord(broker_id=broker.id, broker_epoch=broker.epoch, fenced=_FENCE)]
    yield [*leader_changes_on_shutdown(image, configs)]


def elect_missing_leaders(image: MetadataImage, first: int) -> Iterator[MetadataRecord]:
    """Yield the elections for partitions without a leader: the directory may belong to only one of several nodes.

    Its files contain the records, so one of the brokers here leads the partitions: a replica, or the ``first`` broker.
    """
    for state in [state for topic in image.topics.values() for state in topic.partitions]:
        if state.leader == NO_LEADER:
            has_running = any(map(image.is_alive, state.replicas))
            yield elect_unclean(image, state) if has_running else replace_replicas(image, state, (first,))
