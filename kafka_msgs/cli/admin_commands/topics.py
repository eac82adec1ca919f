"""``kafka-msgs topics``: list, describe, create, delete and extend topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import OptionActions, action_options, pairs, print_outcomes, required, words
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.output import id_text
from kafka_msgs.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka_msgs.admin.admin import Admin
    from kafka_msgs.messages.metadata_response import MetadataResponseTopic

__all__ = ["topics_command"]

_TOPIC: Final = ("topic", "topicId", "partitions", "replicationFactor", "internal")
_PARTITION: Final = ("topic", "topicId", "partition", "leader", "leaderEpoch", "replicas", "isr", "offlineReplicas")
_CREATED: Final = ("topic", "topicId", "partitions", "replicationFactor")


_ONLY_WITH: Final[OptionActions] = {
    **dict.fromkeys(("partitions", "replica_assignment", "validate_only"), ("create", "alter")),
    **dict.fromkeys(("replication_factor", "configs", "if_not_exists"), ("create",)),
    **dict.fromkeys(("under_replicated_partitions", "unavailable_partitions"), ("describe",)),
    "exclude_internal": ("list", "describe"),
    "if_exists": ("list", "describe", "alter", "delete"),
}


@click.command("topics")
@click.argument("names", metavar="[TOPIC]...", nargs=-1)
@click.option("-t", "--topic", "more_names", metavar="TOPICS", multiple=True, callback=words, help="Topic names.")
@action_options(
    "list",
    _ONLY_WITH,
    list="List topics.",
    describe="Show the leader and the replicas of each partition.",
    create="Create topics.",
    alter="Increase the number of partitions to --partitions.",
    delete="Delete topics.",
)
@broker_options()
@click.option("--partitions", metavar="N", type=click.IntRange(min=1), help="Number of partitions.")
@click.option("--replication-factor", metavar="N", type=click.IntRange(min=1), help="Replicas of each partition.")
@click.option("--replica-assignment", metavar="IDS", help="Broker ids of each new partition, such as 0:1,1:2,2:0.")
@click.option(
    "--config", "configs", metavar="NAME=VALUE", multiple=True, callback=pairs, help="A configuration of new topics."
)
@click.option("--exclude-internal", is_flag=True, help="Omit internal topics.")
@click.option("--under-replicated-partitions", is_flag=True, help="Describe only partitions with replicas out of sync.")
@click.option("--unavailable-partitions", is_flag=True, help="Describe only partitions without a leader.")
@click.option("--if-exists", is_flag=True, help="Ignore topics that do not exist.")
@click.option("--if-not-exists", is_flag=True, help="Ignore topics that already exist.")
@click.option("--validate-only", "--dry-run", is_flag=True, help="With --create and --alter, change nothing.")
@listing_option
def topics_command(
    names: tuple[str, ...],
    more_names: tuple[str, ...],
    action: str,
    cluster: ClusterOptions,
    output_format: str,
    **options: Any,
) -> None:
    """List, describe, create, extend or delete topics.

    Options have the names of kafka-topics. The exit status is 1 if a change failed.

    Example: kafka-msgs topics --create orders --partitions 6 --config retention.ms=86400000 -b localhost
    """
    topics = (*names, *more_names)
    with cluster.admin() as admin:
        if action in ("list", "describe"):
            _show(admin, action, topics, output_format, options)
        else:
            _CHANGES[action](admin, required(topics, "--topic"), output_format, options)


def _show(admin: Admin, action: str, topics: Collection[str], output_format: str, options: Mapping[str, Any]) -> None:
    existing = admin.list_topics(include_internal=not options["exclude_internal"])
    missing = [name for name in topics if name not in existing]
    if missing and not options["if_exists"]:
        admin.describe_topics(missing).all()
    chosen = {name: existing[name] for name in topics or sorted(existing) if name in existing}
    if action == "list":
        print_listing(output_format, _TOPIC, [_topic_row(name, topic) for name, topic in chosen.items()])
        return
    rows = [row for name, topic in chosen.items() for row in _partition_rows(name, topic)]
    if options["under_replicated_partitions"]:
        rows = [row for row in rows if len(row["isr"]) < len(row["replicas"])]
    if options["unavailable_partitions"]:
        rows = [row for row in rows if row["leader"] is None]
    print_listing(output_format, _PARTITION, rows)


def _topic_row(name: str, topic: MetadataResponseTopic) -> dict[str, Any]:
    return {
        "topic": name,
        "topicId": id_text(topic.topic_id),
        "partitions": len(topic.partitions),
        "replicationFactor": max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
        "internal": topic.is_internal,
    }


def _partition_rows(name: str, topic: MetadataResponseTopic) -> list[dict[str, Any]]:
    return [
        {
            "topic": name,
            "topicId": id_text(topic.topic_id),
            "partition": partition.partition_index,
            "leader": None if partition.leader_id < 0 else partition.leader_id,
            "leaderEpoch": partition.leader_epoch,
            "replicas": list(partition.replica_nodes),
            "isr": list(partition.isr_nodes),
            "offlineReplicas": list(partition.offline_replicas),
        }
        for partition in sorted(topic.partitions, key=lambda partition: partition.partition_index)
    ]


def _assignment(text: str | None) -> list[list[int]]:
    """Return the broker ids of each partition in ``0:1,1:2``."""
    try:
        return [[int(broker) for broker in part.split(":")] for part in text.split(",")] if text else []
    except ValueError:
        raise click.BadParameter(f"--replica-assignment {text!r}: expected broker ids such as 0:1,1:2") from None


def _create(admin: Admin, topics: Collection[str], output_format: str, options: Mapping[str, Any]) -> None:
    from kafka_msgs.admin.topics import NewTopic

    assignments = dict(enumerate(_assignment(options["replica_assignment"])))
    partitions, factor = (options[name] or -1 for name in ("partitions", "replication_factor"))
    new = [NewTopic(name, partitions, factor, assignments=assignments, configs=options["configs"]) for name in topics]
    results = admin.create_topics(new, validate_only=options["validate_only"])

    def row(name: str, created: Any) -> dict[str, Any]:
        if created is None:
            return {"topic": name}
        counts = {"partitions": created.num_partitions, "replicationFactor": created.replication_factor}
        return {"topic": name, "topicId": id_text(created.topic_id), **counts}

    ignored = {ErrorCode.TOPIC_ALREADY_EXISTS} if options["if_not_exists"] else ()
    print_outcomes(output_format, _CREATED, results, row, ignored=ignored)


def _alter(admin: Admin, topics: Collection[str], output_format: str, options: Mapping[str, Any]) -> None:
    from kafka_msgs.admin.topics import NewPartitions

    new = NewPartitions(
        required(options["partitions"], "--partitions"), _assignment(options["replica_assignment"]) or None
    )
    results = admin.create_partitions(dict.fromkeys(topics, new), validate_only=options["validate_only"])
    _print(output_format, results, options)


def _delete(admin: Admin, topics: Collection[str], output_format: str, options: Mapping[str, Any]) -> None:
    _print(output_format, admin.delete_topics(topics), options)


def _print(output_format: str, results: Any, options: Mapping[str, Any]) -> None:
    ignored = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if options["if_exists"] else ()
    print_outcomes(output_format, ("topic",), results, lambda name, _: {"topic": name}, ignored=ignored)


_CHANGES: Final = {"create": _create, "alter": _alter, "delete": _delete}
