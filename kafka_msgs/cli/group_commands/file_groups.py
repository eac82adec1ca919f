"""Groups in log directories, as the values with which a broker's coordinators describe them.

This module only translates: ``kafka_msgs.analysis`` reads the files. Values that no file contains stay empty:
coordinators, assignors, the tasks that members restore.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from kafka_msgs.admin.groups import AnyGroupDescription, GroupDescription, GroupListing, GroupMember
from kafka_msgs.admin.streams_groups import (
    StreamsGroupDescription,
    StreamsGroupMemberDescription,
    StreamsGroupSubtopologyDescription,
    TopicInfo,
)
from kafka_msgs.cli.group_commands.group_source import LogBounds, Offsets, OffsetWithLag
from kafka_msgs.cli.log_groups import names_in, read_groups_from, report_problems
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.enums import GroupState, GroupType
from kafka_msgs.internal_topics.group_descriptions import AssignedItem, MemberDescription
from kafka_msgs.log.partition_discovery import end_offset_of, partitions_in
from kafka_msgs.messages import streams_group_topology_value as topology
from kafka_msgs.messages.streams_group_describe_response import Assignment, TaskIds

if TYPE_CHECKING:
    from kafka_msgs.analysis.groups import GroupsRead, GroupWithOffsets
    from kafka_msgs.analysis.in_memory import ReadProblem

__all__ = ["FileGroups"]

Status = Literal["current", "target"]


class FileGroups:
    """The groups in log directories. Files are read once, on the first query."""

    def __init__(self, log_dirs: Sequence[Path]) -> None:
        self._log_dirs = log_dirs
        self._problems: list[ReadProblem] = []

    @cached_property
    def _found(self) -> GroupsRead:
        groups = read_groups_from(self._log_dirs)
        self._problems += groups.problems
        return groups

    @cached_property
    def _groups(self) -> Mapping[str, GroupWithOffsets]:
        return {group.description.group_id: group for group in self._found.groups}

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return names_in(self._log_dirs)

    def _named(self, requested: Collection[str]) -> dict[str, GroupWithOffsets]:
        for name in requested:
            if name not in self._groups:
                raise click.ClickException(f"there is no group {name!r}")
        return {name: self._groups[name] for name in requested}

    def list_groups(self) -> Sequence[GroupListing]:
        """Return the groups that have records."""
        return [
            GroupListing(
                group_id=description.group_id,
                type=GroupType.parse(description.kind),
                state=GroupState.parse(description.state),
                protocol_type=description.protocol_type,
            )
            for description in (group.description for group in self._groups.values())
        ]

    def describe_groups(self, groups: Collection[str], *, listed: bool = False) -> Mapping[str, AnyGroupDescription]:
        """Return groups as their coordinator would describe them from the same records. ``listed`` has no effect."""
        named = self._named(groups)
        return {name: _streams(group) if _is_streams(group) else self._plain(group) for name, group in named.items()}

    def group_offsets(self, groups: Collection[str], *, share: bool = False) -> Mapping[str, Offsets]:
        """Return committed offsets of groups, or with ``share`` start offsets of share groups."""
        return {
            name: {
                TopicPartition(committed.topic, committed.partition): OffsetWithLag(
                    offset=committed.offset,
                    leader_epoch=committed.leader_epoch,
                    metadata=committed.metadata,
                    lag=committed.lag if share else None,
                )
                for committed in group.served
            }
            for name, group in self._named(groups).items()
        }

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        """Return the bounds of the partitions that are in the log directories."""
        bounds = {}
        for log in partitions_in(self._log_dirs):
            partition = TopicPartition(log.topic, log.partition)
            end = end_offset_of(log) if partition in partitions else None
            if end is not None:
                bounds[partition] = LogBounds(log.segments[0].base_offset, end)
        return bounds

    def report_problems(self) -> None:
        """Print read problems on standard error, and exit with status 1 if there were any."""
        report_problems(self._problems)

    def _plain(self, group: GroupWithOffsets) -> GroupDescription:
        described = group.description
        return GroupDescription(
            group_id=described.group_id,
            type=GroupType.parse(described.kind),
            state=GroupState.parse(described.state),
            protocol_type=described.protocol_type,
            assignor=described.protocol or "",
            epoch=None if described.kind == "classic" else described.epoch,
            assignment_epoch=described.assignment_epoch,
            members=tuple(self._member(member, classic=described.kind == "classic") for member in described.members),
            coordinator=None,
        )

    def _member(self, member: MemberDescription, *, classic: bool) -> GroupMember:
        return GroupMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            epoch=None if classic else member.epoch,
            subscribed_topics=member.subscribed_topics or (),
            subscribed_regex=member.subscribed_regex,
            assignment=self._places(member, "current"),
            target_assignment=None if classic else self._places(member, "target"),
            problem=member.problem,
        )

    def _places(self, member: MemberDescription, status: Status) -> tuple[TopicPartition, ...]:
        return tuple(self._place(assignment) for assignment in member.assigned if assignment.status == status)

    def _place(self, assigned: AssignedItem) -> TopicPartition:
        topic = assigned.topic or self._names.get(str(assigned.topic_id), str(assigned.topic_id))
        return TopicPartition(topic, assigned.partition)


def _is_streams(group: GroupWithOffsets) -> bool:
    return group.description.kind == "streams"


def _streams(group: GroupWithOffsets) -> StreamsGroupDescription:
    described = group.description
    shape = described.topology
    return StreamsGroupDescription(
        group_id=described.group_id,
        group_epoch=described.epoch or 0,
        target_assignment_epoch=described.assignment_epoch or 0,
        topology_epoch=-1 if shape is None else shape.epoch,
        subtopologies=tuple(_subtopology(subtopology) for subtopology in (shape.subtopologies if shape else ())),
        members=tuple(_streams_member(member) for member in described.members),
        group_state=GroupState.parse(described.state),
        coordinator=None,
        authorized_operations=None,
    )


def _subtopology(part: topology.Subtopology) -> StreamsGroupSubtopologyDescription:
    return StreamsGroupSubtopologyDescription(
        subtopology_id=part.subtopology_id,
        source_topics=part.source_topics,
        repartition_sink_topics=part.repartition_sink_topics,
        state_changelog_topics=_topic_infos(part.state_changelog_topics),
        repartition_source_topics=_topic_infos(part.repartition_source_topics),
    )


def _topic_infos(topics: Iterable[topology.TopicInfo]) -> dict[str, TopicInfo]:
    return {
        topic.name: TopicInfo(
            partitions=topic.partitions, topic_configs={config.key: config.value for config in topic.topic_configs}
        )
        for topic in topics
    }


def _streams_member(member: MemberDescription) -> StreamsGroupMemberDescription:
    return StreamsGroupMemberDescription(
        member_id=member.member_id,
        member_epoch=member.epoch or 0,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch or 0,
        process_id=member.process_id or "",
        user_endpoint=None,
        client_tags={},
        task_offsets=(),
        task_end_offsets=(),
        assignment=_tasks(member, "current"),
        target_assignment=_tasks(member, "target"),
        is_classic=False,
    )


def _tasks(member: MemberDescription, status: Status) -> Assignment:
    roles: dict[str, dict[str, list[int]]] = {"active": {}, "standby": {}, "warmup": {}}
    for task in member.assigned:
        if task.status == status:
            roles[task.role].setdefault(str(task.subtopology_id), []).append(task.partition)
    active, standby, warmup = (
        tuple(TaskIds(subtopology_id=name, partitions=tuple(sorted(numbers))) for name, numbers in tasks.items())
        for tasks in roles.values()
    )
    return Assignment(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
