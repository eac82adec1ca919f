"""Leader elections and in-sync replicas: changes when brokers stop or start, and on request.

A partition keeps its leader while that broker runs. Otherwise the first in-sync replica in assignment order becomes the
leader, then an eligible leader replica (KIP-966), and any other replica only if the topic allows unclean elections.
Replication is virtual: a replica is in sync as soon as its broker runs. The rules match Kafka's
``PartitionChangeBuilder``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kafka_msgs.broker.controller.config_defs import BrokerConfigs
from kafka_msgs.broker.controller.config_entries import effective_topic_configs
from kafka_msgs.broker.controller.image import NO_LEADER, MetadataImage, PartitionRegistration, TopicImage
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.partition_change_record import PartitionChangeRecord

__all__ = [
    "elect_leader",
    "elect_preferred",
    "elect_unclean",
    "leader_changes_on_shutdown",
    "leader_changes_on_start",
    "leader_changes_on_stop",
    "replace_replicas",
]


def leader_changes_on_stop(image: MetadataImage, configs: BrokerConfigs, broker_id: int) -> list[PartitionChangeRecord]:
    """Return the partition changes when a broker stops. The image may still list it as running."""
    alive = {broker.id for broker in image.alive()} - {broker_id}
    led = (each for each in _partitions(image, (broker_id,)) if broker_id in (*each[1].isr, each[1].leader))
    return list(_changes(image, configs, led, alive))


def leader_changes_on_start(
    image: MetadataImage, configs: BrokerConfigs, broker_ids: Collection[int]
) -> list[PartitionChangeRecord]:
    """Return the partition changes when brokers start. The image may still list them as stopped."""
    alive = {broker.id for broker in image.alive()} | set(broker_ids)
    return list(_changes(image, configs, _partitions(image, broker_ids), alive))


def leader_changes_on_shutdown(image: MetadataImage, configs: BrokerConfigs) -> list[PartitionChangeRecord]:
    """Return the partition changes when no broker runs: all leaders are removed, and in-sync replicas stay eligible."""
    every = ((topic, state) for topic in image.topics.values() for state in topic.partitions)
    return list(_changes(image, configs, every, ()))


def elect_leader(state: PartitionRegistration, broker_id: int) -> PartitionChangeRecord:
    """Return the record that elects an in-sync replica.

    Raises ``RequestRefusedError`` with PREFERRED_LEADER_NOT_AVAILABLE if the broker cannot become the leader.
    """
    if broker_id not in state.isr:
        raise RequestRefusedError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return _record(state, leader=broker_id)


def elect_preferred(image: MetadataImage, state: PartitionRegistration) -> PartitionChangeRecord:
    """Return the record that elects the preferred replica.

    Raises ``RequestRefusedError`` with ELECTION_NOT_NEEDED or PREFERRED_LEADER_NOT_AVAILABLE.
    """
    preferred = state.replicas[0]
    if state.leader == preferred:
        raise RequestRefusedError(ErrorCode.ELECTION_NOT_NEEDED)
    if not image.is_alive(preferred):
        raise RequestRefusedError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
    return elect_leader(state, preferred)


def elect_unclean(image: MetadataImage, state: PartitionRegistration) -> PartitionChangeRecord:
    """Return the record that elects any running replica, for a partition without a leader.

    Raises ``RequestRefusedError`` with ELECTION_NOT_NEEDED or ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """
    if state.leader != NO_LEADER:
        raise RequestRefusedError(ErrorCode.ELECTION_NOT_NEEDED)
    for each in state.replicas:
        if image.is_alive(each):
            return _record(state, leader=each, isr=(each,), eligible_leader_replicas=(), last_known_elr=())
    raise RequestRefusedError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)


def replace_replicas(
    image: MetadataImage, state: PartitionRegistration, replicas: Sequence[int]
) -> PartitionChangeRecord:
    """Return the record that replaces the replicas of a partition. Running replicas are in sync immediately."""
    isr = tuple(each for each in replicas if image.is_alive(each))
    directories = tuple(image.brokers[each].log_dirs[0] for each in replicas)
    changes: dict[str, Any] = {"replicas": tuple(replicas), "isr": isr, "directories": directories}
    if state.eligible_leader_replicas or state.last_known_elr:
        changes.update(eligible_leader_replicas=(), last_known_elr=())
    if state.leader not in isr:
        changes["leader"] = isr[0] if isr else NO_LEADER
    return _record(state, **changes)


def _partitions(
    image: MetadataImage, broker_ids: Collection[int]
) -> Iterator[tuple[TopicImage, PartitionRegistration]]:
    """Yield the partitions with a replica on one of these brokers."""
    wanted = set(broker_ids)
    for topic in image.topics.values():
        for state in topic.partitions:
            if not wanted.isdisjoint(state.replicas):
                yield topic, state


def _changes(
    image: MetadataImage,
    configs: BrokerConfigs,
    partitions: Iterable[tuple[TopicImage, PartitionRegistration]],
    alive: Collection[int],
) -> Iterator[PartitionChangeRecord]:
    """Yield the changes of partitions for these running brokers."""
    for topic, state in partitions:
        settings = effective_topic_configs(image, configs, topic.name)
        changes = _changed_fields(settings, state, [each for each in state.replicas if each in alive])
        if changes:
            yield _record(state, **changes)


def _changed_fields(
    settings: Mapping[str, str | None], state: PartitionRegistration, running: Sequence[int]
) -> dict[str, Any]:
    leader = _leader(settings, state, running)
    isr: tuple[int, ...] = ()
    if leader != NO_LEADER:
        # Replicas that kept running keep their place; restarted replicas are in sync immediately.
        isr = tuple([each for each in state.isr if each in running] or [leader])
        isr += tuple(each for each in running if each not in isr)
    needed = min(int(settings["min.insync.replicas"] or 1), len(state.replicas))
    known = (*state.isr, *state.eligible_leader_replicas)
    elr = tuple(dict.fromkeys(each for each in known if each not in isr)) if len(isr) < needed else ()
    after = {"leader": leader, "isr": isr, "eligible_leader_replicas": elr}
    return {name: value for name, value in after.items() if value != getattr(state, name)}


def _leader(settings: Mapping[str, str | None], state: PartitionRegistration, running: Sequence[int]) -> int:
    if state.leader in running:
        return state.leader
    for group in (state.isr, state.eligible_leader_replicas):
        for each in running:
            if each in group:
                return each
    unclean = settings["unclean.leader.election.enable"] == "true"
    return running[0] if unclean and running else NO_LEADER


def _record(state: PartitionRegistration, **changes: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(topic_id=state.topic_id, partition_id=state.partition, **changes)
