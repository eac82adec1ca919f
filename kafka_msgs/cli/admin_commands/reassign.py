"""``kafka-msgs reassign``: move partitions to other brokers (KIP-455)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import (
    FILE,
    action_options,
    load_json,
    parse_partition,
    print_outcomes,
    required,
)
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import CommandError

if TYPE_CHECKING:
    from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["reassign_command"]

_MOVE: Final = ("topic", "partition", "replicas", "addingReplicas", "removingReplicas")


def _move(text: str) -> tuple[TopicPartition, Sequence[int]]:
    place, _, brokers = text.partition("=")
    try:
        return parse_partition(place), [int(each) for each in brokers.split(",") if each]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION=BROKER,...") from None


@click.command("reassign")
@click.argument("moves", metavar="[TOPIC:PARTITION=BROKERS]...", nargs=-1, type=_move)
@action_options(
    "list",
    list="List moves in progress.",
    execute="Start moves.",
    cancel="Cancel the moves of these partitions.",
)
@click.option("--reassignment-json-file", type=FILE, help="A file in the format of kafka-reassign-partitions.")
@click.option(
    "--disallow-replication-factor-change",
    "fixed_factor",
    is_flag=True,
    help="Refuse moves that change the number of replicas.",
)
@broker_options()
@listing_option
def reassign_command(
    moves: tuple[tuple[TopicPartition, Sequence[int]], ...],
    action: str,
    reassignment_json_file: Path | None,
    fixed_factor: bool,
    cluster: ClusterOptions,
    output_format: str,
) -> None:
    """List, start or cancel moves of partitions to other brokers.

    The first broker of a partition is its preferred leader. The command does not wait for the end of moves; --list
    shows the remaining ones.

    Example: kafka-msgs reassign --execute orders:0=1,2 -b localhost
    """
    wanted = dict(moves)
    if reassignment_json_file is not None:
        wanted |= _moves_in(reassignment_json_file)
    with cluster.admin() as admin:
        if action == "list":
            found = admin.list_partition_reassignments(list(wanted) or None)
            print_listing(output_format, _MOVE, [_row(place, each) for place, each in sorted(found.items())])
            return
        required(tuple(wanted), "TOPIC:PARTITION=BROKERS", "--reassignment-json-file")
        if action == "execute" and not all(wanted.values()):
            raise click.UsageError("--execute needs the brokers of each partition")
        results = admin.alter_partition_reassignments(
            wanted if action == "execute" else dict.fromkeys(wanted),
            allow_replication_factor_change=not fixed_factor,
        )
    print_outcomes(
        output_format, ("topic", "partition"), results, lambda place, _: {"topic": place[0], "partition": place[1]}
    )


def _row(place: TopicPartition, move: Any) -> dict[str, Any]:
    lists = (move.replicas, move.adding_replicas, move.removing_replicas)
    return dict(zip(_MOVE, (*place, *map(list, lists)), strict=True))


def _moves_in(path: Path) -> dict[TopicPartition, Sequence[int]]:
    from kafka_msgs.client.cluster_metadata import TopicPartition

    try:
        return {
            TopicPartition(str(each["topic"]), int(each["partition"])): [int(broker) for broker in each["replicas"]]
            for each in load_json(path, "partitions")
        }
    except (KeyError, ValueError, TypeError):
        raise CommandError(f"{path}: expected topic, partition and replicas in each of the partitions") from None
