"""``kafka-msgs elect-leaders``: elect the leaders of partitions (KIP-183, KIP-460)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_msgs.cli.admin_commands.outcomes import FILE, load_json, parse_partition, print_outcomes, required
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.output import CommandError
from kafka_msgs.enums import ElectionType
from kafka_msgs.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["elect_leaders_command"]


@click.command("elect-leaders")
@click.argument("places", metavar="[TOPIC:PARTITION]...", nargs=-1, type=parse_partition)
@click.option("--all-topic-partitions", "every", is_flag=True, help="All partitions.")
@click.option("-t", "--topic", metavar="NAME", help="With --partition, one partition, as in kafka-leader-election.")
@click.option("-p", "--partition", metavar="N", type=click.IntRange(min=0), help="The partition of --topic.")
@click.option("--path-to-json-file", type=FILE, help="A file in the format of kafka-leader-election.")
@click.option(
    "--election-type",
    type=click.Choice(["preferred", "unclean"], case_sensitive=False),
    default="preferred",
    show_default=True,
    help="Elect the first replica, or without one in sync any live replica, which may lose records.",
)
@broker_options()
@listing_option
def elect_leaders_command(
    places: tuple[TopicPartition, ...],
    every: bool,
    topic: str | None,
    partition: int | None,
    path_to_json_file: Path | None,
    election_type: str,
    cluster: ClusterOptions,
    output_format: str,
) -> None:
    """Elect the preferred leaders of partitions, or with --election-type unclean any live replica.

    Options have the names of kafka-leader-election. A partition that already has the right leader is no failure.

    Example: kafka-msgs elect-leaders --all-topic-partitions -b localhost
    """
    from kafka_msgs.client.cluster_metadata import TopicPartition

    wanted = [*places, *([] if path_to_json_file is None else _places_in(path_to_json_file))]
    if topic is not None:
        wanted.append(TopicPartition(topic, required(partition, "--partition")))
    if bool(wanted) == every:
        raise click.UsageError("expected either TOPIC:PARTITION or --all-topic-partitions")
    with cluster.admin() as admin:
        results = admin.elect_leaders(None if every else wanted, election=ElectionType[election_type.upper()])
    print_outcomes(
        output_format,
        ("topic", "partition"),
        results,
        lambda partition, _: {"topic": partition[0], "partition": partition[1]},
        ignored={ErrorCode.ELECTION_NOT_NEEDED},
    )


def _places_in(path: Path) -> list[TopicPartition]:
    from kafka_msgs.client.cluster_metadata import TopicPartition

    try:
        return [TopicPartition(str(entry["topic"]), int(entry["partition"])) for entry in load_json(path, "partitions")]
    except (KeyError, ValueError, TypeError):
        raise CommandError(f"{path}: expected topic and partition in each of the partitions") from None
