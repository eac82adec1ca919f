"""Lags in log directories: the rows of committed offsets with their owners, and the status from the latest commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from attrs import evolve

from kafka_msgs.cli.group_commands.lag_options import LagOptions
from kafka_msgs.cli.log_groups import names_in
from kafka_msgs.cli.render.output import id_text
from kafka_msgs.cli.render.timestamps import iso_of_ms, short_time, streams_times
from kafka_msgs.internal_topics.group_descriptions import MemberDescription
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.partition_discovery import partitions_in
from kafka_msgs.log.timestamps import latest_of, local_timestamps, newest_of

if TYPE_CHECKING:
    from kafka_msgs.analysis.groups import GroupOffset, GroupsRead, GroupWithOffsets

__all__ = ["rows_in_files", "selected_groups"]

Row: TypeAlias = dict[str, Any]
_CURRENT: Final = "current"


def rows_in_files(found: GroupsRead, log_dirs: Sequence[Path], options: LagOptions) -> list[Row]:
    """Return the rows of the selected groups and topics, the largest lag first. Raises ``OSError``."""
    groups = selected_groups(found, options)
    names = names_in(log_dirs)
    rows = [
        _row(group, offset, owners.get((offset.topic, offset.partition)))
        for group in groups
        for owners in [_owners(group, names)]
        for offset in group.offsets
    ]
    if options.status:
        rows = list(_with_status(rows, partitions_in(log_dirs)))
    return sorted(rows, key=_largest_lag_first)


def _largest_lag_first(row: Mapping[str, Any]) -> tuple[bool, int, str, str, int]:
    lag = row["lag"]
    return lag is None, -(lag or 0), row["group"], row["topic"], row["partition"]


def selected_groups(found: GroupsRead, options: LagOptions) -> list[GroupWithOffsets]:
    """Return the selected groups with their offsets in the selected topics."""
    groups = {group.description.group_id: group for group in found.groups}
    accepts = options.topic_filter.accepts
    return [
        evolve(groups[name], offsets=tuple(each for each in groups[name].offsets if accepts(each.topic)))
        for name in options.select_groups(groups)
    ]


def _owners(group: GroupWithOffsets, names: Mapping[str, str]) -> dict[tuple[str, int], MemberDescription]:
    """Return the member that owns each partition."""
    return {
        (each.topic or names.get(str(each.topic_id), ""), each.partition): member
        for member in group.description.members
        for each in member.assigned
        if each.role == "partition" and each.status == _CURRENT
    }


def _row(group: GroupWithOffsets, committed: GroupOffset, owner: MemberDescription | None) -> Row:
    return {
        "group": group.description.group_id,
        "state": group.description.state,
        "topic": committed.topic,
        "partition": committed.partition,
        "committedOffset": committed.offset,
        "endOffset": committed.end_offset,
        "lag": committed.lag,
        "ahead": committed.ahead,
        "lagSeconds": None,
        "unreadTimestamp": None,
        "unreadTime": None,
        "unreadSince": None,
        "leaderEpoch": committed.leader_epoch,
        "metadata": committed.metadata,
        **streams_times(committed.metadata),
        "commitTimestamp": committed.commit_timestamp,
        "commitTime": iso_of_ms(committed.commit_timestamp),
        "committed": short_time(committed.commit_timestamp),
        "expireTimestamp": committed.expire_timestamp,
        "expireTime": iso_of_ms(committed.expire_timestamp),
        "topicId": None if committed.topic_id is None else id_text(committed.topic_id),
        "clientId": owner and owner.client_id,
        "clientHost": owner and owner.client_host,
        "status": None,
        "window": committed.window,
        "stale": committed.stale,
    }


def _with_status(rows: Sequence[Row], partitions: Sequence[Partition]) -> Iterable[Row]:
    """Return rows with their status at the newest time in the logs and commits. It is UNKNOWN for share groups."""
    from kafka_msgs.analysis.lag_status import with_statuses

    logs = local_timestamps(partitions)
    read = {(row["topic"], row["partition"]) for row in rows} & logs.keys()
    now = newest_of([*(latest_of(logs[place]) for place in read), *(row["commitTimestamp"] for row in rows)])
    return with_statuses(rows, now or 0, logs, "partition")
