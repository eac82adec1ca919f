"""``kafka-msgs reassign --generate``: a plan that spreads topics over brokers, for ``--execute``."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import load_json, required
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import CommandError

if TYPE_CHECKING:
    from kafka_msgs.admin.admin import Admin
    from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["generate_plan"]

_PLANNED: Final = ("topic", "partition", "replicas", "proposedReplicas")


def generate_plan(
    admin: Admin,
    output_format: str,
    *,
    topics: Collection[str],
    topics_to_move_json_file: Path | None,
    broker_list: Collection[str],
    disable_rack_aware: bool,
    plan_file: Path | None,
    rollback_file: Path | None,
) -> None:
    """Print the present and the proposed replicas of topics, and write them to files."""
    from kafka_msgs.admin.replica_plans import plan_replicas
    from kafka_msgs.log.writers.small_files import replace_file

    names = [*topics, *([] if topics_to_move_json_file is None else _topics_in(topics_to_move_json_file))]
    required(tuple(names), "--topic", "--topics-to-move-json-file")
    brokers = _racks(admin, required(broker_list, "--broker-list"), ignored=disable_rack_aware)
    current = _replicas(admin, names)
    try:
        plan = plan_replicas(current, brokers)
    except ValueError as error:
        raise CommandError(str(error)) from None
    for path, replicas in ((rollback_file, current), (plan_file, plan)):
        if path is not None:
            replace_file(path, _as_json(replicas).encode())
    rows = ((*partition, list(current[partition]), list(replicas)) for partition, replicas in plan.items())
    print_listing(output_format, _PLANNED, [dict(zip(_PLANNED, row, strict=True)) for row in rows])


def _topics_in(path: Path) -> list[str]:
    try:
        return [str(entry["topic"]) for entry in load_json(path, "topics")]
    except KeyError:
        raise CommandError(f"{path}: expected the name of each topic") from None


def _racks(admin: Admin, broker_list: Collection[str], *, ignored: bool) -> dict[int, str | None]:
    """Return the racks of the target brokers. Raises ``CommandError`` for unknown brokers and incomplete racks."""
    nodes = admin.describe_cluster().nodes
    try:
        wanted = [int(broker) for broker in broker_list]
    except ValueError:
        raise click.BadParameter(f"--broker-list: expected broker ids such as 0,1,2, not {broker_list}") from None
    if missing := [broker for broker in wanted if broker not in nodes]:
        raise CommandError(f"no such brokers: {', '.join(map(str, missing))}")
    racks = {broker: None if ignored else nodes[broker].rack for broker in wanted}
    if None in racks.values() and any(racks.values()):
        raise CommandError("only some brokers have a rack; --disable-rack-aware ignores racks")
    return racks


def _replicas(admin: Admin, topics: Collection[str]) -> dict[TopicPartition, tuple[int, ...]]:
    from kafka_msgs.client.cluster_metadata import TopicPartition

    described = admin.describe_topics(sorted(set(topics))).all()
    return {
        TopicPartition(str(name), partition.partition_index): partition.replica_nodes
        for name, topic in described.items()
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    }


def _as_json(replicas: Mapping[TopicPartition, Sequence[int]]) -> str:
    """Return the file format of ``--reassignment-json-file``."""
    partitions = [{**partition._asdict(), "replicas": list(brokers)} for partition, brokers in replicas.items()]
    return json.dumps({"version": 1, "partitions": partitions}) + "\n"
