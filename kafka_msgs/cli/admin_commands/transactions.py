"""``kafka-msgs transactions``: list, describe and abort transactions (KIP-664)."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import (
    OptionActions,
    action_options,
    failure_reason,
    parse_partition,
    print_outcomes,
    required,
    words,
)
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.durations import duration
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.timestamps import iso_of_ms

if TYPE_CHECKING:
    from kafka_msgs.admin.admin import Admin
    from kafka_msgs.client.cluster_metadata import TopicPartition
    from kafka_msgs.messages.describe_producers_response import ProducerState

__all__ = ["transactions_command"]

_LISTED: Final = ("transactionalId", "producerId", "state")
_DESCRIBED: Final = (
    "transactionalId", "producerId", "producerEpoch", "state", "timeoutMs", "startTimestamp", "startTime", "partitions",
)  # fmt: skip
_PRODUCER: Final = (
    "topic", "partition", "producerId", "producerEpoch", "lastSequence", "lastTimestamp", "lastTime",
    "coordinatorEpoch", "currentTransactionStartOffset",
)  # fmt: skip


_ONLY_WITH: Final[OptionActions] = {
    "ids": ("describe", "force_terminate"),
    "places": ("describe_producers", "find_hanging", "abort"),
    **dict.fromkeys(("producer_id", "producer_epoch", "coordinator_epoch"), ("abort",)),
    **dict.fromkeys(("states", "running_longer_than"), ("list",)),
    **dict.fromkeys(("topics", "broker_id", "max_transaction_timeout"), ("find_hanging",)),
}


@click.command("transactions")
@action_options(
    "list",
    _ONLY_WITH,
    list="List transactions.",
    describe="Show the transactions of --transactional-id.",
    describe_producers="Show the producers of --partition.",
    find_hanging="Find open transactions that their coordinators have forgotten, for --abort.",
    abort="Abort the transaction of --producer-id in --partition, which its coordinator has forgotten.",
    force_terminate="Abort the transaction of --transactional-id, and fence off its producer.",
)
@broker_options()
@click.option("--transactional-id", "ids", metavar="IDS", multiple=True, callback=words, help="Transactional ids.")
@click.option(
    "-p", "--partition", "places", metavar="TOPIC:N", multiple=True, type=parse_partition, help="A partition."
)
@click.option("--producer-id", metavar="N", type=int, help="The producer of --abort.")
@click.option("--producer-epoch", metavar="N", type=int, help="Its epoch.")
@click.option("--coordinator-epoch", metavar="N", type=int, default=-1, help="The epoch of its coordinator.")
@click.option(
    "--state", "states", metavar="STATES", multiple=True, callback=words, help="List only Ongoing, for example."
)
@click.option(
    "--running-longer-than", metavar="TIME", type=duration("ms"), help="List only transactions older than 5m."
)
@click.option("-t", "--topic", "topics", metavar="TOPICS", multiple=True, callback=words, help="Search only there.")
@click.option("--broker-id", metavar="ID", type=int, help="Search only replicas on this broker.")
@click.option(
    "--max-transaction-timeout",
    metavar="TIME",
    type=duration("m"),
    default="15m",
    show_default=True,
    help="Search for transactions whose producer has been silent for longer.",
)
@listing_option
def transactions_command(
    action: str,
    cluster: ClusterOptions,
    ids: tuple[str, ...],
    places: tuple[TopicPartition, ...],
    output_format: str,
    **options: Any,
) -> None:
    """List, describe, find or abort transactions.

    Options have the names of kafka-transactions. --find-hanging searches --partition, --topic, or all topics.

    Example: kafka-msgs transactions --state Ongoing --running-longer-than 5m -b localhost
    """
    with cluster.admin() as admin:
        if action == "list":
            longer = options["running_longer_than"]
            listed = admin.list_transactions(
                states=options["states"], running_longer_than_ms=-1 if longer is None else int(longer * 1000)
            )
            rows = [
                (transaction.transactional_id, transaction.producer_id, transaction.transaction_state)
                for transaction in listed
            ]
            print_listing(output_format, _LISTED, [dict(zip(_LISTED, row, strict=True)) for row in sorted(rows)])
        elif action == "describe":
            results = admin.describe_transactions(required(ids, "--transactional-id"))
            print_outcomes(output_format, _DESCRIBED, results, _described)
        elif action == "find_hanging":
            _find_hanging(admin, places, output_format, options)
        elif action == "force_terminate":
            fenced = admin.fence_producers(required(ids, "--transactional-id"))
            print_outcomes(output_format, _LISTED[:1], fenced, lambda name, _: {"transactionalId": name})
        elif action == "abort":
            producer, epoch = (required(options[name], f"--{name}") for name in ("producer_id", "producer_epoch"))
            for partition in required(places, "--partition"):
                admin.abort_transaction(partition, producer, epoch, coordinator_epoch=options["coordinator_epoch"])
        else:
            producers = admin.describe_producers(required(places, "--partition")).all()
            print_listing(output_format, _PRODUCER, _producer_rows(producers))


def _find_hanging(
    admin: Admin, places: Collection[TopicPartition], output_format: str, options: Mapping[str, Any]
) -> None:
    """Print the producers of hanging transactions, and the partitions that could not be searched."""
    wanted = [*places, *_partitions_of(admin, options["topics"])] if places or options["topics"] else None
    results = admin.find_hanging_transactions(
        wanted,
        last_write_before_ms=int((time.time() - options["max_transaction_timeout"]) * 1000),
        broker_id=options["broker_id"],
    )
    failures = [
        {
            **dict.fromkeys(_PRODUCER),
            "topic": partition.topic,
            "partition": partition.partition,
            "error": failure_reason(error),
        }
        for partition, error in results.errors.items()
    ]
    hanging = [{**row, "error": None} for row in _producer_rows(results.ok)]
    print_listing(output_format, (*_PRODUCER, "error"), [*hanging, *failures])
    if failures:
        click.get_current_context().exit(1)


def _partitions_of(admin: Admin, topics: Collection[str]) -> list[TopicPartition]:
    from kafka_msgs.client.cluster_metadata import TopicPartition

    described = admin.describe_topics(topics).all() if topics else {}
    return [
        TopicPartition(str(name), partition.partition_index)
        for name, topic in described.items()
        for partition in topic.partitions
    ]


def _described(name: str, transaction: Any) -> dict[str, Any]:
    if transaction is None:
        return {"transactionalId": name}
    start = _known(transaction.transaction_start_time_ms)
    return {
        "transactionalId": name,
        "producerId": transaction.producer_id,
        "producerEpoch": transaction.producer_epoch,
        "state": transaction.transaction_state,
        "timeoutMs": transaction.transaction_timeout_ms,
        "startTimestamp": start,
        "startTime": iso_of_ms(start),
        "partitions": [f"{topic.topic}-{number}" for topic in transaction.topics for number in topic.partitions],
    }


def _known(value: int) -> int | None:
    """Return None for the protocol's -1."""
    return None if value < 0 else value


def _producer_rows(producers: Mapping[TopicPartition, Collection[ProducerState]]) -> list[dict[str, Any]]:
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "producerId": producer.producer_id,
            "producerEpoch": producer.producer_epoch,
            "lastSequence": producer.last_sequence,
            "lastTimestamp": producer.last_timestamp,
            "lastTime": iso_of_ms(producer.last_timestamp),
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTransactionStartOffset": _known(producer.current_txn_start_offset),
        }
        for partition, states in producers.items()
        for producer in states
    ]
