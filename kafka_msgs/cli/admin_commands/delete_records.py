"""``kafka-msgs delete-records``: delete records at the start of partitions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kafka_msgs.cli.admin_commands.outcomes import FILE, load_json, parse_partition, print_outcomes, required
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.output import CommandError

if TYPE_CHECKING:
    from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["delete_records_command"]


def _before(text: str) -> tuple[TopicPartition, int]:
    partition, _, offset = text.rpartition("=")
    if offset != "end" and not (offset.isascii() and offset.isdigit()):
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION=OFFSET or TOPIC:PARTITION=end")
    return parse_partition(partition), -1 if offset == "end" else int(offset)


@click.command("delete-records")
@click.argument("positions", metavar="[TOPIC:PARTITION=OFFSET]...", nargs=-1, type=_before)
@click.option("--offset-json-file", type=FILE, help="A file in the format of kafka-delete-records.")
@broker_options()
@listing_option
def delete_records_command(
    positions: tuple[tuple[TopicPartition, int], ...],
    offset_json_file: Path | None,
    cluster: ClusterOptions,
    output_format: str,
) -> None:
    """Delete the records before an offset of each partition; the offset end deletes all of them.

    The new start of each partition is printed. Deleted records cannot be restored.

    Example: kafka-msgs delete-records orders:0=1000 orders:1=end -b localhost
    """
    before = dict(positions)
    if offset_json_file is not None:
        before |= _positions_in(offset_json_file)
    required(tuple(before), "TOPIC:PARTITION=OFFSET", "--offset-json-file")
    with cluster.admin() as admin:
        results = admin.delete_records(before)
    columns = ("topic", "partition", "lowWatermark")
    print_outcomes(
        output_format, columns, results, lambda partition, low: dict(zip(columns, (*partition, low), strict=True))
    )


def _positions_in(path: Path) -> dict[TopicPartition, int]:
    from kafka_msgs.client.cluster_metadata import TopicPartition

    try:
        return {
            TopicPartition(str(entry["topic"]), int(entry["partition"])): int(entry["offset"])
            for entry in load_json(path, "partitions")
        }
    except (KeyError, ValueError, TypeError):
        raise CommandError(f"{path}: expected topic, partition and offset in each of the partitions") from None
