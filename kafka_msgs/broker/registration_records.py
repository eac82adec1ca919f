"""Metadata records for broker registration, fencing and shutdown, and the initial records of a new cluster.

In Kafka these are in ``ClusterControlManager`` and ``ActivationRecordsGenerator``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from kafka_msgs.broker.config import SECURITY_PROTOCOLS
from kafka_msgs.broker.controller.config_changes import MIN_IN_SYNC
from kafka_msgs.broker.controller.features import STARTING_FEATURES
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafka_msgs.messages.config_record import ConfigRecord
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord
from kafka_msgs.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord

if TYPE_CHECKING:
    from kafka_msgs.broker.cluster import Cluster
    from kafka_msgs.broker.virtual_broker import VirtualBroker

__all__ = [
    "bootstrap_records",
    "controlled_shutdown_record",
    "fence_record",
    "registration_record",
    "shutdown_records",
    "unfence_records",
]

_FENCE: Final = 1
_UNFENCE: Final = -1


def bootstrap_records(cluster: Cluster) -> list[MetadataRecord]:
    """Return the first records of a new cluster, and write them to its directory."""
    features = [FeatureLevelRecord(name=name, feature_level=level) for name, level in STARTING_FEATURES.items()]
    if cluster.storage is not None:
        cluster.storage.write_bootstrap(features, cluster.now)
    # With eligible leader replicas, the controller manages the default of this config itself (KIP-966).
    least = ConfigRecord(
        resource_type=ConfigResourceType.BROKER, name=MIN_IN_SYNC, value=cluster.configs.text(MIN_IN_SYNC)
    )
    return [*features, least]


def registration_record(cluster: Cluster, broker: VirtualBroker) -> RegisterBrokerRecord:
    """Return the registration record of a broker. The broker is fenced."""
    protocols = {listener.name: listener.protocol for listener in cluster.config.listeners}
    endpoints = tuple(
        BrokerEndpoint(name=name, host=host, port=port, security_protocol=SECURITY_PROTOCOLS.index(protocols[name]))
        for name, (host, port) in broker.advertised.items()
    )
    return RegisterBrokerRecord(
        broker_id=broker.id,
        broker_epoch=cluster.image.offset,
        incarnation_id=cluster.new_id(),
        end_points=endpoints,
        rack=cluster.config.rack(cluster.broker_ids.index(broker.id)),
        log_dirs=(broker.log_dir,),
    )


def unfence_records(cluster: Cluster, brokers: Iterable[VirtualBroker]) -> list[MetadataRecord]:
    """Return the records that unfence brokers."""
    return [_changed(cluster, each.id, fenced=_UNFENCE) for each in brokers]


def fence_record(cluster: Cluster, broker_id: int) -> MetadataRecord:
    """Return the record that fences a broker."""
    return _changed(cluster, broker_id, fenced=_FENCE)


def controlled_shutdown_record(cluster: Cluster, broker_id: int) -> MetadataRecord:
    """Return the record that starts the controlled shutdown of a broker."""
    return _changed(cluster, broker_id, in_controlled_shutdown=1)


def shutdown_records(cluster: Cluster) -> list[MetadataRecord]:
    """Return records that mark all brokers as stopped.

    They can then be started when the metadata log is reopened.
    """
    running = [broker.id for broker in cluster.brokers.values() if broker.running]
    return [_changed(cluster, each, fenced=_FENCE, in_controlled_shutdown=1) for each in running]


def _changed(cluster: Cluster, broker_id: int, **changes: Any) -> BrokerRegistrationChangeRecord:
    epoch = cluster.image.brokers[broker_id].epoch
    return BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, **changes)
