"""``kafka-msgs lag``: every committed offset of every group, and how far it is from the end of the partition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import click

from kafka_msgs.cli.offsets_topic import chosen, groups_in, report_problems
from kafka_msgs.cli.options import format_option, log_dirs_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.times import iso_of_ms, short_time
from kafka_msgs.offline.groups import CommittedOffset, Group

__all__ = ["lag_command"]

_COLUMNS: Final = (
    "group", "state", "topic", "partition", "committedOffset", "endOffset", "lag", "leaderEpoch", "metadata",
    "commitTimestamp", "commitTime", "expireTimestamp", "expireTime", "topicId",
)  # fmt: skip
_IN_TABLE: Final = (
    "group", "topic", "partition", "committedOffset", "endOffset", "lag", "committed",
)  # fmt: skip


@click.command("lag")
@click.argument("wanted", metavar="[GROUP]...", nargs=-1)
@log_dirs_option
@click.option(
    "--end-offsets",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of what kafka-get-offsets printed. By default the ends of the partitions in the log directories.",
)
@format_option
def lag_command(wanted: tuple[str, ...], log_dirs: tuple[Path, ...], end_offsets: Path | None, form: str) -> None:
    """List the committed offsets of all groups with their lag, the largest lag first, also of empty groups.

    With names of groups only these. A lag is empty where the end of the partition is not known. Nothing but the files
    is needed; Spark is not. The exit status is 1 if some record could not be read; standard error lists these.
    """
    found = groups_in(log_dirs, end_offsets)
    rows = [_row(group, each) for group in chosen(found, wanted) for each in group.offsets]
    print_listing(form, _COLUMNS, sorted(rows, key=_largest_lag_first), in_table=_IN_TABLE)
    report_problems(found)


def _row(group: Group, committed: CommittedOffset) -> dict[str, Any]:
    return {
        "group": group.description.group_id,
        "state": group.description.state,
        "topic": committed.topic,
        "partition": committed.partition,
        "committedOffset": committed.offset,
        "endOffset": committed.end_offset,
        "lag": committed.lag,
        "leaderEpoch": committed.leader_epoch,
        "metadata": committed.metadata,
        "commitTimestamp": committed.commit_timestamp,
        "commitTime": iso_of_ms(committed.commit_timestamp),
        "committed": short_time(committed.commit_timestamp),
        "expireTimestamp": committed.expire_timestamp,
        "expireTime": iso_of_ms(committed.expire_timestamp),
        "topicId": None if committed.topic_id is None else str(committed.topic_id),
    }


def _largest_lag_first(row: Mapping[str, Any]) -> tuple[bool, int, str, str, int]:
    lag = row["lag"]
    return lag is None, -(lag or 0), row["group"], row["topic"], row["partition"]
