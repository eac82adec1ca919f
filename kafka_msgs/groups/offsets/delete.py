"""OffsetDelete: delete the offsets of topics that a group no longer reads."""

from __future__ import annotations

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.group import Group, group_not_found
from kafka_msgs.groups.metrics import OFFSET_DELETIONS
from kafka_msgs.groups.offsets.appliers import emit_offset_tombstone, find_offset, is_open
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.messages.offset_delete_request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kafka_msgs.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

__all__ = ["delete_offsets", "refuse_offset_delete"]


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


def refuse_offset_delete(request: OffsetDeleteRequest, error: GroupError, version: int) -> OffsetDeleteResponse:
    """Return the response with an error for the whole request."""
    return OffsetDeleteResponse(error_code=error.error)
