"""Initialization of the state of share partitions: a new partition is initialized before it is assigned.

The share coordinator stores the state itself. Requests to it are sent when the record of the initialization is
committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final
from uuid import UUID

from attrs import evolve, frozen

from kafka_msgs.errors import GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.assignors.java_hash_order import (
    HashTable,
    NumberTable,
    copy_capacity,
    hash_map_order,
    map_copy_capacity,
    set_order,
)
from kafka_msgs.groups.assignors.spec import Partitions, owned_partitions
from kafka_msgs.groups.group_operation import UNSET
from kafka_msgs.groups.group_protocol import TopicChange
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order, java_hash_code
from kafka_msgs.groups.share.group import ShareGroup
from kafka_msgs.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kafka_msgs.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

__all__ = [
    "begin_deletion",
    "begin_deletion_of_topics",
    "begin_initialization",
    "delete_share_state",
    "end_deletion_of_topics",
    "finish_initialization",
    "forget_topics",
    "has_unassigned",
    "initialize",
    "initialized_partitions",
]

Topics = Mapping[UUID, TopicPartitionsInfo]

_NONE = ShareGroupStatePartitionMetadataValue()
_UNKNOWN_NAME: Final = "<UNKNOWN>"


@frozen
class _States:
    """The share partitions of a group by the progress of their state, and the topics whose state is being deleted."""

    initializing: Topics
    initialized: Topics
    deleting: Iterable[UUID]

    @classmethod
    def of(cls, known: ShareGroupStatePartitionMetadataValue | None) -> _States:
        known = known or _NONE
        deleting = [topic.topic_id for topic in known.deleting_topics]
        return cls(_by_id(known.initializing_topics), _by_id(known.initialized_topics), deleting)

    def write(self, op: OperationContext, group_id: str) -> None:
        value = ShareGroupStatePartitionMetadataValue(
            initializing_topics=tuple(self.initializing.values()),
            initialized_topics=tuple(self.initialized.values()),
            deleting_topics=tuple(
                TopicInfo(topic_id=each, topic_name=_name(op, each)) for each in hash_map_order(self.deleting)
            ),
        )
        op.emit(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def initialized_partitions(group: ShareGroup) -> Mapping[UUID, frozenset[int]]:
    """Return the partitions that have state, by topic id."""
    known = group.partitions or _NONE
    return {topic.topic_id: frozenset(topic.partitions) for topic in known.initialized_topics}


def has_unassigned(group: ShareGroup) -> bool:
    """Return whether an initialized partition of a subscribed topic is missing from all target assignments."""
    known = group.partitions or _NONE
    assigned = owned_partitions(group.targets.values())
    return any(
        assigned.get(topic.topic_id) != set(topic.partitions)
        for topic in known.initialized_topics
        if topic.topic_name in group.topics
    )


def initialize(op: OperationContext, group: ShareGroup, epoch: int, names: Iterable[str]) -> None:
    """Record the initialization of subscribed topics' partitions that have no state yet, at an epoch of the group."""
    known = group.partitions or _NONE
    retry_ms = max(op.config.group_share_initialize_retry_interval_ms, op.config.offsets_commit_timeout_ms)
    fresh = op.now - group.written_ms < retry_ms
    present: dict[UUID, set[int]] = {}
    for part in (*known.initialized_topics, *(known.initializing_topics if fresh else ())):
        present.setdefault(part.topic_id, set()).update(part.partitions)
    wanted: dict[UUID, TopicPartitionsInfo] = {}
    table: HashTable[UUID] = HashTable(java_hash_code)
    for topic in (op.image.topics[name] for name in names if name in op.image.topics):
        has = present.get(topic.id, set())
        if len(has) < topic.partitions or not has:
            missing = tuple(each for each in range(topic.partitions) if each not in has)
            table.compute(topic.id)
            wanted[topic.id] = TopicPartitionsInfo(topic_id=topic.id, topic_name=topic.name, partitions=missing)
    if not wanted:
        return
    ordered = {topic_id: wanted[topic_id] for topic_id in table.walk()}
    begin_initialization(op, group, ordered)

    def follow(error: ApiError | None) -> None:
        if error is None:
            op.run_at_next_tick(lambda: _ask(op, group.group_id, epoch, ordered))

    op.on_committed(follow)


