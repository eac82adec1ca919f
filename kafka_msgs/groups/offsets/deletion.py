"""OffsetDelete, and expiration of offsets that are too old or belong to deleted topics.

Each shard checks all its groups periodically. An offset is deleted when its retention has passed and no member reads
its topic. A group without offsets and members is also deleted.
"""

from __future__ import annotations

from typing import Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.group import Group, OffsetAndPosition, group_not_found
from kafka_msgs.groups.group_protocol import TopicChange
from kafka_msgs.groups.metrics import OFFSET_DELETIONS, OFFSET_EXPIRATIONS
from kafka_msgs.groups.offsets.appliers import emit_offset_tombstone, find_offset, is_open
from kafka_msgs.groups.operation import OffsetTable, OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kafka_msgs.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafka_msgs.schema import ZERO_UUID

__all__ = ["delete_offsets", "delete_offsets_of_topics", "schedule_expiry"]


def delete_offsets(op: OperationContext, context: RequestContext, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    """Delete offsets, except of topics that the group subscribes to."""
    group = op.state.groups.get(request.group_id)
    if group is None:
        raise group_not_found(request.group_id)
    group.validate_offset_delete(op)
    keys: list[tuple[str, int]] = []
    topics = tuple(_delete_topic(op, group, topic, keys) for topic in request.topics)
    for topic, index in keys:
        emit_offset_tombstone(op, group.group_id, topic, index)
    op.count_metric(OFFSET_DELETIONS, len(keys))
    return OffsetDeleteResponse(topics=topics)


def _delete_topic(
    op: OperationContext, group: Group, topic: OffsetDeleteRequestTopic, keys: list[tuple[str, int]]
) -> OffsetDeleteResponseTopic:
    """Add the partitions that have an offset to ``keys``. A request may name a partition twice."""
    subscribed = group.subscribes_to(topic.name)
    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
    state, group_id = op.state, group.group_id
    for each in topic.partitions if not subscribed else ():
        known = find_offset(state.offsets, group_id, topic.name, each.partition_index) is not None
        if known or is_open(state, group_id, topic.name, each.partition_index):
            keys.append((topic.name, each.partition_index))
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ),
    )


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
