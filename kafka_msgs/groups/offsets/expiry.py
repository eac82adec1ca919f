"""Offsets that nobody needs any more: those that are too old, and those of deleted topics.

Once in a while each shard looks at all its groups. An offset is deleted when its time is over and no member reads its
topic. A group that lost all its offsets, and has no members, is deleted too.
"""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.api import TopicChange
from kafka_msgs.groups.metrics import OFFSET_EXPIRATIONS
from kafka_msgs.groups.offsets.records import emit_offset_tombstone, is_open
from kafka_msgs.groups.state import Offset, Offsets
from kafka_msgs.groups.timeline import TimelineMap, walk
from kafka_msgs.groups.transaction import Transaction
from kafka_msgs.schema import ZERO_UUID

__all__ = ["delete_offsets_of_topics", "expire_offsets", "schedule_expiry"]

_TIMER: Final = "expire-group-metadata"


def schedule_expiry(tx: Transaction) -> None:
    """Start the timer that looks for old offsets."""
    interval = tx.config.offsets_retention_check_interval_ms
    tx.timers.schedule(_TIMER, interval, expire_offsets, retry_backoff_ms=interval)


def expire_offsets(tx: Transaction) -> None:
    """Delete the offsets of all groups that are too old, and the groups that nothing is left of."""
    tx.atomic = False
    for group_id in walk(tx.state.groups):
        group = tx.state.groups[group_id]
        if _expire(tx, group_id) and group.expires(tx) and group.is_empty:
            group.cancel_timers(tx)
            group.emit_tombstones(tx)
    schedule_expiry(tx)


def _expire(tx: Transaction, group_id: str) -> bool:
    """Delete the offsets of a group that are too old. Return whether nothing is left, of open transactions neither."""
    offsets = tx.state.offsets.get(group_id)
    if offsets is None:
        return group_id not in tx.state.open
    group = tx.state.groups[group_id]
    is_old = group.offset_expiration()
    if is_old is None:
        return False
    retention, before, complete = tx.config.offsets_retention_ms, len(tx.records), True
    for topic in walk(offsets):
        subscribed = group.subscribes_to(topic)
        partitions = offsets[topic]
        for index in walk(partitions):
            expired = not subscribed and is_old(partitions[index], tx.now, retention)
            if expired and not is_open(tx.state, group_id, topic, index):
                emit_offset_tombstone(tx, group_id, topic, index)
            else:
                complete = False
    tx.count(OFFSET_EXPIRATIONS, len(tx.records) - before)
    return complete and group_id not in tx.state.open


def delete_offsets_of_topics(tx: Transaction, change: TopicChange) -> None:
    """Delete the offsets of topics that were deleted, those of open transactions too."""
    tx.atomic = False
    state = tx.state
    deleted = [change.before.topics[name] for name in change.deleted]
    tables: list[Offsets] = [state.offsets, *(state.pending[producer] for producer in walk(state.pending))]
    keys = []
    for table in tables:
        for group_id in walk(table):
            for topic in deleted:
                partitions: TimelineMap[int, Offset] = table[group_id].get(topic.name) or TimelineMap()
                for index in walk(partitions):
                    if partitions[index].value.topic_id in (ZERO_UUID, topic.id):
                        keys.append((group_id, topic.name, index))
    for key in keys:
        emit_offset_tombstone(tx, *key)