def begin_initialization(op: OperationContext, group: ShareGroup, topics: Topics) -> None:
    """Record the initialization of partitions. Partitions whose state is being deleted get a new state."""
    known = _States.of(group.partitions)
    starting = topics if group.partitions is None else _combined(known.initializing, topics)
    deleting = [each for each in known.deleting if each not in starting]
    _States(starting, known.initialized, deleting).write(op, group.group_id)


def _ask(op: OperationContext, group_id: str, epoch: int, topics: Topics) -> None:
    """Initialize the state in the share coordinator, and record the result."""
    try:
        for topic in topics.values():
            for partition in topic.partitions:
                op.services.share_persister.initialize(
                    group_id, topic.topic_id, partition, state_epoch=epoch, start_offset=UNSET
                )
    except GroupError:
        op.submit(lambda step: _uninitialized(step, group_id, topics))
    else:
        finish_initialization(op, group_id, topics)


def finish_initialization(op: OperationContext, group_id: str, topics: Topics) -> None:
    """Record that partitions are initialized. If that fails, record that their initialization ended."""

    def settled(promise: Future[None]) -> None:
        if promise.error is not None:
            op.submit(lambda step: _uninitialized(step, group_id, topics))

    op.submit(lambda step: _initialized(step, group_id, topics)).add_done_callback(settled)


def _share_group(op: OperationContext, group_id: str) -> ShareGroup | None:
    group = op.state.groups.get(group_id)
    return group if isinstance(group, ShareGroup) else None


def _initialized(op: OperationContext, group_id: str, topics: Topics) -> None:
    """Record that partitions have state."""
    group = _share_group(op, group_id)
    if group is not None:
        known = _States.of(group.partitions)
        named = {each: evolve(topics[each], topic_name=_name(op, each)) for each in topics}
        done = _combined(known.initialized, named)
        _States(_apart(known.initializing, topics), done, known.deleting).write(op, group_id)


def _uninitialized(op: OperationContext, group_id: str, topics: Topics) -> None:
    """Record that the initialization of partitions ended."""
    group = _share_group(op, group_id)
    if group is not None and group.partitions is not None and group.partitions.initializing_topics:
        known = _States.of(group.partitions)
        evolve(known, initializing=_apart(known.initializing, topics)).write(op, group_id)


def forget_topics(op: OperationContext, change: TopicChange) -> None:
    """Record that the partitions of deleted topics no longer have state."""
    gone = {change.before.topics[name].id for name in change.deleted if name in change.before.topics}
    for group_id in iter_kafka_order(op.state.groups):
        group = _share_group(op, group_id)
        known = _States.of(None if group is None else group.partitions)
        if gone.intersection([*known.initializing, *known.initialized, *known.deleting]):
            deleting = [each for each in known.deleting if each not in gone]
            _States(_without(known.initializing, gone), _without(known.initialized, gone), deleting).write(op, group_id)


def begin_deletion(op: OperationContext, groups: Iterable[ShareGroup]) -> dict[str, Partitions]:
    """Record that all state of groups is being deleted, and return the partitions that have it, by group.

    The groups themselves are deleted later. A group that is named twice gets the same record twice.
    """
    begun = [(group.group_id, *_deletion(op, group.partitions)) for group in groups if group.partitions is not None]
    for group_id, value, _ in begun:
        op.emit(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)
    return {group_id: doomed for group_id, _, doomed in begun}


