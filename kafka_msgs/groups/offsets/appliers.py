"""Appliers for the records of committed offsets (Kafka's ``OffsetMetadataManager``).

An offset outside a transaction takes effect immediately. An offset in a transaction is pending until the transaction
ends. After a commit it takes effect, unless a later record has replaced it. A tombstone deletes the offset, and all
pending offsets of the same partition.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from kafka_msgs.groups.group import OffsetAndPosition
from kafka_msgs.groups.operation import OffsetTable, OperationContext, ShardState
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.internal_topics.records import NO_PRODUCER
from kafka_msgs.internal_topics.replay import upgrade_legacy_offset
from kafka_msgs.messages.legacy_offset_commit_key import LegacyOffsetCommitKey
from kafka_msgs.messages.legacy_offset_commit_value import LegacyOffsetCommitValue
from kafka_msgs.messages.offset_commit_key import OffsetCommitKey
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue

__all__ = [
    "apply_legacy_offset",
    "apply_marker",
    "apply_offset",
    "delete_all_offsets",
    "emit_offset_tombstone",
    "find_offset",
    "is_open",
]

K = TypeVar("K", bound=str | int)
V = TypeVar("V")

_EXPECTED_OPEN: Final = 1
"""The expected size of Kafka's tables of open transactions."""


def apply_offset(state: ShardState, changes: Changes, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
    """Apply the record of a committed offset. It creates an empty classic group if no group of that name exists."""
    if value is None:
        _delete(state, changes, key.group, key.topic, key.partition)
        return
    if key.group not in state.groups:
        changes.set(state.groups, key.group, state.new_simple_group(key.group))
    offset = OffsetAndPosition(value, state.position)
    producer = state.producer_id
    if producer == NO_PRODUCER:
        _put(changes, state.offsets, key.group, key.topic, key.partition, offset)
        return
    pending = state.pending_offsets.get(producer)
    if pending is None:
        pending = TimelineHashMap()
        changes.set(state.pending_offsets, producer, pending)
    _put(changes, pending, key.group, key.topic, key.partition, offset)
    open_topics = _table(changes, state.open_transactions, key.group, _EXPECTED_OPEN)
    open_partitions = _table(changes, open_topics, key.topic, _EXPECTED_OPEN)
    if key.partition not in open_partitions:
        changes.set(open_partitions, key.partition, {})
    changes.set(open_partitions[key.partition], producer, None)


def apply_legacy_offset(
    state: ShardState, changes: Changes, key: LegacyOffsetCommitKey, value: LegacyOffsetCommitValue | None
) -> None:
    """Apply the record of a committed offset in its oldest form."""
    modern_key, modern_value = upgrade_legacy_offset(key, value)
    apply_offset(state, changes, modern_key, modern_value)


def apply_marker(state: ShardState, changes: Changes, producer: int, committed: bool) -> None:
    """Apply the end of a transaction: its offsets take effect, or are dropped."""
    pending = state.pending_offsets.get(producer)
    if pending is None:
        return
    changes.delete(state.pending_offsets, producer)
    for group in iter_kafka_order(pending):
        for topic in iter_kafka_order(pending[group]):
            for partition in iter_kafka_order(pending[group][topic]):
                _close(state, changes, group, topic, partition, producer)
                offset = pending[group][topic][partition]
                present = find_offset(state.offsets, group, topic, partition)
                if committed and (present is None or offset.position > present.position):
                    _put(changes, state.offsets, group, topic, partition, offset)


def find_offset(
    table: TimelineHashMap[str, TimelineHashMap[str, TimelineHashMap[int, V]]], group: str, topic: str, partition: int
) -> V | None:
    """Return the entry of a partition, such as its offset, or None."""
    topics = table.get(group)
    partitions = topics.get(topic) if topics is not None else None
    return partitions.get(partition) if partitions is not None else None


def is_open(state: ShardState, group: str, topic: str, partition: int) -> bool:
    """Return whether an open transaction has an offset of a partition."""
    return find_offset(state.open_transactions, group, topic, partition) is not None


def emit_offset_tombstone(op: OperationContext, group: str, topic: str, partition: int) -> None:
    """Emit the record that deletes an offset."""
    op.emit(OffsetCommitKey(group=group, topic=topic, partition=partition), None)


def delete_all_offsets(op: OperationContext, group: str) -> int:
    """Emit the tombstones of all offsets of a group, including open transactions. Return their number."""
    tables: tuple[TimelineHashMap[str, TimelineHashMap[int, Any]], ...] = (
        op.state.offsets.get(group) or TimelineHashMap(),
        op.state.open_transactions.get(group) or TimelineHashMap(),
    )
    keys = {
        (topic, each): None
        for table in tables
        for topic in iter_kafka_order(table)
        for each in iter_kafka_order(table[topic])
    }
    for topic, partition in keys:
        emit_offset_tombstone(op, group, topic, partition)
    return len(keys)


def _table(
    changes: Changes, table: TimelineHashMap[str, TimelineHashMap[K, V]], key: str, expected: int = 0
) -> TimelineHashMap[K, V]:
    """Return the table of a key, creating it if it is missing."""
    found = table.get(key)
    if found is None:
        found = TimelineHashMap(expected)
        changes.set(table, key, found)
    return found


def _put(
    changes: Changes, offsets: OffsetTable, group: str, topic: str, partition: int, offset: OffsetAndPosition
) -> None:
    changes.set(_table(changes, _table(changes, offsets, group), topic), partition, offset)


def _delete(state: ShardState, changes: Changes, group: str, topic: str, partition: int) -> None:
    _remove(changes, state.offsets, group, topic, partition)
    for producer in find_offset(state.open_transactions, group, topic, partition) or ():
        if (pending := state.pending_offsets.get(producer)) is not None:
            _remove(changes, pending, group, topic, partition)
    _remove(changes, state.open_transactions, group, topic, partition)


def _close(state: ShardState, changes: Changes, group: str, topic: str, partition: int, producer: int) -> None:
    producers = find_offset(state.open_transactions, group, topic, partition)
    if producers is not None:
        changes.delete(producers, producer)
        if not producers:
            _remove(changes, state.open_transactions, group, topic, partition)


def _remove(
    changes: Changes,
    table: TimelineHashMap[str, TimelineHashMap[str, TimelineHashMap[int, V]]],
    group: str,
    topic: str,
    partition: int,
) -> None:
    """Remove an entry, and tables that become empty."""
    topics = table.get(group)
    partitions = topics.get(topic) if topics is not None else None
    if topics is None or partitions is None:
        return
    changes.delete(partitions, partition)
    if not partitions:
        changes.delete(topics, topic)
        if not topics:
            changes.delete(table, group)
