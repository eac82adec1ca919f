"""Descriptions of streams groups (KIP-1071).

The names and fields follow Kafka's ``StreamsGroupDescription`` and its parts. Offsets of streams groups need no
separate operations: see ``group_offsets``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import frozen

from kafka_msgs.admin.fan_out import CoordinatorFanOut
from kafka_msgs.admin.results import Results
from kafka_msgs.client.cluster_metadata import Broker
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.enums import AclOperation, GroupState, decode_authorized_operations
from kafka_msgs.messages import streams_group_describe_response as described
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_msgs.messages.streams_group_describe_response import (
    Assignment,
    DescribedGroup,
    Endpoint,
    Member,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopologyDescription,
)

__all__ = [
    "Assignment",
    "Endpoint",
    "StreamsGroupDescription",
    "StreamsGroupMemberDescription",
    "StreamsGroupSubtopologyDescription",
    "TaskIds",
    "TaskOffset",
    "TopicInfo",
    "TopologyDescription",
    "describe_streams_groups",
]

NO_TOPOLOGY = -1


@frozen(kw_only=True)
class TopicInfo:
    """An internal topic of a subtopology. ``partitions`` is 0 until the number is decided."""

    partitions: int
    topic_configs: Mapping[str, str]


@frozen(kw_only=True)
class StreamsGroupSubtopologyDescription:
    """A subtopology: the topics that it reads and writes, and the topics of its state. The maps are by topic name."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    state_changelog_topics: Mapping[str, TopicInfo]
    repartition_source_topics: Mapping[str, TopicInfo]


@frozen(kw_only=True)
class StreamsGroupMemberDescription:
    """A member of a streams group. Fields that the member did not report are None.

    ``task_offsets`` and ``task_end_offsets`` are sums over the partitions of a task. ``assignment`` has the current
    tasks of the member, ``target_assignment`` its future tasks: active, standby and warm-up tasks.
    """

    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: Mapping[str, str]
    task_offsets: tuple[TaskOffset, ...]
    task_end_offsets: tuple[TaskOffset, ...]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: bool


@frozen(kw_only=True)
class StreamsGroupDescription:
    """A streams group.

    ``topology_epoch`` is -1 if the group has no topology. ``coordinator`` is None if its address is unknown, and
    ``authorized_operations`` if the request did not ask for them. ``topology_description`` and ``assignor`` need Kafka
    4.3 or newer.
    """

    group_id: str
    group_epoch: int
    target_assignment_epoch: int
    topology_epoch: int
    subtopologies: tuple[StreamsGroupSubtopologyDescription, ...]
    members: tuple[StreamsGroupMemberDescription, ...]
    group_state: GroupState
    coordinator: Broker | None
    authorized_operations: frozenset[AclOperation] | None
    topology_description: TopologyDescription | None = None
    assignor: str | None = None


def describe_streams_groups(
    client: ClientCore,
    group_ids: Collection[str],
    *,
    include_authorized_operations: bool = False,
    include_topology_description: bool = False,
    timeout: float | None = None,
) -> Flow[Results[str, StreamsGroupDescription]]:
    """Describe streams groups. A group of another type fails with ``GROUP_ID_NOT_FOUND``."""
    return (
        yield from CoordinatorFanOut(client, CoordinatorKind.GROUP, deadline=client.deadline(timeout)).each(
            group_ids,
            lambda ids: StreamsGroupDescribeRequest(
                group_ids=tuple(ids),
                include_authorized_operations=include_authorized_operations,
                include_topology_description=include_topology_description,
            ),
            lambda response: ((each.group_id, each) for each in response.groups),
            _description,
        )
    )


def _description(group: DescribedGroup, coordinator: Broker | None) -> StreamsGroupDescription:
    topology = group.topology
    return StreamsGroupDescription(
        group_id=group.group_id,
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
        topology_epoch=topology.epoch if topology else NO_TOPOLOGY,
        subtopologies=tuple(map(_subtopology, (topology and topology.subtopologies) or ())),
        members=tuple(map(_member, group.members)),
        group_state=GroupState.parse(group.group_state),
        coordinator=coordinator,
        authorized_operations=decode_authorized_operations(group.authorized_operations),
        topology_description=group.topology_description,
        assignor=group.assignor_name,
    )


def _subtopology(subtopology: Subtopology) -> StreamsGroupSubtopologyDescription:
    return StreamsGroupSubtopologyDescription(
        subtopology_id=subtopology.subtopology_id,
        source_topics=subtopology.source_topics,
        repartition_sink_topics=subtopology.repartition_sink_topics,
        state_changelog_topics=_topic_infos(subtopology.state_changelog_topics),
        repartition_source_topics=_topic_infos(subtopology.repartition_source_topics),
    )


def _topic_infos(topics: Iterable[described.TopicInfo]) -> dict[str, TopicInfo]:
    return {
        topic.name: TopicInfo(
            partitions=topic.partitions, topic_configs={each.key: each.value for each in topic.topic_configs}
        )
        for topic in topics
    }


def _member(member: Member) -> StreamsGroupMemberDescription:
    return StreamsGroupMemberDescription(
        member_id=member.member_id,
        member_epoch=member.member_epoch,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=member.user_endpoint,
        client_tags={each.key: each.value for each in member.client_tags},
        task_offsets=member.task_offsets,
        task_end_offsets=member.task_end_offsets,
        assignment=member.assignment,
        target_assignment=member.target_assignment,
        is_classic=member.is_classic,
    )
