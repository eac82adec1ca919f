"""StreamsGroupDescribe: the recorded state of groups, as of the last committed record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import sorted_strings
from kafka_msgs.groups.group_protocol import describe_api
from kafka_msgs.groups.message_fields import with_fields_of
from kafka_msgs.groups.modern_group import find_group
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order, string_key
from kafka_msgs.groups.streams.configured_topology import ConfiguredSubtopology, ConfiguredTopology, configure
from kafka_msgs.groups.streams.extension import resolve_patterns
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.member import StreamsGroupMember
from kafka_msgs.groups.streams.soft_state import TaskOffsets
from kafka_msgs.groups.streams.target_assignment import assignor_name
from kafka_msgs.groups.streams.tasks import NO_TARGET, TaskId, TasksTuple, TasksTupleWithEpochs, task_ids
from kafka_msgs.groups.streams.topology import StreamsTopology
from kafka_msgs.groups.streams.topology_descriptions import with_description
from kafka_msgs.groups.streams.validation import check_enabled
from kafka_msgs.messages import streams_group_topology_value as record
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_msgs.messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Member,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)

__all__ = ["DESCRIBE", "described"]


def _describe(op: OperationContext, request: StreamsGroupDescribeRequest, group_id: str) -> DescribedGroup:
    check_enabled(op.config, op.profile, op.image)
    group = find_group(op, StreamsGroup, group_id)
    found = described(op, group)
    return with_description(op, group, found) if request.include_topology_description else found


def described(op: OperationContext, group: StreamsGroup) -> DescribedGroup:
    """Return the description of a group. Raises ``GroupError`` if it has no topology."""
    stateful = group.topology is not None and group.topology.stateful
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_name(op, group.group_id, stateful=stateful),
        topology=_topology(op, group),
        members=tuple(
            _member(
                group.members[each], group.targets.get(each, NO_TARGET), group.soft.offsets.get(each, TaskOffsets())
            )
            for each in iter_kafka_order(group.members)
        ),
    )


def _topology(op: OperationContext, group: StreamsGroup) -> Topology:
    configured = _configured_topology(op, group)
    if configured is not None and configured.ready and configured.subtopologies is not None:
        subtopologies = [_configured(key, each) for key, each in configured.subtopologies.items()]
        return Topology(epoch=configured.epoch, subtopologies=tuple(subtopologies))
    if group.topology is None:
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return Topology(epoch=group.topology.epoch, subtopologies=tuple(_unconfigured(group.topology)))


def _configured_topology(op: OperationContext, group: StreamsGroup) -> ConfiguredTopology | None:
    """Return the topology with partition counts. After a load, no heartbeat has computed them yet."""
    sent = group.topology
    if group.configured is not None or sent is None or group.validated_epoch != sent.epoch:
        return group.configured
    if op.quirks.streams_load_forgets_counts:
        return None
    topology, missing = resolve_patterns(op, sent)
    return configure(topology, op.image.topics, group.metadata_hash, missing)


def _configured(key: str, each: ConfiguredSubtopology) -> Subtopology:
    sources, sinks = dict.fromkeys(each.source_topics), dict.fromkeys(each.subtopology.repartition_sink_topics)
    repartition, changelogs = each.repartition_source_topics.values(), each.state_changelog_topics.values()
    return _subtopology(key, sources, sinks, repartition, changelogs)


def _unconfigured(topology: StreamsTopology) -> Iterator[Subtopology]:
    for key in sorted_strings(topology.subtopologies):
        each = topology.subtopologies[key]
        repartition, changelogs = each.repartition_source_topics, each.state_changelog_topics
        yield _subtopology(key, each.source_topics, each.repartition_sink_topics, repartition, changelogs)


def _subtopology(
    key: str,
    sources: Iterable[str],
    sinks: Iterable[str],
    repartition: Iterable[record.TopicInfo],
    changelogs: Iterable[record.TopicInfo],
) -> Subtopology:
    return Subtopology(
        subtopology_id=key,
        source_topics=tuple(sorted_strings(sources)),
        repartition_sink_topics=tuple(sorted_strings(sinks)),
        repartition_source_topics=_topics(repartition),
        state_changelog_topics=_topics(changelogs),
    )


def _topics(topics: Iterable[record.TopicInfo]) -> tuple[TopicInfo, ...]:
    return tuple(with_fields_of(TopicInfo, topic) for topic in sorted(topics, key=lambda each: string_key(each.name)))


def _member(member: StreamsGroupMember, target: TasksTuple, offsets: TaskOffsets) -> Member:
    return with_fields_of(
        Member,
        member.metadata,
        member_id=member.member_id,
        member_epoch=member.epoch,
        task_offsets=_offsets(offsets.offsets),
        task_end_offsets=_offsets(offsets.end_offsets),
        is_classic=member.classic is not None,
        assignment=_assignment(member.assigned),
        target_assignment=_assignment(target),
    )


def _assignment(tasks: TasksTupleWithEpochs | TasksTuple) -> Assignment:
    return Assignment(
        active_tasks=task_ids(TaskIds, tasks.active),
        standby_tasks=task_ids(TaskIds, tasks.standby),
        warmup_tasks=task_ids(TaskIds, tasks.warmup),
    )


def _offsets(offsets: Mapping[TaskId, int]) -> tuple[TaskOffset, ...]:
    return tuple(
        TaskOffset(subtopology_id=subtopology, partition=partition, offset=offsets[subtopology, partition])
        for subtopology, partition in sorted(offsets)
    )


DESCRIBE: Final = describe_api(
    StreamsGroupDescribeRequest,
    DescribedGroup,
    _describe,
    lambda group_id, error, version: DescribedGroup(group_id=group_id, error_code=error.error),
)
