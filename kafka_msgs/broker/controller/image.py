"""The metadata image of the cluster: brokers, topics, partitions, configs and security.

The image changes only through records (``MetadataImage.apply``), so replaying the metadata log produces the same image.
``image_types`` defines its parts. The image corresponds to Kafka's ``org.apache.kafka.image`` package.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias
from uuid import UUID

from attrs import Factory, define, evolve, field

from kafka_msgs.broker.controller.image_types import (
    NO_LEADER,
    BrokerRegistration,
    Endpoint,
    LeaderChange,
    MetadataDelta,
    PartitionKey,
    PartitionRegistration,
    TopicImage,
)
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.errors import InternalError
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.access_control_entry_record import AccessControlEntryRecord
from kafka_msgs.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kafka_msgs.messages.clear_elr_record import ClearElrRecord
from kafka_msgs.messages.client_quota_record import ClientQuotaRecord
from kafka_msgs.messages.config_record import ConfigRecord
from kafka_msgs.messages.delegation_token_record import DelegationTokenRecord
from kafka_msgs.messages.feature_level_record import FeatureLevelRecord
from kafka_msgs.messages.partition_change_record import PartitionChangeRecord
from kafka_msgs.messages.partition_record import PartitionRecord
from kafka_msgs.messages.producer_ids_record import ProducerIdsRecord
from kafka_msgs.messages.register_broker_record import RegisterBrokerRecord
from kafka_msgs.messages.register_controller_record import RegisterControllerRecord
from kafka_msgs.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kafka_msgs.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kafka_msgs.messages.remove_topic_record import RemoveTopicRecord
from kafka_msgs.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kafka_msgs.messages.topic_record import TopicRecord
from kafka_msgs.messages.unregister_broker_record import UnregisterBrokerRecord
from kafka_msgs.messages.unregister_controller_record import UnregisterControllerRecord
from kafka_msgs.messages.user_scram_credential_record import UserScramCredentialRecord

__all__ = [
    "NO_LEADER",
    "BrokerRegistration",
    "Endpoint",
    "LeaderChange",
    "MetadataDelta",
    "MetadataImage",
    "PartitionKey",
    "PartitionRegistration",
    "TopicImage",
]

_UNCHANGED_LEADER: Final = -2

Applier: TypeAlias = "Callable[[MetadataImage, Any, MetadataDelta], None]"


@define
class MetadataImage:
    """The state of the cluster. Only ``apply`` changes it."""

    brokers: dict[int, BrokerRegistration] = Factory(dict)
    topics: dict[str, TopicImage] = Factory(dict)
    topics_by_id: dict[UUID, TopicImage] = Factory(dict)
    configs: dict[tuple[int, str], dict[str, str]] = Factory(dict)
    """Config overrides by resource type (``ConfigResourceType``) and name."""
    features: dict[str, int] = Factory(dict)
    acls: dict[UUID, AccessControlEntryRecord] = Factory(dict)
    scram: dict[tuple[str, int], UserScramCredentialRecord] = Factory(dict)
    """SCRAM credentials, by user and mechanism."""
    quotas: dict[frozenset[tuple[str, str | None]], dict[str, float]] = Factory(dict)
    """Quotas, by the types and names of their entity. The name None is the default entity of a type."""
    controllers: dict[int, RegisterControllerRecord] = Factory(dict)
    delegation_tokens: dict[str, DelegationTokenRecord] = Factory(dict)
    """Delegation tokens by id. Clients cannot use them."""
    next_producer_id: int = 0
    partition_count: int = 0
    """The total number of partitions."""
    offset: int = field(default=0)
    """The number of applied records, which is the offset of the next one."""
    _by_metric_name: dict[str, list[str]] = Factory(dict)
    """Topics whose names contain dots or underscores, by their name in metrics."""

    def apply(self, record: MetadataRecord, delta: MetadataDelta) -> None:
        """Apply a record. Raises ``InternalError`` for an unknown record type."""
        applier = _APPLIERS.get(type(record))
        if applier is not None:
            applier(self, record, delta)
        elif record.INFO.name not in _IGNORED:
            raise InternalError(reason=f"{record.INFO.name} is not a record of the image")
        delta.records.append(record)
        self.offset += 1

    def partition(self, topic_id: UUID, partition: int) -> PartitionRegistration | None:
        """Return a partition, or None if it does not exist."""
        topic = self.topics_by_id.get(topic_id)
        return topic.partitions[partition] if topic and 0 <= partition < len(topic.partitions) else None

    def colliding_names(self, name: str) -> Sequence[str]:
        """Return the topics whose names differ from ``name`` only in dots and underscores."""
        return self._by_metric_name.get(_metric_name(name), ()) if _collides(name) else ()

    def alive(self) -> list[BrokerRegistration]:
        """Return the running brokers, by id."""
        return [self.brokers[each] for each in sorted(self.brokers) if self.brokers[each].alive]

    def is_alive(self, broker_id: int) -> bool:
        """Return whether a broker is registered and running."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.alive


