"""``kafka-msgs lag``: every committed offset of every group, and its distance from the end of the partition."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.group_commands.lag_options import LagOptions, lag_options
from kafka_msgs.cli.output_options import listing_option, log_dirs_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import echo
from kafka_msgs.cli.report_options import input_facts, report_option

__all__ = ["lag_command"]

_COLUMNS: Final = (
    "group", "state", "topic", "partition", "committedOffset", "endOffset", "lag", "ahead", "status", "lagSeconds",
    "unreadTimestamp", "unreadTime", "leaderEpoch", "metadata", "partitionTimestamp", "partitionTime",
    "commitTimestamp", "commitTime", "expireTimestamp", "expireTime", "topicId", "clientId", "clientHost",
    "stale",
)  # fmt: skip
_IN_TABLE: Final = (
    "group", "topic", "partition", "committedOffset", "endOffset", "lag", "ahead", "status", "lagSeconds",
    "unreadSince", "committed",
)  # fmt: skip
_IF_PRESENT: Final = ("ahead", "status")
"""The columns on the screen that are shown only if they have a value other than 0."""

_TOO_FAR: Final = 3
"""The exit status if a lag exceeds a limit."""

Rows = Sequence[Mapping[str, Any]]


@click.command("lag")
@click.argument("requested", metavar="[GROUP]...", nargs=-1)
@broker_options(required=False)
@log_dirs_option(required=False)
@lag_options
@report_option
@click.option("--prometheus", is_flag=True, help="Print Prometheus metrics.")
@listing_option
@click.pass_context
def lag_command(
    ctx: click.Context,
    /,
    cluster: ClusterOptions,
    log_dirs: tuple[Path, ...],
    report_dir: Path | None,
    output_format: str,
    **values: Any,
) -> None:
    """List the committed offsets of all groups with their lag, largest lag first, including empty groups.

    GROUP selects groups. The lag is empty if the end of the partition is unknown. With a broker, lagSeconds is the
    age of the first unread record of a partition. With --log-dirs, no broker is needed; the exit status is 1 if a
    record could not be read, and standard error lists these records.

    With --watch, a terminal shows the newest round; files and pipes receive all rounds. With --max-lag
    and --max-seconds, the exit status is 3 if the last round exceeds a limit.

    With --listen, the command is a Prometheus exporter.

    Example: kafka-msgs lag billing --watch 5s -b localhost
    """
    options = LagOptions(**values)
    if bool(log_dirs) == (cluster.bootstrap_server is not None):
        raise click.UsageError("expected --bootstrap-server or --log-dirs" + (", not both" if log_dirs else ""))
    options.check(from_files=bool(log_dirs), with_report=report_dir is not None)
    if log_dirs:
        rows = _from_files(options, log_dirs, report_dir, output_format)
    else:
        rows = _from_cluster(options, cluster, output_format)
    if _above(rows, {"lag": options.max_lag, "lagSeconds": options.max_seconds}):
        ctx.exit(_TOO_FAR)


def _from_files(options: LagOptions, log_dirs: tuple[Path, ...], report_dir: Path | None, output_format: str) -> Rows:
    from kafka_msgs.cli.group_commands.file_lags import rows_in_files, selected_groups
    from kafka_msgs.cli.log_groups import read_groups_from, report_groups, report_problems

    windows = options.status or report_dir is not None
    found = read_groups_from(log_dirs, options.end_offsets, windows=windows)
    rows = rows_in_files(found, log_dirs, options)
    cluster = options.cluster_name or input_facts(list(map(str, log_dirs))).get("cluster")
    _show(rows, output_format, options.prometheus, cluster)
    report_groups(found, selected_groups(found, options), log_dirs, report_dir)
    report_problems(found.problems)
    return rows


def _from_cluster(options: LagOptions, cluster: ClusterOptions, output_format: str) -> Rows:
    from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
    from kafka_msgs.cli.group_commands.live_lags import LiveLags

    if options.listen is not None:
        _listen(options, cluster)
        return []
    with cluster.admin() as admin:
        lags = LiveLags(BrokerGroups(admin), options, options.watch or 0)
        name = (options.cluster_name or admin.describe_cluster().cluster_id) if options.prometheus else None

        def ask() -> Rows:
            cluster.limit(admin.client)
            return lags.rows()

        return _rounds(ask, lambda rows: _show(rows, output_format, options.prometheus, name), options)


def _listen(options: LagOptions, cluster: ClusterOptions) -> None:
    from attrs import evolve

    from kafka_msgs.cli.group_commands.broker_groups import PartialBrokerGroups
    from kafka_msgs.cli.group_commands.lag_exporter import LagExporter, serve
    from kafka_msgs.cli.group_commands.live_lags import LiveLags

    assert options.listen is not None
    with cluster.admin() as admin:
        name = options.cluster_name or admin.describe_cluster().cluster_id or ""
        source = PartialBrokerGroups(admin)
        lags = LiveLags(source, evolve(options, status=True), options.refresh)

        def collect() -> tuple[list[dict[str, Any]], list[str]]:
            cluster.limit(admin.client)
            source.problems.clear()
            return lags.rows(), list(source.problems)

        exporter = LagExporter(collect, name, options.refresh)
        serve(exporter, *options.listen, lambda url: echo(f"Metrics are at {url}/metrics"))


def _rounds(ask: Callable[[], Rows], show: Callable[[Rows], None], options: LagOptions) -> Rows:
    """Query and print the lags; return the last rows.

    With ``watch``, repeat for ``rounds`` rounds or until the user interrupts.
    """
    rows: Rows = []
    done = 0
    try:
        while True:
            rows = ask()
            if options.watch is not None and sys.stdout.isatty():
                click.clear()
            show(rows)
            done += 1
            if options.watch is None or done == options.rounds:
                return rows
            time.sleep(options.watch)
    except KeyboardInterrupt:
        return rows


def _show(rows: Rows, output_format: str, prometheus: bool, cluster: str | None) -> None:
    if prometheus:
        from kafka_msgs.report.prometheus import metrics_text
        from kafka_msgs.report.sections.lag_metrics import lag_metrics

        echo(metrics_text(lag_metrics(_served(rows)), {"cluster": cluster} if cluster else None), nl=False)
    else:
        hidden = {name for name in _IF_PRESENT if not any(row[name] for row in rows)}
        print_listing(output_format, _COLUMNS, rows, in_table=tuple(name for name in _IN_TABLE if name not in hidden))


def _above(rows: Rows, limits: Mapping[str, float | None]) -> bool:
    return any((row[name] or 0) > limit for name, limit in limits.items() if limit is not None for row in _served(rows))


def _served(rows: Rows) -> Rows:
    """Return the rows of offsets that coordinators serve."""
    return [row for row in rows if not row["stale"]]
