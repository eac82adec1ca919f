"""``kafka-msgs groups``: all groups of log directories, or their members, without a broker and without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from kafka_msgs.cli.offsets_topic import chosen, groups_in, names_in, report_problems
from kafka_msgs.cli.options import format_option, log_dirs_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.times import iso_of_ms, short_time
from kafka_msgs.offline.groups import Group
from kafka_msgs.topics.describe import Assigned, MemberDescription

__all__ = ["groups_command"]

_GROUP: Final = (
    "group",
    "kind",
    "state",
    "epoch",
    "members",
    "partitions",
    "lag",
    "lastCommitTimestamp",
    "lastCommitTime",
)
_GROUP_TABLE: Final = ("group", "kind", "state", "epoch", "members", "partitions", "lag", "lastCommit")
_MEMBER: Final = (
    "group", "kind", "memberId", "instanceId", "rackId", "clientId", "clientHost", "epoch", "state",
    "subscribedTopics", "subscribedRegex", "assigned", "target", "revoking", "problem",
)  # fmt: skip
_MEMBER_TABLE: Final = ("group", "memberId", "clientHost", "epoch", "state", "subscribedTopics", "assigned", "problem")


@click.command("groups")
@click.argument("wanted", metavar="[GROUP]...", nargs=-1)
@log_dirs_option
@click.option("--members", is_flag=True, help="Print one row per member, with its subscription and assignment.")
@format_option
def groups_command(wanted: tuple[str, ...], log_dirs: tuple[Path, ...], members: bool, form: str) -> None:
    """List the groups in log directories: kind, state, members, lag and last commit, also of empty groups.

    With names of groups only these. Nothing but the files is needed; Spark is not. The exit status is 1 if some record
    could not be read; standard error lists these.
    """
    found = groups_in(log_dirs)
    groups = chosen(found, wanted)
    if members:
        names = names_in(log_dirs)
        rows = [_member(each, member, names) for each in groups for member in each.description.members]
        print_listing(form, _MEMBER, rows, in_table=_MEMBER_TABLE)
    else:
        print_listing(form, _GROUP, [_group(each) for each in groups], in_table=_GROUP_TABLE)
    report_problems(found)


def _group(group: Group) -> dict[str, Any]:
    described = group.description
    return {
        "group": described.group_id,
        "kind": described.kind,
        "state": described.state,
        "epoch": described.epoch,
        "members": len(described.members),
        "partitions": len(group.offsets),
        "lag": group.lag,
        "lastCommitTimestamp": group.last_commit,
        "lastCommitTime": iso_of_ms(group.last_commit),
        "lastCommit": short_time(group.last_commit),
    }


def _member(group: Group, member: MemberDescription, names: dict[str, str]) -> dict[str, Any]:
    topics = member.subscribed_topics
    return {
        "group": group.description.group_id,
        "kind": group.description.kind,
        "memberId": member.member_id,
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "epoch": member.epoch,
        "state": member.state,
        "subscribedTopics": None if topics is None else list(topics),
        "subscribedRegex": member.subscribed_regex,
        "assigned": _places(member, "current", names),
        "target": _places(member, "target", names),
        "revoking": _places(member, "revoking", names),
        "problem": member.problem,
    }


def _places(member: MemberDescription, status: str, names: dict[str, str]) -> list[str]:
    return [_place(each, names) for each in member.assigned if each.status == status]


def _place(assigned: Assigned, names: dict[str, str]) -> str:
    """Return ``orders-0`` for a partition, and ``standby 1_0`` for a task of a streams group."""
    if assigned.role != "partition":
        return f"{assigned.role} {assigned.subtopology_id}_{assigned.partition}"
    topic = assigned.topic or names.get(str(assigned.topic_id), str(assigned.topic_id))
    return f"{topic}-{assigned.partition}"