def _metric_name(topic: str) -> str:
    """Return the name of a topic in metrics, where dots are replaced."""
    return topic.replace(".", "_")


def _collides(topic: str) -> bool:
    return "." in topic or "_" in topic


def _register_broker(image: MetadataImage, record: RegisterBrokerRecord, delta: MetadataDelta) -> None:
    image.brokers[record.broker_id] = copy_as(
        BrokerRegistration,
        record,
        id=record.broker_id,
        epoch=record.broker_epoch,
        incarnation=record.incarnation_id,
        endpoints={each.name: copy_as(Endpoint, each) for each in record.end_points},
    )
    delta.brokers.add(record.broker_id)


def _change_broker(image: MetadataImage, record: BrokerRegistrationChangeRecord, delta: MetadataDelta) -> None:
    broker = image.brokers[record.broker_id]
    image.brokers[record.broker_id] = evolve(
        broker,
        fenced=record.fenced > 0 if record.fenced else broker.fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown > 0,
        log_dirs=record.log_dirs or broker.log_dirs,
    )
    delta.brokers.add(record.broker_id)


def _unregister_broker(image: MetadataImage, record: UnregisterBrokerRecord, delta: MetadataDelta) -> None:
    image.brokers.pop(record.broker_id, None)
    delta.brokers.add(record.broker_id)


def _add_topic(image: MetadataImage, record: TopicRecord, delta: MetadataDelta) -> None:
    topic = TopicImage(record.name, record.topic_id)
    image.topics[topic.name] = image.topics_by_id[topic.id] = topic
    if _collides(topic.name):
        image._by_metric_name.setdefault(_metric_name(topic.name), []).append(topic.name)
    delta.created[topic.id] = topic


def _remove_topic(image: MetadataImage, record: RemoveTopicRecord, delta: MetadataDelta) -> None:
    topic = image.topics_by_id.pop(record.topic_id)
    del image.topics[topic.name]
    image.partition_count -= len(topic.partitions)
    if _collides(topic.name):
        names = image._by_metric_name[_metric_name(topic.name)]
        names.remove(topic.name)
        if not names:
            del image._by_metric_name[_metric_name(topic.name)]
    for state in topic.partitions:
        delta.note(topic.name, state.key, state, None)
    if image.configs.pop((ConfigResourceType.TOPIC, topic.name), None) is not None:
        delta.configs.add((ConfigResourceType.TOPIC, topic.name))
    if delta.created.pop(topic.id, None) is None:
        delta.deleted[topic.id] = topic


def _add_partition(image: MetadataImage, record: PartitionRecord, delta: MetadataDelta) -> None:
    topic = image.topics_by_id[record.topic_id]
    state = copy_as(
        PartitionRegistration,
        record,
        partition=record.partition_id,
        eligible_leader_replicas=record.eligible_leader_replicas or (),
        last_known_elr=record.last_known_elr or (),
    )
    delta.note(topic.name, state.key, None, state)
    image.partition_count += 1
    # Snapshots may list partitions in any order.
    insort(topic.partitions, state, key=attrgetter("partition"))


def _change_partition(image: MetadataImage, record: PartitionChangeRecord, delta: MetadataDelta) -> None:
    topic = image.topics_by_id[record.topic_id]
    before = topic.partitions[record.partition_id]
    changes: dict[str, Any] = {name: getattr(record, name) for name in _CHANGEABLE if getattr(record, name) is not None}
    if record.leader_recovery_state >= 0:
        changes["leader_recovery_state"] = record.leader_recovery_state
    # Each record with a leader is an election, even if the leader stays the same.
    if record.leader != _UNCHANGED_LEADER:
        changes.update(leader=record.leader, leader_epoch=before.leader_epoch + 1)
    after = evolve(before, partition_epoch=before.partition_epoch + 1, **changes)
    delta.note(topic.name, after.key, before, after)
    topic.partitions[record.partition_id] = after


