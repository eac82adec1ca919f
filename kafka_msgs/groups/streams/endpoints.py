"""Endpoints for interactive queries: the partitions of each member with an endpoint.

Kafka's ``EndpointToPartitionsManager``, and the cache of ``StreamsGroup``. The list of a member is computed once and
cached until its tasks, its endpoint or the topics change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import hash_map_order
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.tasks import TaskId, grouped
from kafka_msgs.messages.streams_group_heartbeat_response import Endpoint, EndpointToPartitions, TaskIds, TopicPartition

__all__ = ["all_endpoints", "task_ids", "task_partitions"]


def all_endpoints(
    op: OperationContext, group: StreamsGroup, member: StreamsGroupMember, replaced: str | None
) -> tuple[EndpointToPartitions, ...]:
    """Return the partitions of each member with an endpoint. ``member``, which sent the heartbeat, comes last.

    ``replaced`` is the id of the static member that it replaces.
    """
    others: list[StreamsGroupMember] = []
    if group.endpoint_members:
        others = [
            group.members[each] for each in iter_kafka_order(group.members) if each not in (member.member_id, replaced)
        ]
    return tuple(_endpoint(op, group, each) for each in (*others, member) if each.metadata.user_endpoint is not None)


def _endpoint(op: OperationContext, group: StreamsGroup, member: StreamsGroupMember) -> EndpointToPartitions:
    cache = group.soft.endpoints
    found = cache.get(member.member_id)
    if found is None:
        endpoint = member.metadata.user_endpoint
        assert endpoint is not None
        found = cache[member.member_id] = EndpointToPartitions(
            user_endpoint=Endpoint(host=endpoint.host, port=endpoint.port),
            active_partitions=tuple(task_partitions(op, group, member.assigned.active)),
            standby_partitions=tuple(task_partitions(op, group, member.assigned.standby | member.assigned.warmup)),
        )
    return found


def task_partitions(op: OperationContext, group: StreamsGroup, tasks: Iterable[TaskId]) -> Iterator[TopicPartition]:
    """Return the partitions that tasks read, by topic.

    Tasks of an older topology, and missing topics, have no partitions.
    """
    configured = None if group.configured is None else group.configured.subtopologies
    if configured is None:
        _note_missing(op)
        return
    by_subtopology = dict(grouped(tasks))
    for key in hash_map_order(by_subtopology):
        subtopology = configured.get(key)
        if subtopology is None:
            _note_missing(op)
            continue
        names = dict.fromkeys((*subtopology.source_topics, *subtopology.repartition_source_topics))
        for name in hash_map_order(names):
            topic = op.image.topics.get(name)
            if topic is None:
                _note_missing(op)
                continue
            partitions = tuple(each for each in by_subtopology[key] if each < topic.partitions)
            if partitions:
                yield TopicPartition(topic=name, partitions=partitions)


def _note_missing(op: OperationContext) -> None:
    """Fail as Kafka does if the topology and the topics do not match the tasks."""
    if op.quirks.streams_endpoint_needs_topology:
        raise GroupError(error=ErrorCode.UNKNOWN_SERVER_ERROR)


def task_ids(tasks: Iterable[TaskId]) -> tuple[TaskIds, ...]:
    """Return tasks in the form of a response, in Kafka's order."""
    by_subtopology = dict(grouped(tasks))
    return tuple(TaskIds(subtopology_id=key, partitions=by_subtopology[key]) for key in hash_map_order(by_subtopology))
