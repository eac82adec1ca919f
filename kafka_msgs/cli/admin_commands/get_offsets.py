"""``kafka-msgs get-offsets``: the offsets of partitions at their ends, or at a time."""

from __future__ import annotations

import re
from typing import Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import parse_partition, print_outcomes, words
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.timestamps import iso_of_ms

__all__ = ["get_offsets_command"]

_SPECS: Final = {
    "latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5,
    "earliest-pending-upload": -6,
}  # fmt: skip
_COLUMNS: Final = ("topic", "partition", "offset", "leaderEpoch", "timestamp", "time")
_MILLISECONDS: Final = re.compile(r"-[1-6]|\d{1,15}", re.ASCII)


def _time(text: str) -> int:
    if text in _SPECS:
        return _SPECS[text]
    if _MILLISECONDS.fullmatch(text) is None:
        raise click.BadParameter(f"{text!r} is not one of {', '.join(_SPECS)}, or milliseconds since 1970")
    return int(text)


@click.command("get-offsets")
@click.argument("names", metavar="[TOPIC]...", nargs=-1)
@click.option("-t", "--topic", "more_names", metavar="TOPICS", multiple=True, callback=words, help="Topic names.")
@broker_options()
@click.option("-p", "--partitions", metavar="N", multiple=True, callback=words, help="Only these partitions.")
@click.option(
    "--topic-partitions", "places", metavar="TOPIC:N", multiple=True, callback=words, help="Only these partitions."
)
@click.option(
    "--time",
    "spec",
    type=_time,
    default="latest",
    metavar="TIME",
    show_default=True,
    help="latest, earliest, max-timestamp, earliest-local, latest-tiered, or the first record at or after this time in "
    "milliseconds since 1970.",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Omit internal topics.")
@listing_option
def get_offsets_command(
    names: tuple[str, ...],
    more_names: tuple[str, ...],
    cluster: ClusterOptions,
    partitions: tuple[str, ...],
    places: tuple[str, ...],
    spec: int,
    exclude_internal_topics: bool,
    output_format: str,
) -> None:
    """Show the offsets of partitions: their ends, their starts, or the first record at or after a time.

    Options have the names of kafka-get-offsets. The offset is empty if the partition has no such record. The exit
    status is 1 if a partition has no leader or does not exist.

    Example: kafka-msgs get-offsets orders --time earliest -b localhost
    """
    from kafka_msgs.admin.results import Results
    from kafka_msgs.client.broker_errors import broker_error
    from kafka_msgs.client.cluster_metadata import TopicPartition

    topics = (*names, *more_names)
    with cluster.admin() as admin:
        if topics or places:
            wanted = {parse_partition(partition) for partition in places}
            described = list(
                admin.describe_topics({*topics, *(partition.topic for partition in wanted)}).all().values()
            )
        else:
            wanted = set()
            described = list(admin.list_topics(include_internal=not exclude_internal_topics).values())
        leaders = {
            TopicPartition(str(topic.name), partition.partition_index): partition.leader_id
            for topic in described
            for partition in topic.partitions
        }
        if not places:
            wanted = {partition for partition in leaders if not partitions or str(partition.partition) in partitions}
        led = sorted(partition for partition in wanted if leaders.get(partition, -1) >= 0)
        offsets = admin.list_offsets(dict.fromkeys(led, spec)) if led else Results({})
        lost = {
            partition: broker_error(
                5 if partition in leaders else 3, api="Metadata", subject=f"{partition.topic}-{partition.partition}"
            )
            for partition in sorted(wanted - {*led})
        }

    def row(partition: TopicPartition, value: Any) -> dict[str, Any]:
        named = {"topic": partition.topic, "partition": partition.partition}
        if value is None or value.offset < 0:
            return named
        epoch = None if value.leader_epoch < 0 else value.leader_epoch
        time = None if value.timestamp < 0 else value.timestamp
        return {**named, "offset": value.offset, "leaderEpoch": epoch, "timestamp": time, "time": iso_of_ms(time)}

    print_outcomes(output_format, _COLUMNS, Results({**offsets.outcomes, **lost}), row)
