"""``kafka-msgs profile``: profile the contents of topics, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from kafka_msgs.analysis.topic_profile import TopicProfile, read_profile
from kafka_msgs.analysis.topic_stats import TopicStats, merge_stats
from kafka_msgs.cli.log_groups import report_problems
from kafka_msgs.cli.output_options import listing_option, log_dirs_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.progress import progress_over
from kafka_msgs.cli.render.timestamps import iso_of_ms
from kafka_msgs.cli.report_options import report_option, save_report
from kafka_msgs.log.partition_discovery import partitions_in

__all__ = ["profile_command"]

_PLACE: Final = ("topic", "partition", "hour")
_COLUMNS: Final = (
    "records", "batches", "bytes", "contentBytes", "ratio", "codecs", "meanKeySize", "maxKeySize", "meanValueSize",
    "maxValueSize", "withoutKey", "tombstones", "producers", "transactions", "abortedTransactions", "abortedRecords",
    "outOfOrder", "firstOffset", "lastOffset",
)  # fmt: skip
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

    Example: kafka-msgs profile --log-dirs /var/lib/kafka orders
    """
    partitions = partitions_in(log_dirs)
    for topic in topics:
        if topic not in {partition.topic for partition in partitions}:
            raise click.ClickException(f"there is no topic {topic!r}")
    requested = [partition for partition in partitions if not topics or partition.topic in topics]
    with progress_over([segment.path for partition in requested for segment in partition.segments]) as progress:
        profile = read_profile(requested, progress=progress)
    columns = _PLACE[: _PLACE.index(by) + 1]
    print_listing(output_format, (*columns, *_COLUMNS), _rows(profile, len(columns)), in_table=(*columns, *_IN_TABLE))
    if report_dir is not None:
        from kafka_msgs.analysis.reports import profile_report

        save_report(profile_report(profile, partitions, requested), report_dir, log_dirs)
    report_problems(profile.problems)


def _rows(profile: TopicProfile, depth: int) -> list[dict[str, Any]]:
    parts: dict[tuple[Any, ...], list[TopicStats]] = {}
    for location, figures in profile.figures.items():
        parts.setdefault(location[:depth], []).append(figures)
    by_place = sorted(parts, key=lambda location: [(part is None, part) for part in location])
    return [_place(location) | _row(merge_stats(parts[location])) for location in by_place]


def _place(location: tuple[Any, ...]) -> dict[str, Any]:
    named = dict(zip(_PLACE, location, strict=False))
    return {name: iso_of_ms(value) if name == "hour" else value for name, value in named.items()}


def _row(figures: TopicStats) -> dict[str, Any]:
    return {
        "records": figures.records,
        "batches": figures.batches,
        "bytes": figures.bytes,
        "contentBytes": figures.content_bytes,
        "ratio": figures.ratio,
        "codecs": sorted(figures.codecs),
        "meanKeySize": figures.mean_key_size,
        "maxKeySize": figures.max_key_size,
        "meanValueSize": figures.mean_value_size,
        "maxValueSize": figures.max_value_size,
        "withoutKey": figures.without_key,
        "tombstones": figures.tombstones,
        "producers": len(figures.producers),
        "transactions": figures.transactions,
        "abortedTransactions": figures.aborted_transactions,
        "abortedRecords": figures.aborted_records,
        "outOfOrder": figures.out_of_order,
        "firstOffset": figures.first_offset,
        "lastOffset": figures.last_offset,
    }
