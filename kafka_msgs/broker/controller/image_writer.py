"""Conversion of an image into records, as stored in metadata snapshots (KIP-630).

Applying the records to an empty image in this order recreates the image. The order is the same as in Kafka's
``MetadataImage.write``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka_msgs.broker.controller.image import BrokerRegistration, MetadataImage, PartitionRegistration
from kafka_msgs.broker.controller.image_types import METADATA_VERSION
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.client_quota_record import ClientQuotaRecord, EntityData
from kafka_msgs.messages.config_record import ConfigRecord
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord
from kafka_msgs.messages.partition_record import PartitionRecord
from kafka_msgs.messages.producer_ids_record import ProducerIdsRecord
from kafka_msgs.messages.register_broker_record import BrokerEndpoint, RegisterBrokerRecord
from kafka_msgs.messages.topic_record import TopicRecord

__all__ = ["image_records"]

_NOBODY: Final = -1


def image_records(image: MetadataImage) -> Iterator[MetadataRecord]:
    """Yield the records that recreate this image."""
    # The metadata version, which determines the record versions, comes first.
    for name in sorted(image.features, key=lambda each: (each != METADATA_VERSION, each)):
        yield FeatureLevelRecord(name=name, feature_level=image.features[name])
    yield from map(_broker, image.brokers.values())
    yield from image.controllers.values()
    for topic in image.topics.values():
        yield TopicRecord(name=topic.name, topic_id=topic.id)
        yield from map(_partition, topic.partitions)
    for (kind, resource), settings in image.configs.items():
        for name, value in settings.items():
            yield ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)
    for entity, quotas in image.quotas.items():
        parts = tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in sorted(entity, key=str))
        for key, number in quotas.items():
            yield ClientQuotaRecord(entity=parts, key=key, value=number)
    if image.next_producer_id:
        yield ProducerIdsRecord(broker_id=_NOBODY, broker_epoch=_NOBODY, next_producer_id=image.next_producer_id)
    yield from image.acls.values()
    yield from image.scram.values()
    yield from image.delegation_tokens.values()


def _broker(state: BrokerRegistration) -> RegisterBrokerRecord:
    return copy_as(
        RegisterBrokerRecord,
        state,
        broker_id=state.id,
        incarnation_id=state.incarnation,
        broker_epoch=state.epoch,
        end_points=tuple(copy_as(BrokerEndpoint, each, name=name) for name, each in state.endpoints.items()),
    )


def _partition(state: PartitionRegistration) -> PartitionRecord:
    return copy_as(
        PartitionRecord,
        state,
        partition_id=state.partition,
        eligible_leader_replicas=state.eligible_leader_replicas or None,
        last_known_elr=state.last_known_elr or None,
    )