_CHANGEABLE: Final = (
    "isr",
    "replicas",
    "adding_replicas",
    "removing_replicas",
    "directories",
    "eligible_leader_replicas",
    "last_known_elr",
)


def _clear_elr(image: MetadataImage, record: ClearElrRecord, delta: MetadataDelta) -> None:
    """Clear the eligible leader replicas of a topic, or of all topics."""
    for topic in (image.topics[record.topic_name],) if record.topic_name else image.topics.values():
        for at, before in enumerate(topic.partitions):
            topic.partitions[at] = after = evolve(before, eligible_leader_replicas=(), last_known_elr=())
            delta.note(topic.name, after.key, before, after)


def _set_config(image: MetadataImage, record: ConfigRecord, delta: MetadataDelta) -> None:
    key = record.resource_type, record.resource_name
    settings = image.configs.setdefault(key, {})
    if record.value is None:
        settings.pop(record.name, None)
    else:
        settings[record.name] = record.value
    if not settings:
        del image.configs[key]
    delta.configs.add(key)


def _set_feature(image: MetadataImage, record: FeatureLevelRecord, delta: MetadataDelta) -> None:
    if record.feature_level:
        image.features[record.name] = record.feature_level
    else:
        image.features.pop(record.name, None)


def _set_producer_ids(image: MetadataImage, record: ProducerIdsRecord, delta: MetadataDelta) -> None:
    image.next_producer_id = record.next_producer_id


def _put(attribute: str, *key: str) -> Applier:
    """Return the applier that stores a record in a dict of the image, by one or several of the record's fields."""

    def apply(image: MetadataImage, record: MetadataRecord, delta: MetadataDelta) -> None:
        getattr(image, attribute)[attrgetter(*key)(record)] = record

    return apply


def _remove(attribute: str, *key: str) -> Applier:
    """Return the applier that removes an entry from a dict of the image, if it exists."""

    def apply(image: MetadataImage, record: MetadataRecord, delta: MetadataDelta) -> None:
        getattr(image, attribute).pop(attrgetter(*key)(record), None)

    return apply


def _set_quota(image: MetadataImage, record: ClientQuotaRecord, delta: MetadataDelta) -> None:
    entity = frozenset((each.entity_type, each.entity_name) for each in record.entity)
    quotas = image.quotas.setdefault(entity, {})
    if record.remove:
        quotas.pop(record.key, None)
    else:
        quotas[record.key] = record.value
    if not quotas:
        del image.quotas[entity]


_IGNORED: Final = frozenset(
    {"AbortTransactionRecord", "BeginTransactionRecord", "EndTransactionRecord"}
    | {"NoOpRecord", "ZkMigrationStateRecord"}
)
"""Record types of the metadata log that do not affect this image."""

_APPLIERS: Final[Mapping[type[MetadataRecord], Applier]] = {
    AccessControlEntryRecord: _put("acls", "id"),
    BrokerRegistrationChangeRecord: _change_broker,
    ClearElrRecord: _clear_elr,
    ClientQuotaRecord: _set_quota,
    ConfigRecord: _set_config,
    DelegationTokenRecord: _put("delegation_tokens", "token_id"),
    FeatureLevelRecord: _set_feature,
    PartitionChangeRecord: _change_partition,
    PartitionRecord: _add_partition,
    ProducerIdsRecord: _set_producer_ids,
    RegisterBrokerRecord: _register_broker,
    RegisterControllerRecord: _put("controllers", "controller_id"),
    RemoveAccessControlEntryRecord: _remove("acls", "id"),
    RemoveDelegationTokenRecord: _remove("delegation_tokens", "token_id"),
    RemoveTopicRecord: _remove_topic,
    RemoveUserScramCredentialRecord: _remove("scram", "name", "mechanism"),
    TopicRecord: _add_topic,
    UnregisterBrokerRecord: _unregister_broker,
    UnregisterControllerRecord: _remove("controllers", "controller_id"),
    UserScramCredentialRecord: _put("scram", "name", "mechanism"),
}
