"""``kafka-msgs profile``: profile the contents of topics, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.arrow_import import require_arrow
from kafka_msgs.cli.log_groups import report_problems
from kafka_msgs.cli.output_options import listing_option, log_dirs_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.render.timestamps import iso_of_ms
from kafka_msgs.cli.report_options import report_option, save_report
from kafka_msgs.log.partition_discovery import partitions_in

if TYPE_CHECKING:
    from kafka_msgs.analysis.topic_profile import ProfileRead

__all__ = ["profile_command"]

_PLACE: Final = ("topic", "partition", "hour")
_IN_TABLE: Final = ("records", "bytes", "ratio", "codecs", "tombstones", "abortedRecords", "outOfOrder")


@click.command("profile")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@log_dirs_option()
@click.option(
    "--by",
    type=click.Choice(_PLACE),
    default="topic",
    show_default=True,
    help="Grouping of the rows: topic, partition, or partition and hour.",
)
@report_option
@listing_option
def profile_command(
    topics: tuple[str, ...], log_dirs: tuple[Path, ...], by: str, report_dir: Path | None, output_format: str
) -> None:
    """Summarize the contents of topics: records, bytes, codecs, sizes, producers, transactions, timestamp order.

    TOPIC selects topics; the default is all of them. JSON has more columns than the table. The exit status is 1 if
    a batch could not be read; standard error lists these batches.

    Example: kafka-msgs profile --log-dirs kafka-logs orders
    """
    require_arrow("--log-dirs")
    from kafka_msgs.analysis.hourly_stats import STATISTICS
    from kafka_msgs.analysis.topic_profile import read_profile

    partitions = partitions_in(log_dirs)
    for topic in topics:
        if topic not in {partition.topic for partition in partitions}:
            raise click.ClickException(f"there is no topic {topic!r}")
    requested = [partition for partition in partitions if not topics or partition.topic in topics]
    with progress_over([segment.path for partition in requested for segment in partition.segments]) as progress:
        profile = read_profile(requested, progress=progress)
    place = _PLACE[: _PLACE.index(by) + 1]
    print_listing(output_format, (*place, *STATISTICS.names), _rows(profile, place), in_table=(*place, *_IN_TABLE))
    if report_dir is not None:
        from kafka_msgs.analysis.topic_profile_report import read_profile_report

        save_report(read_profile_report(profile, partitions), report_dir, log_dirs)
    report_problems(profile.problems)


def _rows(profile: ProfileRead, place: tuple[str, ...]) -> list[dict[str, Any]]:
    by = (name if name != "hour" else "hourMs" for name in place)
    return [{**row, "hour": iso_of_ms(row.get("hourMs"))} for row in profile.rows(*by)]