def _deletion(
    op: OperationContext, known: ShareGroupStatePartitionMetadataValue
) -> tuple[ShareGroupStatePartitionMetadataValue, Partitions]:
    states = _States.of(known)
    doomed = _combined(states.initialized, states.initializing)
    names = {topic_id: topic.topic_name for topic_id, topic in doomed.items()}
    partitions: dict[UUID, Sequence[int]] = {topic_id: topic.partitions for topic_id, topic in doomed.items()}
    for topic in (op.image.by_id.get(topic_id) for topic_id in states.deleting):
        if topic is not None:
            names[topic.id] = topic.name
            partitions[topic.id] = range(topic.partitions)
    deleting = tuple(TopicInfo(topic_id=each, topic_name=names[each]) for each in hash_map_order(names))
    return ShareGroupStatePartitionMetadataValue(deleting_topics=deleting), partitions


def begin_deletion_of_topics(op: OperationContext, group: ShareGroup, names: Iterable[str]) -> dict[str, Partitions]:
    """Record that the state of topics is being deleted, and return the partitions that have it, by topic name.

    Topics without state are missing in the result.
    """
    if group.partitions is None:
        return {}
    known = _States.of(group.partitions)
    initialized, deleting = dict(known.initialized), dict.fromkeys(known.deleting)
    doomed: dict[str, Partitions] = {}
    for topic in (op.image.topics[name] for name in names if name in op.image.topics):
        found = initialized.pop(topic.id, None)
        if found is not None:
            doomed[topic.name] = {topic.id: found.partitions}
            deleting[topic.id] = None
        elif topic.id in deleting:
            doomed[topic.name] = {topic.id: range(topic.partitions)}
    _States(known.initializing, initialized, deleting).write(op, group.group_id)
    return doomed


def end_deletion_of_topics(op: OperationContext, group_id: str, topic_ids: Collection[UUID]) -> None:
    """Record that the state of topics is deleted."""
    group = _share_group(op, group_id)
    if group is not None and group.partitions is not None:
        known = _States.of(group.partitions)
        evolve(known, deleting=[each for each in known.deleting if each not in topic_ids]).write(op, group_id)


def delete_share_state(op: OperationContext, group_id: str, partitions: Partitions) -> None:
    """Delete the state of partitions in the share coordinator. Raises ``GroupError``."""
    for topic_id, numbers in partitions.items():
        for partition in numbers:
            op.services.share_persister.delete(group_id, topic_id, partition)


def _without(topics: Topics, gone: Collection[UUID]) -> Topics:
    order = hash_map_order(topics, capacity=map_copy_capacity(len(topics)))
    return {topic_id: topics[topic_id] for topic_id in order if topic_id not in gone}


def _apart(topics: Topics, others: Topics) -> Topics:
    """Return ``topics`` without the partitions of ``others``."""
    left: dict[UUID, TopicPartitionsInfo] = {}
    for topic_id, topic in topics.items():
        done = others[topic_id].partitions if topic_id in others else ()
        remaining = tuple(each for each in topic.partitions if each not in done)
        if remaining:
            left[topic_id] = evolve(topic, partitions=remaining)
    return left


def _name(op: OperationContext, topic_id: UUID) -> str:
    topic = op.image.by_id.get(topic_id)
    return _UNKNOWN_NAME if topic is None else topic.name


def _by_id(topics: Iterable[TopicPartitionsInfo]) -> Topics:
    found = {topic.topic_id: evolve(topic, partitions=tuple(set_order(topic.partitions))) for topic in topics}
    return {topic_id: found[topic_id] for topic_id in hash_map_order(found)}


def _combined(one: Topics, other: Topics) -> Topics:
    both: dict[UUID, TopicPartitionsInfo] = dict(one)
    for topic_id, topic in other.items():
        before = one[topic_id].partitions if topic_id in one else ()
        numbers = NumberTable(before, capacity=copy_capacity(len(before)))
        numbers.put_all([each for each in topic.partitions if each not in numbers])
        both[topic_id] = evolve(topic, partitions=tuple(numbers.walk()))
    return {topic_id: both[topic_id] for topic_id in hash_map_order(both)}
