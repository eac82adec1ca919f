"""``kafka-msgs lag``: every committed offset of every group, and its distance from the end of the partition."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.durations import duration
from kafka_msgs.cli.log_groups import read_groups_from, report_groups, report_problems, select_groups
from kafka_msgs.cli.output_options import listing_option, log_dirs_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import echo, id_text
from kafka_msgs.cli.render.timestamps import iso_of_ms, short_time, streams_times
from kafka_msgs.cli.report_options import report_option

if TYPE_CHECKING:
    from kafka_msgs.analysis.groups import GroupOffset, GroupWithOffsets

__all__ = ["lag_command"]

_COLUMNS: Final = (
    "group", "state", "topic", "partition", "committedOffset", "endOffset", "lag", "ahead", "lagSeconds",
    "unreadTimestamp", "unreadTime", "leaderEpoch", "metadata", "partitionTimestamp", "partitionTime",
    "commitTimestamp", "commitTime", "expireTimestamp", "expireTime", "topicId", "stale",
)  # fmt: skip
_IN_TABLE: Final = (
    "group", "topic", "partition", "committedOffset", "endOffset", "lag", "ahead", "lagSeconds", "unreadSince",
    "committed",
)  # fmt: skip
"""The columns on the screen, of which ``ahead`` is shown only if a commit is beyond the end of its partition."""

_TOO_FAR: Final = 3
"""The exit status if a lag exceeds a limit."""

Rows = Sequence[Mapping[str, Any]]


@click.command("lag")
@click.argument("requested", metavar="[GROUP]...", nargs=-1)
@broker_options(required=False)
@log_dirs_option(required=False)
@click.option(
    "--end-offsets",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Output of kafka-get-offsets; default: the ends of the partitions in the log directories.",
)
@click.option("--records-only", is_flag=True, help="Do not read records to determine their age.")
@click.option("--watch", metavar="TIME", type=duration("s", min_seconds=0.1), help="Repeat every TIME, such as 5s.")
@click.option("--rounds", metavar="N", type=click.IntRange(min=1), help="With --watch, stop after N rounds.")
@click.option("--max-lag", metavar="N", type=click.IntRange(min=0), help="Exit with status 3 if a lag exceeds N.")
@click.option(
    "--max-seconds",
    metavar="TIME",
    type=duration("s"),
    help="Exit with status 3 if the oldest unread record has waited longer, such as 5m.",
)
@report_option
@click.option("--prometheus", is_flag=True, help="Print Prometheus metrics.")
@listing_option
@click.pass_context
def lag_command(
    ctx: click.Context,
    /,
    requested: tuple[str, ...],
    cluster: ClusterOptions,
    log_dirs: tuple[Path, ...],
    end_offsets: Path | None,
    records_only: bool,
    watch: float | None,
    rounds: int | None,
    max_lag: int | None,
    max_seconds: float | None,
    prometheus: bool,
    report_dir: Path | None,
    output_format: str,
) -> None:
    """List the committed offsets of all groups with their lag, largest lag first, including empty groups.

    GROUP selects groups. The lag is empty if the end of the partition is unknown. With a broker, lagSeconds is the
    age of the first unread record of a partition. With --log-dirs, no broker is needed; the exit status is 1 if a
    record could not be read, and standard error lists these records.

    With --watch, a terminal shows the newest round; files and pipes receive all rounds. With --max-lag
    and --max-seconds, the exit status is 3 if the last round exceeds a limit.

    Example: kafka-msgs lag billing --watch 5s -b localhost
    """
    if bool(log_dirs) == (cluster.bootstrap_server is not None):
        raise click.UsageError("expected --bootstrap-server or --log-dirs" + (", not both" if log_dirs else ""))
    if log_dirs and watch is not None:
        raise click.UsageError("--watch needs --bootstrap-server")
    if report_dir is not None and not log_dirs:
        raise click.UsageError("--report needs --log-dirs")
    if cluster.bootstrap_server is None:
        groups_in_files = read_groups_from(log_dirs, end_offsets)
        groups = select_groups(groups_in_files, requested)
        rows: Rows = [_row(group, offset) for group in groups for offset in group.offsets]
        rows = sorted(rows, key=_largest_lag_first)
        _show(rows, output_format, prometheus)
        report_groups(groups_in_files, groups, log_dirs, report_dir)
        report_problems(groups_in_files.problems)
    else:
        from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
        from kafka_msgs.cli.group_commands.lags import compute_lags, row_of

        with cluster.admin() as admin:
            source = BrokerGroups(admin)

            def ask() -> Rows:
                cluster.limit(admin.client)
                return [row_of(lag) for lag in compute_lags(source, requested, times=not records_only)]

            rows = _rounds(ask, output_format, prometheus, watch, rounds)
    if _above(rows, max_lag, max_seconds):
        ctx.exit(_TOO_FAR)


def _rounds(ask: Any, output_format: str, prometheus: bool, watch: float | None, rounds: int | None) -> Rows:
    """Query and print the lags; return the last rows.

    With ``watch``, repeat for ``rounds`` rounds or until the user interrupts.
    """
    rows: Rows = []
    done = 0
    try:
        while True:
            rows = ask()
            if watch is not None and sys.stdout.isatty():
                click.clear()
            _show(rows, output_format, prometheus)
            done += 1
            if watch is None or done == rounds:
                return rows
            time.sleep(watch)
    except KeyboardInterrupt:
        return rows


def _show(rows: Rows, output_format: str, prometheus: bool) -> None:
    if prometheus:
        from kafka_msgs.cli.group_commands.lags import metrics
        from kafka_msgs.report.prometheus import metrics_text

        echo(metrics_text(metrics(rows)), nl=False)
    else:
        shown = _IN_TABLE if any(row["ahead"] for row in rows) else tuple(name for name in _IN_TABLE if name != "ahead")
        print_listing(output_format, _COLUMNS, rows, in_table=shown)


def _above(rows: Rows, max_lag: int | None, max_seconds: float | None) -> bool:
    limits = {"lag": max_lag, "lagSeconds": max_seconds}
    return any((row[name] or 0) > limit for name, limit in limits.items() if limit is not None for row in rows)


def _row(group: GroupWithOffsets, committed: GroupOffset) -> dict[str, Any]:
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
        "stale": committed.stale,
    }


def _largest_lag_first(row: Mapping[str, Any]) -> tuple[bool, int, str, str, int]:
    lag = row["lag"]
    return lag is None, -(lag or 0), row["group"], row["topic"], row["partition"]
