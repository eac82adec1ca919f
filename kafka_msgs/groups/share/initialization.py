"""Which share partitions of a share group have state: new ones are initialized first, and assigned after that.

The state itself belongs to the share coordinator. Here it counts as initialized when the step that asked for it is
committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_order import HashTable, hash_map_order, map_copy_capacity
from kafka_msgs.groups.share.group import ShareGroup
from kafka_msgs.groups.timeline import hash_code, walk
from kafka_msgs.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey
from kafka_msgs.messages.share_group_state_partition_metadata_value import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

if TYPE_CHECKING:
    from kafka_msgs.groups.api import TopicChange
    from kafka_msgs.groups.transaction import Transaction

__all__ = ["assignable", "begin_deletion", "forget_topics", "has_unassigned", "initialize"]

Topics = Mapping[UUID, TopicPartitionsInfo]

_NONE = ShareGroupStatePartitionMetadataValue()


def assignable(group: ShareGroup) -> Mapping[UUID, frozenset[int]]:
    """Return the partitions that have state, by topic id."""
    known = group.partitions or _NONE
    return {topic.topic_id: frozenset(topic.partitions) for topic in known.initialized_topics}


def has_unassigned(group: ShareGroup) -> bool:
    """Tell whether partitions that members subscribe to have state, and are in no target assignment."""
    known = group.partitions or _NONE
    assigned: dict[UUID, set[int]] = {}
    for target in group.targets.values():
        for topic_id, partitions in target.items():
            assigned.setdefault(topic_id, set()).update(partitions)
    return any(
        assigned.get(topic.topic_id) != set(topic.partitions)
        for topic in known.initialized_topics
        if topic.topic_name in group.topics
    )


def initialize(tx: Transaction, group: ShareGroup, names: Iterable[str]) -> None:
    """Record that the partitions of subscribed topics get state, as far as they have none."""
    known = group.partitions or _NONE
    fresh = tx.now - group.soft.written_ms < tx.config.group_share_initialize_retry_interval_ms
    present = _combined(_by_id(known.initialized_topics), _by_id(known.initializing_topics) if fresh else {})
    wanted: dict[UUID, TopicPartitionsInfo] = {}
    table: HashTable[UUID] = HashTable(hash_code)
    for topic in (tx.image.topics[name] for name in names if name in tx.image.topics):
        has = set(present[topic.id].partitions) if topic.id in present else set()
        if len(has) < topic.partitions or not has:
            missing = tuple(each for each in range(topic.partitions) if each not in has)
            table.compute(topic.id)
            wanted[topic.id] = TopicPartitionsInfo(topic_id=topic.id, topic_name=topic.name, partitions=missing)
    if not wanted:
        return
    ordered = {topic_id: wanted[topic_id] for topic_id in table.walk()}
    starting = ordered if group.partitions is None else _combined(_by_id(known.initializing_topics), ordered)
    _write(tx, group, starting, _by_id(known.initialized_topics))
    group_id = group.group_id

    def follow(error: GroupError | None) -> None:
        if error is None:
            tx.submit(lambda tx: _initialized(tx, group_id, ordered))

    tx.after_append(follow)


def _initialized(tx: Transaction, group_id: str, topics: Topics) -> None:
    """Record that partitions have state."""
    group = tx.state.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        return
    known = group.partitions or _NONE
    done = _combined(_by_id(known.initialized_topics), topics)
    left: dict[UUID, TopicPartitionsInfo] = {}
    for topic_id, topic in _by_id(known.initializing_topics).items():
        finished = topics[topic_id].partitions if topic_id in topics else ()
        remaining = tuple(each for each in topic.partitions if each not in finished)
        if remaining:
            left[topic_id] = TopicPartitionsInfo(topic_id=topic_id, topic_name=topic.topic_name, partitions=remaining)
    _write(tx, group, left, done)


def forget_topics(tx: Transaction, change: TopicChange) -> None:
    """Record that the partitions of deleted topics have no state any more."""
    gone = {change.before.topics[name].id for name in change.deleted if name in change.before.topics}
    for group_id in walk(tx.state.groups):
        group = tx.state.groups[group_id]
        known = group.partitions if isinstance(group, ShareGroup) else None
        if known is None:
            continue
        ids = [topic.topic_id for part in (known.initializing_topics, known.initialized_topics) for topic in part]
        if gone.intersection(ids) or any(topic.topic_id in gone for topic in known.deleting_topics):
            assert isinstance(group, ShareGroup)
            left = (_without(_by_id(each), gone) for each in (known.initializing_topics, known.initialized_topics))
            _write(tx, group, *left)


def begin_deletion(tx: Transaction, group: ShareGroup) -> None:
    """Record that all state of a group is being deleted. That comes before the group itself is deleted."""
    known = group.partitions
    if known is None:
        return
    doomed = _combined(_by_id(known.initialized_topics), _by_id(known.initializing_topics))
    names = {topic_id: topic.topic_name for topic_id, topic in doomed.items()}
    present = (tx.image.by_id.get(topic.topic_id) for topic in known.deleting_topics)
    names |= {topic.id: topic.name for topic in present if topic is not None}
    deleting = tuple(TopicInfo(topic_id=each, topic_name=names[each]) for each in hash_map_order(names))
    value = ShareGroupStatePartitionMetadataValue(deleting_topics=deleting)
    tx.emit(ShareGroupStatePartitionMetadataKey(group_id=group.group_id), value)


def _without(topics: Topics, gone: Collection[UUID]) -> Topics:
    order = hash_map_order(topics, capacity=map_copy_capacity(len(topics)))
    return {topic_id: topics[topic_id] for topic_id in order if topic_id not in gone}


def _write(tx: Transaction, group: ShareGroup, initializing: Topics, initialized: Topics) -> None:
    known = group.partitions or _NONE
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=tuple(initializing.values()),
        initialized_topics=tuple(initialized.values()),
        deleting_topics=tuple(
            each
            for each in known.deleting_topics
            if each.topic_id in tx.image.by_id and each.topic_id not in initializing
        ),
    )
    tx.emit(ShareGroupStatePartitionMetadataKey(group_id=group.group_id), value)
    group.soft.written_ms = tx.now


def _by_id(topics: Iterable[TopicPartitionsInfo]) -> Topics:
    found = {topic.topic_id: topic for topic in topics}
    return {topic_id: found[topic_id] for topic_id in hash_map_order(found)}


def _combined(one: Topics, other: Topics) -> Topics:
    both: dict[UUID, TopicPartitionsInfo] = dict(one)
    for topic_id, topic in other.items():
        partitions = {*topic.partitions, *(one[topic_id].partitions if topic_id in one else ())}
        both[topic_id] = TopicPartitionsInfo(
            topic_id=topic_id, topic_name=topic.topic_name, partitions=tuple(sorted(partitions))
        )
    return {topic_id: both[topic_id] for topic_id in hash_map_order(both)}
