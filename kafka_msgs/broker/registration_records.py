"""Metadata records for broker registration, fencing and shutdown, of a new cluster, and for recovery from a directory.

In Kafka these are in ``ClusterControlManager`` and ``ActivationRecordsGenerator``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from uuid import UUID

from kafka_msgs.broker.client_session import VirtualBroker
from kafka_msgs.broker.config import SECURITY_PROTOCOLS, BrokerConfig
from kafka_msgs.broker.controller.config_changes import MIN_IN_SYNC
from kafka_msgs.broker.controller.config_defs import BrokerConfigs
from kafka_msgs.broker.controller.elections import elect_unclean, leader_changes_on_shutdown, replace_replicas
from kafka_msgs.broker.controller.image import NO_LEADER, MetadataDelta, MetadataImage
from kafka_msgs.broker.controller.image_types import STARTING_FEATURES
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafka_msgs.messages.config_record import ConfigRecord
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord
from kafka_msgs.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord

__all__ = [
    "FENCE",
    "UNFENCE",
    "change_record",
    "elect_missing_leaders",
    "feature_records",
    "min_in_sync_record",
    "recover_image",
    "registration_record",
    "stop_all",
]


FENCE: Final = 1
UNFENCE: Final = -1
"""The values of the field ``fenced`` of a change."""


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
            yield [change_record(image, broker.id, fenced=FENCE)]
    yield [*leader_changes_on_shutdown(image, configs)]


def elect_missing_leaders(image: MetadataImage, first: int) -> Iterator[MetadataRecord]:
    """Yield the elections for partitions without a leader: the directory may belong to only one of several nodes.

    Its files contain the records, so one of the brokers here leads the partitions: a replica, or the ``first`` broker.
    """
    for state in [state for topic in image.topics.values() for state in topic.partitions]:
        if state.leader == NO_LEADER:
            has_running = any(map(image.is_alive, state.replicas))
            yield elect_unclean(image, state) if has_running else replace_replicas(image, state, (first,))


def feature_records() -> list[FeatureLevelRecord]:
    """Return the records of the features of a new cluster."""
    return [FeatureLevelRecord(name=name, feature_level=level) for name, level in STARTING_FEATURES.items()]


def min_in_sync_record(configs: BrokerConfigs) -> ConfigRecord:
    """Return the record of the default that the controller manages with eligible leader replicas (KIP-966)."""
    value = configs.text(MIN_IN_SYNC)
    return ConfigRecord(resource_type=ConfigResourceType.BROKER, name=MIN_IN_SYNC, value=value)


def registration_record(
    image: MetadataImage, config: BrokerConfig, broker: VirtualBroker, *, number: int, incarnation_id: UUID
) -> RegisterBrokerRecord:
    """Return the registration record of a broker, ``number`` among the brokers of its cluster. The broker is fenced."""
    protocols = {listener.name: listener.protocol for listener in config.listeners}
    endpoints = tuple(
        BrokerEndpoint(name=name, host=host, port=port, security_protocol=SECURITY_PROTOCOLS.index(protocols[name]))
        for name, (host, port) in broker.advertised.items()
    )
    return RegisterBrokerRecord(
        broker_id=broker.id,
        broker_epoch=image.offset,
        incarnation_id=incarnation_id,
        end_points=endpoints,
        rack=config.rack(number),
        log_dirs=(broker.log_dir,),
    )


def change_record(image: MetadataImage, broker_id: int, **changes: Any) -> BrokerRegistrationChangeRecord:
    """Return the record that changes the registration of a broker: ``fenced`` or ``in_controlled_shutdown``."""
    epoch = image.brokers[broker_id].epoch
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, **changes)
