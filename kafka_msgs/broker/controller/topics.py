"""Topic creation, topic deletion and new partitions, as metadata records.

Checks, error codes and error messages match Kafka's ``ReplicationControlManager``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Final
from uuid import UUID

from attrs import frozen

from kafka_msgs.broker.controller.config_defs import TOPIC, BrokerConfigs, config_keys
from kafka_msgs.broker.controller.image import BrokerRegistration, MetadataImage, TopicImage
from kafka_msgs.broker.controller.internal_topic_configs import INTERNAL_TOPICS
from kafka_msgs.broker.storage.metadata_batches import METADATA_TOPIC
from kafka_msgs.enums import ConfigResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.config_record import ConfigRecord
from kafka_msgs.messages.partition_record import PartitionRecord
from kafka_msgs.messages.remove_topic_record import RemoveTopicRecord
from kafka_msgs.messages.topic_record import TopicRecord

__all__ = [
    "TopicToCreate",
    "add_partitions",
    "automatic_topic",
    "check_new_name",
    "check_not_reserved",
    "check_topic_configs",
    "check_topic_name",
    "create_topic",
    "delete_topic",
    "missing_topic_error",
    "topic_records",
]

_invalid_topic: Final = partial(RequestRefusedError, ErrorCode.INVALID_TOPIC_EXCEPTION)
_invalid_partitions: Final = partial(RequestRefusedError, ErrorCode.INVALID_PARTITIONS)
_invalid_config: Final = partial(RequestRefusedError, ErrorCode.INVALID_CONFIG)
_bad_assignment: Final = partial(RequestRefusedError, ErrorCode.INVALID_REPLICA_ASSIGNMENT)


def _place_replicas(image: MetadataImage, partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
    """Return the replicas of each new partition. The number of existing partitions rotates the order of the brokers.

    Only running brokers receive replicas, unless too few brokers run. Raises ``RequestRefusedError`` with
    INVALID_REPLICATION_FACTOR.
    """
    brokers, first = [image.brokers[each] for each in sorted(image.brokers)], image.partition_count
    running = [broker for broker in brokers if broker.alive and not broker.in_controlled_shutdown]
    if not running:
        raise _refused(replication_factor, "All brokers are currently fenced or in controlled shutdown.")
    if replication_factor > len(brokers):
        reason = (
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
        raise _refused(replication_factor, reason)
    order = _by_turns(running) + _by_turns([broker for broker in brokers if broker not in running])
    count = len(order) if replication_factor > len(running) else len(running)
    return [
        tuple(order[(first + partition + replica) % count] for replica in range(replication_factor))
        for partition in range(partitions)
    ]


def _by_turns(brokers: Sequence[BrokerRegistration]) -> list[int]:
    """Return the broker ids, alternating between racks."""
    racks: dict[str | None, list[int]] = {}
    for broker in brokers:
        racks.setdefault(broker.rack, []).append(broker.id)
    return [broker for turn in zip_longest(*racks.values()) for broker in turn if broker is not None]


def _refused(replication_factor: int, reason: str) -> RequestRefusedError:
    message = f"Unable to replicate the partition {replication_factor} time(s): {reason}"
    return RequestRefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


MAX_PARTITIONS: Final = 10_000
"""The maximum number of partitions that one request may create, as in Kafka."""

_LONGEST_NAME: Final = 249
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_DEFAULT: Final = -1


@frozen(kw_only=True)
class TopicToCreate:
    """A topic to create.

    -1 selects the cluster default. ``assignments`` maps partitions to replicas; both numbers must then be -1.
    """

    name: str
    num_partitions: int = _DEFAULT
    replication_factor: int = _DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Mapping[str, str | None] = {}


def create_topic(
    image: MetadataImage, configs: BrokerConfigs, new_id: Callable[[], UUID], new: TopicToCreate
) -> list[MetadataRecord]:
    """Return the records that create a topic. Raises ``RequestRefusedError``."""
    check_new_name(image, new.name)
    return topic_records(image, configs, new_id, new)


def check_new_name(image: MetadataImage, name: str) -> None:
    """Raise ``RequestRefusedError`` for a name that is invalid or taken."""
    check_topic_name(name)
    if name in image.topics:
        raise RequestRefusedError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    for other in image.colliding_names(name):  # Their metrics would collide.
        raise _invalid_topic(f"Topic '{name}' collides with existing topic: {other}")


def check_not_reserved(name: str) -> None:
    """Raise ``RequestRefusedError`` with INVALID_REQUEST for the topic of the metadata log, which is reserved."""
    if name == METADATA_TOPIC:
        message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, message)


def topic_records(
    image: MetadataImage, configs: BrokerConfigs, new_id: Callable[[], UUID], new: TopicToCreate
) -> list[MetadataRecord]:
    """Return the records that create a topic with an already validated name. Raises ``RequestRefusedError``."""
    check_not_reserved(new.name)
    overrides = check_topic_configs(new.configs)
    replicas = _assigned(image, new) if new.assignments else _placed(image, configs, new)
    topic_id = new_id()
    return [
        TopicRecord(name=new.name, topic_id=topic_id),
        *(
            ConfigRecord(resource_type=ConfigResourceType.TOPIC, resource_name=new.name, name=name, value=value)
            for name, value in overrides.items()
        ),
        *(_partition(image, topic_id, number, each) for number, each in enumerate(replicas)),
    ]


def delete_topic(topic: TopicImage) -> list[MetadataRecord]:
    """Return the records that delete a topic."""
    return [RemoveTopicRecord(topic_id=topic.id)]


def add_partitions(
    image: MetadataImage, topic: TopicImage, count: int, assignments: Sequence[Sequence[int]] | None
) -> list[MetadataRecord]:
    """Return the records that increase the number of partitions to ``count``. Raises ``RequestRefusedError``."""
    present = len(topic.partitions)
    if count == present:
        raise _invalid_partitions(f"Topic already has {present} partition(s).")
    if count < present:
        raise _invalid_partitions(
            f"The topic {topic.name} currently has {present} partition(s); {count} would not be an increase."
        )
    added = count - present
    factor = len(topic.partitions[0].replicas)
    if assignments is None:
        replicas = _place_replicas(image, added, factor)
    else:
        if len(assignments) != added:
            raise _bad_assignment(
                f"Attempted to add {added} additional partition(s), but only {len(assignments)} assignment(s) were "
                "specified."
            )
        replicas = [check_replicas(image, each, factor) for each in assignments]
        for number, each in enumerate(replicas, present):
            _check_some_alive(image, number, each)
    return [_partition(image, topic.id, present + number, each) for number, each in enumerate(replicas)]


def automatic_topic(configs: BrokerConfigs, name: str) -> TopicToCreate:
    """Return the definition of an auto-created topic: an internal topic, or one with the cluster defaults."""
    internal = INTERNAL_TOPICS.get(name)
    if internal is None:
        return TopicToCreate(name=name)
    own = {topic_config: configs.text(source) or "" for topic_config, source in internal.settings.items()}
    return TopicToCreate(
        name=name,
        num_partitions=internal.partitions(configs),
        replication_factor=configs.number(f"{internal.prefix}.replication.factor"),
        configs={**internal.fixed, **own},
    )


def check_topic_name(name: str) -> None:
    """Raise ``RequestRefusedError`` with INVALID_TOPIC_EXCEPTION for an invalid topic name."""
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > _LONGEST_NAME:
        reason = f"the length of '{name}' is longer than the max allowed length {_LONGEST_NAME}"
    elif not _NAME.fullmatch(name):
        reason = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    if reason is not None:
        raise _invalid_topic(f"Topic name is invalid: {reason}")


def missing_topic_error(name: str) -> ErrorCode:
    """Return the error for a topic name that does not exist."""
    try:
        check_topic_name(name)
    except RequestRefusedError as error:
        return ErrorCode(error.error)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def check_topic_configs(configs: Mapping[str, str | None]) -> dict[str, str]:
    """Return validated topic configs. Raises ``RequestRefusedError`` with INVALID_CONFIG."""
    known = config_keys(TOPIC)
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        raise _invalid_config(f"Null value not supported for topic configs: {','.join(nulls)}")
    checked = {name: value for name, value in configs.items() if value is not None}
    for name in checked:
        if name not in known:
            raise _invalid_config(f"Unknown topic config name: {name}")
    values = {name: known[name].check(value) for name, value in checked.items()}
    low, high = (values.get(f"{side}.compaction.lag.ms") for side in ("min", "max"))
    if low is not None and high is not None and low > high:
        raise _invalid_config(
            f"conflict topic config setting min.compaction.lag.ms ({low}) > max.compaction.lag.ms ({high})"
        )
    if values.get("remote.storage.enable"):
        raise _invalid_config(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log "
            "storage."
        )
    return checked


def _assigned(image: MetadataImage, new: TopicToCreate) -> list[tuple[int, ...]]:
    """Return the requested replica assignments, in partition order."""
    if new.replication_factor != _DEFAULT:
        message = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, message)
    if new.num_partitions != _DEFAULT:
        message = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, message)
    found: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for partition, asked in new.assignments:
        if partition in found:
            raise _bad_assignment(f"Found multiple manual partition assignments for partition {partition}")
        replicas = found[partition] = check_replicas(image, asked, factor)
        factor = len(replicas)
        _check_some_alive(image, partition, replicas)
    if sorted(found) != list(range(len(found))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [found[partition] for partition in sorted(found)]


def _placed(image: MetadataImage, configs: BrokerConfigs, new: TopicToCreate) -> list[tuple[int, ...]]:
    if new.replication_factor == 0 or new.replication_factor < _DEFAULT:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise RequestRefusedError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if new.num_partitions == 0 or new.num_partitions < _DEFAULT:
        raise _invalid_partitions("Number of partitions was set to an invalid non-positive value.")
    partitions, factor = new.num_partitions, new.replication_factor
    if partitions == _DEFAULT:
        partitions = configs.number("num.partitions")
    if factor == _DEFAULT:
        factor = configs.number("default.replication.factor")
    return _place_replicas(image, partitions, factor)


def check_replicas(image: MetadataImage, replicas: Sequence[int], factor: int | None) -> tuple[int, ...]:
    if not replicas:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    for each in sorted(replicas):
        if each not in image.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {each}, but no such broker is registered."
            )
        if replicas.count(each) > 1:
            raise _bad_assignment(f"The manual partition assignment includes the broker {each} more than once.")
    if factor is not None and len(replicas) != factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )
    return tuple(replicas)


def _check_some_alive(image: MetadataImage, partition: int, replicas: Iterable[int]) -> None:
    if not any(map(image.is_alive, replicas)):
        raise _bad_assignment(
            f"All brokers specified in the manual partition assignment for partition {partition} are fenced or in "
            "controlled shutdown."
        )


def _partition(image: MetadataImage, topic_id: UUID, number: int, replicas: tuple[int, ...]) -> PartitionRecord:
    isr = tuple(each for each in replicas if image.is_alive(each))
    return PartitionRecord(
        partition_id=number,
        topic_id=topic_id,
        replicas=replicas,
        isr=isr,
        leader=isr[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=tuple(image.brokers[each].log_dirs[0] for each in replicas),
    )
