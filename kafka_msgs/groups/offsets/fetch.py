"""OffsetFetch: the offsets of groups, with the semantics of KIP-88 at each version.

A null list of topics requests all offsets of the group. Before version 2 a response has no field for a group error, so
each partition carries it. From version 8 a request names several groups, each with its own error. ``require_stable``
refuses offsets that an open transaction may change, and reads uncommitted records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.group import OffsetAndPosition
from kafka_msgs.groups.message_fields import with_fields_of
from kafka_msgs.groups.offsets.appliers import find_offset, is_open
from kafka_msgs.groups.operation import OffsetTable, OperationContext, ShardState
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_msgs.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka_msgs.schema import ZERO_UUID

__all__ = ["fetch_offsets", "fetch_response", "refuse_fetch", "requested_groups"]

_MANY_GROUPS_SINCE: Final = 8
_GROUP_ERROR_SINCE: Final = 2
_NO_OFFSET: Final = -1


def requested_groups(request: OffsetFetchRequest, version: int) -> Iterator[tuple[str, OffsetFetchRequestGroup]]:
    """Yield the groups of a request, in the form of the latest versions."""
    if version >= _MANY_GROUPS_SINCE:
        yield from ((group.group_id, group) for group in request.groups)
        return
    yield request.group_id, with_fields_of(OffsetFetchRequestGroup, request)


def fetch_offsets(
    op: OperationContext,
    context: RequestContext,
    request: OffsetFetchRequest,
    groups: Sequence[OffsetFetchRequestGroup],
) -> list[OffsetFetchResponseGroup]:
    """Return the offsets of groups."""
    return [_fetch(op, asked, request.require_stable) for asked in groups]


def _fetch(op: OperationContext, asked: OffsetFetchRequestGroup, stable: bool) -> OffsetFetchResponseGroup:
    offsets = op.state.offsets if _may_fetch(op, asked) else TimelineHashMap()
    topics = asked.topics if asked.topics is not None else _all_topics(offsets, asked.group_id)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    _partition(op.state, offsets, asked.group_id, topic, index, stable)
                    for index in topic.partition_indexes
                ),
            )
            for topic in topics
        ),
    )


def _may_fetch(op: OperationContext, asked: OffsetFetchRequestGroup) -> bool:
    """Whether the group may have offsets. A group that does not exist, or of a kind without offsets, has none."""
    group = op.state.groups.get(asked.group_id)
    if group is None:
        return False
    try:
        group.validate_offset_fetch(op, member_id=asked.member_id, epoch=asked.member_epoch)
    except GroupError as error:
        if error.error is ErrorCode.GROUP_ID_NOT_FOUND:
            return False
        raise
    return True


def _all_topics(offsets: OffsetTable, group_id: str) -> Iterator[OffsetFetchRequestTopics]:
    """All partitions with an offset, in Kafka's order."""
    topics = offsets.get(group_id)
    if topics is not None:
        for topic in iter_kafka_order(topics):
            yield OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(iter_kafka_order(topics[topic])))


def _partition(
    state: ShardState, offsets: OffsetTable, group_id: str, topic: OffsetFetchRequestTopics, index: int, stable: bool
) -> OffsetFetchResponsePartitions:
    if stable and is_open(state, group_id, topic.name, index):
        return _no_offset(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    offset = find_offset(offsets, group_id, topic.name, index)
    if offset is None or not _same_topic(offset, topic):
        return _no_offset(index, ErrorCode.NONE)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset.value.offset,
        committed_leader_epoch=offset.value.leader_epoch,
        metadata=offset.value.metadata,
    )


def _same_topic(offset: OffsetAndPosition, topic: OffsetFetchRequestTopics) -> bool:
    """Whether an offset belongs to the requested topic, and not to an earlier topic of that name."""
    return ZERO_UUID in (offset.value.topic_id, topic.topic_id) or offset.value.topic_id == topic.topic_id


def _no_offset(index: int, error: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=_NO_OFFSET, committed_leader_epoch=-1, metadata="", error_code=error
    )


def refuse_fetch(asked: OffsetFetchRequestGroup, error: GroupError, version: int) -> OffsetFetchResponseGroup:
    """Return the response for a failed group, with the error in the field that the version has for it.

    Clients do not expect COORDINATOR_NOT_AVAILABLE here, so it becomes NOT_COORDINATOR.
    """
    if error.error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        error = GroupError(ErrorCode.NOT_COORDINATOR)
    if version >= _GROUP_ERROR_SINCE:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.error)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=tuple(
            OffsetFetchResponseTopics(
                name=topic.name, partitions=tuple(_no_offset(index, error.error) for index in topic.partition_indexes)
            )
            for topic in asked.topics or ()
        ),
    )


def fetch_response(
    request: OffsetFetchRequest, groups: Sequence[OffsetFetchResponseGroup], version: int
) -> OffsetFetchResponse:
    """Return the response in the form of the version."""
    if version >= _MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=tuple(groups))
    [group] = groups
    topics = tuple(with_fields_of(OffsetFetchResponseTopic, topic) for topic in group.topics)
    return OffsetFetchResponse(error_code=group.error_code, topics=topics)
