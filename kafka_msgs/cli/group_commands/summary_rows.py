"""One row per group of a running cluster, or per member, with the columns of rows from files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kafka_msgs.admin.groups import GroupListing, GroupMember
from kafka_msgs.admin.streams_groups import StreamsGroupDescription, StreamsGroupMemberDescription
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
from kafka_msgs.cli.group_commands.describe_rows import offset_rows, state_of, type_of
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.enums import GroupType
from kafka_msgs.messages.streams_group_describe_response import Assignment

__all__ = ["member_summaries", "summaries"]

Row = dict[str, Any]


def summaries(source: BrokerGroups, listed: Sequence[GroupListing]) -> Iterator[Row]:
    """Yield a row for each group that still exists."""
    described = source.describe_groups([group.group_id for group in listed], listed=True)
    listed = [group for group in listed if group.group_id in described]
    names = [group.group_id for group in listed]
    share = [group.group_id for group in listed if group.type == GroupType.SHARE]
    offsets = {
        **source.group_offsets([name for name in names if name not in share]),
        **source.group_offsets(share, share=True),
    }
    bounds = source.bounds({partition for stored in offsets.values() for partition in stored})
    for listing in listed:
        group, stored = described[listing.group_id], offsets[listing.group_id]
        rows = [row for row in offset_rows(group, stored, bounds) if row["committedOffset"] is not None]
        lags = [row["lag"] for row in rows if row["lag"] is not None]
        yield {
            "group": listing.group_id,
            "kind": str(listing.type).lower(),
            "protocol": listing.protocol_type,
            "state": str(state_of(group)),
            "epoch": group.group_epoch if isinstance(group, StreamsGroupDescription) else group.epoch,
            "members": len(group.members),
            "partitions": len(stored),
            "lag": sum(max(0, each) for each in lags) if lags else None,
            "ahead": sum(max(0, -each) for each in lags) if lags else None,
            "lastCommitTimestamp": None,
            "lastCommitTime": None,
            "lastCommit": None,
        }


def member_summaries(source: BrokerGroups, listed: Sequence[GroupListing]) -> Iterator[Row]:
    """Yield a row for each member of the groups."""
    for name, group in source.describe_groups([listing.group_id for listing in listed], listed=True).items():
        for member in group.members:
            row = {
                "group": name,
                "kind": str(type_of(group)).lower(),
                "memberId": member.member_id,
                "instanceId": member.instance_id,
                "rackId": member.rack_id,
                "clientId": member.client_id,
                "clientHost": member.client_host,
                "state": None,
                "revoking": None,
            }
            yield row | (_plain(member) if isinstance(member, GroupMember) else _streams(member))


def _plain(member: GroupMember) -> Row:
    return {
        "epoch": member.epoch,
        "subscribedTopics": list(member.subscribed_topics),
        "subscribedRegex": member.subscribed_regex,
        "assigned": _places(member.assignment),
        "target": _places(member.target_assignment or ()),
        "problem": member.problem,
    }


def _streams(member: StreamsGroupMemberDescription) -> Row:
    return {
        "epoch": member.member_epoch,
        "subscribedTopics": None,
        "subscribedRegex": None,
        "assigned": _tasks(member.assignment),
        "target": _tasks(member.target_assignment),
        "problem": None,
    }


def _places(places: Sequence[TopicPartition]) -> list[str]:
    return [f"{partition.topic}-{partition.partition}" for partition in places]


def _tasks(assignment: Assignment) -> list[str]:
    """Format each task as ``standby 1_0``, as in rows from files."""
    roles = {"active": assignment.active_tasks, "standby": assignment.standby_tasks, "warmup": assignment.warmup_tasks}
    return [
        f"{role} {task.subtopology_id}_{partition}"
        for role, tasks in roles.items()
        for task in tasks
        for partition in task.partitions
    ]
