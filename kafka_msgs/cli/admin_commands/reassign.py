"""``kafka-msgs reassign``: plan moves of partitions to other brokers, start, verify and cancel them (KIP-455)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from kafka_msgs.cli.admin_commands.outcomes import (
    FILE,
    OptionActions,
    action_options,
    load_json,
    parse_partition,
    print_outcomes,
    required,
    words,
)
from kafka_msgs.cli.admin_commands.reassignment_plans import generate_plan
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import CommandError

if TYPE_CHECKING:
    from kafka_msgs.admin.admin import Admin
    from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["reassign_command"]

Moves: TypeAlias = "Mapping[TopicPartition, Sequence[int]]"

_MOVE: Final = ("topic", "partition", "replicas", "addingReplicas", "removingReplicas")
_VERIFIED: Final = ("topic", "partition", "replicas", "targetReplicas", "status")


def _move(text: str) -> tuple[TopicPartition, Sequence[int]]:
    partition, _, brokers = text.partition("=")
    try:
        return parse_partition(partition), [int(broker) for broker in brokers.split(",") if broker]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION=BROKER,...") from None


_ONLY_WITH: Final[OptionActions] = {
    **dict.fromkeys(("moves", "reassignment_json_file"), ("list", "execute", "verify", "cancel")),
    "fixed_factor": ("execute",),
    **dict.fromkeys(
        ("topics", "topics_to_move_json_file", "broker_list", "disable_rack_aware", "plan_file", "rollback_file"),
        ("generate",),
    ),
}


@click.command("reassign")
@click.argument("moves", metavar="[TOPIC:PARTITION=BROKERS]...", nargs=-1, type=_move)
@action_options(
    "list",
    _ONLY_WITH,
    list="List moves in progress.",
    generate="Plan moves of --topic to --broker-list, without starting them.",
    execute="Start moves.",
    verify="Show whether moves are complete; the exit status is 1 if one is not.",
    cancel="Cancel the moves of these partitions.",
)
@broker_options()
@click.option("--reassignment-json-file", type=FILE, help="A file in the format of kafka-reassign-partitions.")
@click.option(
    "--disallow-replication-factor-change",
    "fixed_factor",
    is_flag=True,
    help="Refuse moves that change the number of replicas.",
)
@click.option("-t", "--topic", "topics", metavar="TOPICS", multiple=True, callback=words, help="Topics of --generate.")
@click.option("--topics-to-move-json-file", type=FILE, help="A file of topics for --generate.")
@click.option("--broker-list", metavar="IDS", multiple=True, callback=words, help="Target brokers of --generate.")
@click.option("--disable-rack-aware", is_flag=True, help="Let --generate ignore racks.")
@click.option("--plan-file", type=click.Path(path_type=Path), help="Write the plan for --reassignment-json-file.")
@click.option("--rollback-file", type=click.Path(path_type=Path), help="Write the present replicas likewise.")
@listing_option
def reassign_command(
    moves: tuple[tuple[TopicPartition, Sequence[int]], ...],
    action: str,
    cluster: ClusterOptions,
    reassignment_json_file: Path | None,
    fixed_factor: bool,
    output_format: str,
    **planning: Any,
) -> None:
    """List, plan, start, verify or cancel moves of partitions to other brokers.

    Options have the names of kafka-reassign-partitions. The first broker of a partition is its preferred leader.
    --execute does not wait for the end of moves; --verify compares the replicas with the same moves.

    Example: kafka-msgs reassign --execute orders:0=1,2 -b localhost
    """
    wanted = dict(moves)
    if reassignment_json_file is not None:
        wanted |= _moves_in(reassignment_json_file)
    if action in ("execute", "verify", "cancel"):
        required(tuple(wanted), "TOPIC:PARTITION=BROKERS", "--reassignment-json-file")
    if action in ("execute", "verify") and not all(wanted.values()):
        raise click.UsageError(f"--{action} needs the brokers of each partition")
    with cluster.admin() as admin:
        if action == "list":
            ongoing = admin.list_partition_reassignments(list(wanted) or None)
            print_listing(output_format, _MOVE, [_row(partition, move) for partition, move in sorted(ongoing.items())])
        elif action == "generate":
            generate_plan(admin, output_format, **planning)
        elif action == "verify":
            _verify(admin, wanted, output_format)
        else:
            results = admin.alter_partition_reassignments(
                wanted if action == "execute" else dict.fromkeys(wanted),
                allow_replication_factor_change=not fixed_factor,
            )
            print_outcomes(output_format, ("topic", "partition"), results, lambda partition, _: partition._asdict())


def _row(partition: TopicPartition, move: Any) -> dict[str, Any]:
    lists = (move.replicas, move.adding_replicas, move.removing_replicas)
    return dict(zip(_MOVE, (*partition, *map(list, lists)), strict=True))


def _verify(admin: Admin, wanted: Moves, output_format: str) -> None:
    """Print the state of each move, in the sense of ``kafka-reassign-partitions --verify``."""
    ongoing = admin.list_partition_reassignments(list(wanted))
    topics = admin.list_topics(include_internal=True)
    replicas = {
        (name, partition.partition_index): list(partition.replica_nodes)
        for name, topic in topics.items()
        for partition in topic.partitions
    }
    rows = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": replicas.get(partition),
            "targetReplicas": list(target),
            "status": _status(replicas.get(partition), list(target), moves=partition in ongoing),
        }
        for partition, target in sorted(wanted.items())
    ]
    print_listing(output_format, _VERIFIED, rows)
    if any(row["status"] != "completed" for row in rows):
        click.get_current_context().exit(1)


def _status(replicas: list[int] | None, target: list[int], *, moves: bool) -> str:
    if replicas is None:
        return "no such partition"
    if moves:
        return "in progress"
    return "completed" if replicas == target else "no active move"


def _moves_in(path: Path) -> dict[TopicPartition, Sequence[int]]:
    from kafka_msgs.client.cluster_metadata import TopicPartition

    try:
        return {
            TopicPartition(str(entry["topic"]), int(entry["partition"])): [int(broker) for broker in entry["replicas"]]
            for entry in load_json(path, "partitions")
        }
    except (KeyError, ValueError, TypeError):
        raise CommandError(f"{path}: expected topic, partition and replicas in each of the partitions") from None
