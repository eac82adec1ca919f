"""Expiration of offsets that are too old or belong to deleted topics.

Each shard checks all its groups periodically. An offset is deleted when its retention has passed and no member reads
its topic. A group without offsets and members is also deleted.
"""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.group import OffsetAndPosition
from kafka_msgs.groups.group_protocol import TopicChange
from kafka_msgs.groups.metrics import OFFSET_EXPIRATIONS
from kafka_msgs.groups.offsets.appliers import emit_offset_tombstone, is_open
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.groups.shard_state import OffsetTable
from kafka_msgs.schema import ZERO_UUID

__all__ = ["delete_offsets_of_topics", "expire_offsets", "schedule_expiry"]

_TIMER: Final = "expire-group-metadata"


def schedule_expiry(op: OperationContext) -> None:
    """Start the timer that checks for expired offsets."""
    interval = op.config.offsets_retention_check_interval_ms
    op.timers.schedule(_TIMER, interval, expire_offsets, retry_backoff_ms=interval)


def expire_offsets(op: OperationContext) -> None:
    """Delete the expired offsets of all groups, and the groups that become empty."""
    op.atomic = False
    for group_id in iter_kafka_order(op.state.groups):
        group = op.state.groups[group_id]
        if _expire(op, group_id) and group.expires(op) and group.is_empty:
            group.cancel_timers(op)
            group.emit_tombstones(op)
    schedule_expiry(op)


def _expire(op: OperationContext, group_id: str) -> bool:
    """Delete the expired offsets of a group. Return whether no offset remains, including open transactions."""
    offsets = op.state.offsets.get(group_id)
    if offsets is None:
        return group_id not in op.state.open_transactions
    group = op.state.groups[group_id]
    is_old = group.offset_expiration()
    if is_old is None:
        return False
    retention, before, complete = op.config.offsets_retention_ms, len(op.records), True
    for topic in iter_kafka_order(offsets):
        subscribed = group.subscribes_to(topic)
        partitions = offsets[topic]
        for index in iter_kafka_order(partitions):
            expired = not subscribed and is_old(partitions[index], op.now, retention)
            if expired and not is_open(op.state, group_id, topic, index):
                emit_offset_tombstone(op, group_id, topic, index)
            else:
                complete = False
    op.count_metric(OFFSET_EXPIRATIONS, len(op.records) - before)
    return complete and group_id not in op.state.open_transactions


def delete_offsets_of_topics(op: OperationContext, change: TopicChange) -> None:
    """Delete the offsets of deleted topics, including open transactions."""
    op.atomic = False
    state = op.state
    deleted = [change.before.topics[name] for name in change.deleted]
    tables: list[OffsetTable] = [
        state.offsets,
        *(state.pending_offsets[producer] for producer in iter_kafka_order(state.pending_offsets)),
    ]
    keys = []
    for table in tables:
        for group_id in iter_kafka_order(table):
            for topic in deleted:
                partitions: TimelineHashMap[int, OffsetAndPosition] = (
                    table[group_id].get(topic.name) or TimelineHashMap()
                )
                for index in iter_kafka_order(partitions):
                    if partitions[index].value.topic_id in (ZERO_UUID, topic.id):
                        keys.append((group_id, topic.name, index))
    for key in keys:
        emit_offset_tombstone(op, *key)
