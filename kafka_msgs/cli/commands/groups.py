"""``kafka-msgs groups``: all groups of a cluster or of log directories, or their members."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.log_groups import names_in, read_groups_from, report_groups, report_problems, select_groups
from kafka_msgs.cli.output_options import listing_option, log_dirs_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.timestamps import iso_of_ms, short_time
from kafka_msgs.cli.report_options import report_option
from kafka_msgs.internal_topics.group_descriptions import AssignedItem, MemberDescription

if TYPE_CHECKING:
    from kafka_msgs.analysis.groups import GroupWithOffsets

__all__ = ["groups_command"]

_GROUP: Final = (
    "group",
    "kind",
    "protocol",
    "state",
    "epoch",
    "members",
    "partitions",
    "lag",
    "ahead",
    "lastCommitTimestamp",
    "lastCommitTime",
)
_GROUP_TABLE: Final = ("group", "kind", "state", "epoch", "members", "partitions", "lag", "lastCommit")
_MEMBER: Final = (
    "group", "kind", "memberId", "instanceId", "rackId", "clientId", "clientHost", "epoch", "state",
    "subscribedTopics", "subscribedRegex", "assigned", "target", "revoking", "problem",
)  # fmt: skip
_MEMBER_TABLE: Final = ("group", "memberId", "clientHost", "epoch", "state", "subscribedTopics", "assigned", "problem")


_TYPES: Final = ("classic", "consumer", "share", "streams")


@click.command("groups")
@click.argument("requested", metavar="[GROUP]...", nargs=-1)
@broker_options(required=False)
@log_dirs_option(required=False)
@click.option("--list", "listing", is_flag=True, help="List the groups. This is the default.")
@click.option("--members", is_flag=True, help="Print one row per member, with its subscription and assignment.")
@click.option(
    "--group-type",
    metavar="TYPE",
    type=click.Choice(_TYPES, case_sensitive=False),
    help="Show only groups of this type.",
)
@click.option("--protocol", help="Show only groups of this protocol type, such as consumer or connect.")
@click.option("--consumer", "short", flag_value="consumer", help="Show only consumer groups of either protocol.")
@click.option("--share", "short", flag_value="share", help="Show only share groups.")
@click.option("--streams", "short", flag_value="streams", help="Show only streams groups.")
@report_option
@listing_option
def groups_command(
    requested: tuple[str, ...],
    cluster: ClusterOptions,
    log_dirs: tuple[Path, ...],
    listing: bool,
    members: bool,
    group_type: str | None,
    protocol: str | None,
    short: str | None,
    report_dir: Path | None,
    output_format: str,
) -> None:
    """List groups of every type: kind, state, members, lag and last commit, including empty groups.

    The groups belong to a cluster, or with --log-dirs to a broker's files. GROUP selects groups. Only files contain
    the time of the last commit. The exit status is 1 if a record could not be read; standard error lists these
    records.

    Example: kafka-msgs groups --members -b localhost
    """
    if bool(log_dirs) == (cluster.bootstrap_server is not None):
        raise click.UsageError("expected --bootstrap-server or --log-dirs" + (", not both" if log_dirs else ""))
    if report_dir is not None and not log_dirs:
        raise click.UsageError("--report needs --log-dirs")
    if listing and members:
        raise click.UsageError("--list excludes --members")
    choice = partial(_chosen, group_type=group_type, protocol=protocol, short=short)
    if cluster.bootstrap_server is None:
        groups_in_files = read_groups_from(log_dirs, windows=report_dir is not None)
        groups = [
            group
            for group in select_groups(groups_in_files, requested)
            if choice(group.description.kind, group.description.protocol_type)
        ]
        names = names_in(log_dirs) if members else {}
        rows = (
            [_member(g, m, names) for g in groups for m in g.description.members]
            if members
            else list(map(_group, groups))
        )
        _print(output_format, rows, members=members)
        report_groups(groups_in_files, groups, log_dirs, report_dir)
        report_problems(groups_in_files.problems)
        return
    from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
    from kafka_msgs.cli.group_commands.summary_rows import member_summaries, summaries

    with cluster.admin() as admin:
        source = BrokerGroups(admin)
        listed = [group for group in source.list_groups() if choice(group.type, group.protocol_type)]
        for name in requested:
            if name not in {group.group_id for group in listed}:
                raise click.ClickException(f"there is no group {name!r}")
        listed = [group for group in listed if not requested or group.group_id in requested]
        _print(output_format, list((member_summaries if members else summaries)(source, listed)), members=members)


def _chosen(kind: str, protocol_type: str, *, group_type: str | None, protocol: str | None, short: str | None) -> bool:
    """Whether a group matches the filters, by Kafka's rules: a classic consumer group is a consumer group."""
    kind = kind.lower()
    of_consumers = kind == "consumer" or (kind == "classic" and protocol_type in ("consumer", ""))
    return (
        group_type in (None, kind)
        and protocol in (None, protocol_type)
        and (short is None or (of_consumers if short == "consumer" else kind == short))
    )


def _print(output_format: str, rows: Sequence[dict[str, Any]], *, members: bool) -> None:
    if members:
        print_listing(output_format, _MEMBER, rows, in_table=_MEMBER_TABLE)
    else:
        print_listing(output_format, _GROUP, rows, in_table=_GROUP_TABLE)


def _group(group: GroupWithOffsets) -> dict[str, Any]:
    time = group.last_commit
    times = {"lastCommitTimestamp": time, "lastCommitTime": iso_of_ms(time), "lastCommit": short_time(time)}
    return {**group.row(), **times}


def _member(group: GroupWithOffsets, member: MemberDescription, names: dict[str, str]) -> dict[str, Any]:
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
    return [_place(assignment, names) for assignment in member.assigned if assignment.status == status]


def _place(assigned: AssignedItem, names: dict[str, str]) -> str:
    """Return ``orders-0`` for a partition, and ``standby 1_0`` for a task of a streams group."""
    if assigned.role != "partition":
        return f"{assigned.role} {assigned.subtopology_id}_{assigned.partition}"
    topic = assigned.topic or names.get(str(assigned.topic_id), str(assigned.topic_id))
    return f"{topic}-{assigned.partition}"
