"""The effect of the records of committed offsets (Kafka's ``OffsetMetadataManager``).

An offset outside a transaction counts at once. An offset in a transaction waits for the end of the transaction. After a
commit it counts, unless a later record replaced it meanwhile. A tombstone deletes the offset, and all offsets that wait
for the same partition.
"""

from __future__ import annotations

from typing import Final, TypeVar

from kafka_msgs.groups.journal import Changes
from kafka_msgs.groups.state import Offset, Offsets, State
from kafka_msgs.groups.timeline import TimelineMap, walk
from kafka_msgs.groups.transaction import Transaction
from kafka_msgs.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kafka_msgs.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue
from kafka_msgs.topics.records import NO_PRODUCER
from kafka_msgs.topics.replay import modern_offset

__all__ = [
    "apply_legacy_offset",
    "apply_marker",
    "apply_offset",
    "delete_all_offsets",
    "emit_offset_tombstone",
    "find",
    "is_open",
]

K = TypeVar("K", bound=str | int)
V = TypeVar("V")

_EXPECTED_OPEN: Final = 1
"""The size that Kafka expects of the tables of open transactions."""


def apply_offset(state: State, changes: Changes, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
    """Apply the record of a committed offset. It makes an empty classic group if there is no group of that name."""
    if value is None:
        _delete(state, changes, key.group, key.topic, key.partition)
        return
    if key.group not in state.groups:
        changes.set(state.groups, key.group, state.simple_group(key.group))
    offset = Offset(value, state.position)
    producer = state.producer_id
    if producer == NO_PRODUCER:
        _put(changes, state.offsets, key.group, key.topic, key.partition, offset)
        return
    pending = state.pending.get(producer)
    if pending is None:
        pending = TimelineMap()
        changes.set(state.pending, producer, pending)
    _put(changes, pending, key.group, key.topic, key.partition, offset)
    open_topics = _table(changes, state.open, key.group, _EXPECTED_OPEN)
    open_partitions = _table(changes, open_topics, key.topic, _EXPECTED_OPEN)
    if key.partition not in open_partitions:
        changes.set(open_partitions, key.partition, {})
    changes.set(open_partitions[key.partition], producer, None)


def apply_legacy_offset(
    state: State, changes: Changes, key: LegacyOffsetCommitKey, value: LegacyOffsetCommitValue | None
) -> None:
    """Apply the record of a committed offset in its oldest form."""
    modern_key, modern_value = modern_offset(key, value)
    apply_offset(state, changes, modern_key, modern_value)


def apply_marker(state: State, changes: Changes, producer: int, committed: bool) -> None:
    """Apply the end of a transaction: its offsets count from now on, or never."""
    pending = state.pending.get(producer)
    if pending is None:
        return
    changes.delete(state.pending, producer)
    for group in walk(pending):
        for topic in walk(pending[group]):
            for partition in walk(pending[group][topic]):
                _close(state, changes, group, topic, partition, producer)
                offset = pending[group][topic][partition]
                present = find(state.offsets, group, topic, partition)
                if committed and (present is None or offset.position > present.position):
                    _put(changes, state.offsets, group, topic, partition, offset)


def find(
    table: TimelineMap[str, TimelineMap[str, TimelineMap[int, V]]], group: str, topic: str, partition: int
) -> V | None:
    """Return the entry of a partition, such as its offset, or None."""
    topics = table.get(group)
    partitions = topics.get(topic) if topics is not None else None
    return partitions.get(partition) if partitions is not None else None


def is_open(state: State, group: str, topic: str, partition: int) -> bool:
    """Tell whether an open transaction has an offset of a partition."""
    return find(state.open, group, topic, partition) is not None


def emit_offset_tombstone(tx: Transaction, group: str, topic: str, partition: int) -> None:
    """Emit the record that deletes an offset."""
    tx.emit(OffsetCommitKey(group=group, topic=topic, partition=partition), None)


def delete_all_offsets(tx: Transaction, group: str) -> int:
    """Emit the tombstones of all offsets of a group, those of open transactions too. Return how many there were."""
    offsets, waiting = tx.state.offsets.get(group), tx.state.open.get(group)
    keys = [(topic, each) for topic in walk(offsets) for each in walk(offsets[topic])] if offsets else []
    known = set(keys)
    if waiting:
        keys += [
            (topic, each) for topic in walk(waiting) for each in walk(waiting[topic]) if (topic, each) not in known
        ]
    for topic, partition in keys:
        emit_offset_tombstone(tx, group, topic, partition)
    return len(keys)


def _table(
    changes: Changes, table: TimelineMap[str, TimelineMap[K, V]], key: str, expected: int = 0
) -> TimelineMap[K, V]:
    """The table under a key, new if there is none."""
    found = table.get(key)
    if found is None:
        found = TimelineMap(expected)
        changes.set(table, key, found)
    return found


def _put(changes: Changes, offsets: Offsets, group: str, topic: str, partition: int, offset: Offset) -> None:
    changes.set(_table(changes, _table(changes, offsets, group), topic), partition, offset)


def _delete(state: State, changes: Changes, group: str, topic: str, partition: int) -> None:
    _remove(changes, state.offsets, group, topic, partition)
    for producer in find(state.open, group, topic, partition) or ():
        if (pending := state.pending.get(producer)) is not None:
            _remove(changes, pending, group, topic, partition)
    _remove(changes, state.open, group, topic, partition)


def _close(state: State, changes: Changes, group: str, topic: str, partition: int, producer: int) -> None:
    producers = find(state.open, group, topic, partition)
    if producers is not None:
        changes.delete(producers, producer)
        if not producers:
            _remove(changes, state.open, group, topic, partition)


def _remove(
    changes: Changes,
    table: TimelineMap[str, TimelineMap[str, TimelineMap[int, V]]],
    group: str,
    topic: str,
    partition: int,
) -> None:
    """Remove an entry, and the tables that are empty after that."""
    topics = table.get(group)
    partitions = topics.get(topic) if topics is not None else None
    if topics is None or partitions is None:
        return
    changes.delete(partitions, partition)
    if not partitions:
        changes.delete(topics, topic)
        if not topics:
            changes.delete(table, group)
