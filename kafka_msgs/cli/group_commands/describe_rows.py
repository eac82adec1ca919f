"""The rows of ``--describe``: values by column name, from descriptions and offsets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from kafka_msgs.admin.groups import AnyGroupDescription, GroupDescription, GroupMember
from kafka_msgs.admin.streams_groups import StreamsGroupDescription, StreamsGroupMemberDescription
from kafka_msgs.cli.group_commands.group_source import LogBounds, Offsets, OffsetWithLag
from kafka_msgs.client.cluster_metadata import Broker, TopicPartition
from kafka_msgs.enums import GroupState, GroupType
from kafka_msgs.messages.streams_group_describe_response import Assignment, TaskIds

__all__ = ["assigned_places", "member_rows", "offset_rows", "state_of", "state_row", "type_of"]

Row = dict[str, Any]


def offset_rows(
    group: AnyGroupDescription, offsets: Offsets, bounds: Mapping[TopicPartition, LogBounds]
) -> Iterator[Row]:
    """Yield a row for each partition that a member owns or the group has an offset for, by topic and partition."""
    owners = assigned_places(group)
    for partition in sorted({*owners, *offsets}):
        owner, stored, limits = owners.get(partition), offsets.get(partition), bounds.get(partition)
        yield {
            "group": group.group_id,
            "topic": partition.topic,
            "partition": partition.partition,
            "leaderEpoch": stored and stored.leader_epoch,
            "committedOffset": stored and stored.offset,
            "endOffset": limits and limits.latest,
            "lag": _lag(group, stored, limits),
            "metadata": stored and stored.metadata,
            "memberId": owner and owner.member_id,
            "clientHost": owner and owner.client_host,
            "clientId": owner and owner.client_id,
        }


def _lag(group: AnyGroupDescription, stored: OffsetWithLag | None, limits: LogBounds | None) -> int | None:
    """Return the number of remaining offsets, or None if it is unknown.

    For a share group, the coordinator returns the lag. A streams group without an offset starts at the first record.
    """
    if type_of(group) == GroupType.SHARE:
        return None if stored is None else stored.lag
    if limits is None:
        return None
    if stored is not None:
        return limits.latest - stored.offset
    return limits.latest - limits.earliest if type_of(group) == GroupType.STREAMS else None


def assigned_places(
    group: AnyGroupDescription,
) -> dict[TopicPartition, GroupMember | StreamsGroupMemberDescription]:
    """Return the owner of each partition; in a streams group, the owner of the active task that reads it."""
    if isinstance(group, GroupDescription):
        return {partition: member for member in group.members for partition in member.assignment}
    topics = {
        part.subtopology_id: (*part.source_topics, *part.repartition_source_topics) for part in group.subtopologies
    }
    return {
        TopicPartition(topic, partition): member
        for member in group.members
        for task in member.assignment.active_tasks
        for topic in topics.get(task.subtopology_id, ())
        for partition in task.partitions
    }


def member_rows(group: AnyGroupDescription) -> Iterator[Row]:
    """Yield a row for each member."""
    if isinstance(group, GroupDescription):
        return (_member(group, member) for member in group.members)
    return (_streams_member(group, member) for member in group.members)


def _member(group: GroupDescription, member: GroupMember) -> Row:
    mixed = group.type == GroupType.CONSUMER and any(member.classic for member in group.members)
    return {
        "group": group.group_id,
        "memberId": member.member_id,
        "instanceId": member.instance_id,
        "clientHost": member.client_host,
        "clientId": member.client_id,
        "partitions": len(member.assignment),
        "epoch": member.epoch,
        "assignment": _places(member.assignment),
        "memberTargetEpoch": None if member.epoch is None else group.assignment_epoch,
        "target": None if member.target_assignment is None else _places(member.target_assignment),
        "upgraded": None if not mixed else not member.classic,
    }


def _places(places: Iterable[TopicPartition]) -> str:
    """Format partitions as ``orders:0,1; payments:0``."""
    by_topic = groupby(sorted(places), lambda partition: partition.topic)
    return "; ".join(
        f"{topic}:{','.join(str(partition.partition) for partition in partitions)}" for topic, partitions in by_topic
    )


def _streams_member(group: StreamsGroupDescription, member: StreamsGroupMemberDescription) -> Row:
    current = _assignment(member.assignment, "")
    return {
        "group": group.group_id,
        "memberId": member.member_id,
        "instanceId": member.instance_id,
        "clientHost": member.client_host,
        "clientId": member.client_id,
        "processId": member.process_id,
        "protocol": "classic" if member.is_classic else "streams",
        "epoch": member.member_epoch,
        "targetEpoch": group.target_assignment_epoch,
        "topologyEpoch": member.topology_epoch,
        "assignments": current,
        "allAssignments": " ".join(filter(None, (current, _assignment(member.target_assignment, "TARGET-")))),
    }


def _assignment(assignment: Assignment, prefix: str) -> str:
    """Format an assignment as ``ACTIVE: 0:[0,1]; STANDBY: 1:[0];``."""
    roles = {
        "ACTIVE": assignment.active_tasks,
        "STANDBY": assignment.standby_tasks,
        "WARMUP": assignment.warmup_tasks,
    }
    return " ".join(f"{prefix}{role}: {' '.join(map(_task, tasks))}" for role, tasks in roles.items() if tasks)


def _task(task: TaskIds) -> str:
    return f"{task.subtopology_id}:[{','.join(map(str, task.partitions))}];"


def state_row(group: AnyGroupDescription) -> Row:
    """Return the row of a group: its coordinator, its state, its epochs."""
    row = {
        "group": group.group_id,
        "coordinator": _coordinator(group.coordinator),
        "assignor": group.assignor,
        "state": str(state_of(group)),
        "members": len(group.members),
    }
    if isinstance(group, GroupDescription):
        return row | {"groupEpoch": group.epoch, "targetEpoch": group.assignment_epoch}
    return row | {"groupEpoch": group.group_epoch, "targetEpoch": group.target_assignment_epoch}


def state_of(group: AnyGroupDescription) -> GroupState:
    """Return the state of a group of any type."""
    return group.state if isinstance(group, GroupDescription) else group.group_state


def type_of(group: AnyGroupDescription) -> GroupType:
    """Return the type of a group."""
    return group.type if isinstance(group, GroupDescription) else GroupType.STREAMS


def _coordinator(broker: Broker | None) -> str | None:
    return None if broker is None else f"{broker.address.host}:{broker.address.port} ({broker.id})"
