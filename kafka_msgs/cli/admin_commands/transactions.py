"""``kafka-msgs transactions``: list, describe and abort transactions (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from kafka_msgs.cli.admin_commands.outcomes import action_options, parse_partition, print_outcomes, required, words
from kafka_msgs.cli.broker_options import ClusterOptions, broker_options
from kafka_msgs.cli.durations import duration
from kafka_msgs.cli.output_options import listing_option
from kafka_msgs.cli.render.listing import print_listing
from kafka_msgs.cli.render.timestamps import iso_of_ms

if TYPE_CHECKING:
    from kafka_msgs.admin.admin import Admin
    from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["transactions_command"]

_LISTED: Final = ("transactionalId", "producerId", "state")
_DESCRIBED: Final = (
    "transactionalId", "producerId", "producerEpoch", "state", "timeoutMs", "startTimestamp", "startTime", "partitions",
)  # fmt: skip
_PRODUCER: Final = (
    "topic", "partition", "producerId", "producerEpoch", "lastSequence", "lastTimestamp", "lastTime",
    "coordinatorEpoch", "currentTransactionStartOffset",
)  # fmt: skip


@click.command("transactions")
@action_options(
    "list",
    list="List transactions.",
    describe="Show the transactions of --transactional-id.",
    describe_producers="Show the producers of --partition.",
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
@listing_option
def transactions_command(
    action: str,
    cluster: ClusterOptions,
    ids: tuple[str, ...],
    places: tuple[TopicPartition, ...],
    output_format: str,
    **options: Any,
) -> None:
    """List, describe or abort transactions.

    Example: kafka-msgs transactions --state Ongoing --running-longer-than 5m -b localhost
    """
    with cluster.admin() as admin:
        if action == "list":
            longer = options["running_longer_than"]
            found = admin.list_transactions(
                states=options["states"], running_longer_than_ms=-1 if longer is None else int(longer * 1000)
            )
            rows = [(each.transactional_id, each.producer_id, each.transaction_state) for each in found]
            print_listing(output_format, _LISTED, [dict(zip(_LISTED, row, strict=True)) for row in sorted(rows)])
        elif action == "describe":
            results = admin.describe_transactions(required(ids, "--transactional-id"))
            print_outcomes(output_format, _DESCRIBED, results, _described)
        elif action == "force_terminate":
            fenced = admin.fence_producers(required(ids, "--transactional-id"))
            print_outcomes(output_format, _LISTED[:1], fenced, lambda name, _: {"transactionalId": name})
        elif action == "abort":
            producer, epoch = (required(options[name], f"--{name}") for name in ("producer_id", "producer_epoch"))
            for place in required(places, "--partition"):
                admin.abort_transaction(place, producer, epoch, coordinator_epoch=options["coordinator_epoch"])
        else:
            print_listing(output_format, _PRODUCER, _producers(admin, required(places, "--partition")))


def _described(name: str, each: Any) -> dict[str, Any]:
    if each is None:
        return {"transactionalId": name}
    start = _known(each.transaction_start_time_ms)
    return {
        "transactionalId": name,
        "producerId": each.producer_id,
        "producerEpoch": each.producer_epoch,
        "state": each.transaction_state,
        "timeoutMs": each.transaction_timeout_ms,
        "startTimestamp": start,
        "startTime": iso_of_ms(start),
        "partitions": [f"{topic.topic}-{number}" for topic in each.topics for number in topic.partitions],
    }


def _known(number: int) -> int | None:
    """Return None for the protocol's -1."""
    return None if number < 0 else number


def _producers(admin: Admin, places: tuple[TopicPartition, ...]) -> list[dict[str, Any]]:
    return [
        {
            "topic": place.topic,
            "partition": place.partition,
            "producerId": each.producer_id,
            "producerEpoch": each.producer_epoch,
            "lastSequence": each.last_sequence,
            "lastTimestamp": each.last_timestamp,
            "lastTime": iso_of_ms(each.last_timestamp),
            "coordinatorEpoch": each.coordinator_epoch,
            "currentTransactionStartOffset": None
            if each.current_txn_start_offset < 0
            else each.current_txn_start_offset,
        }
        for place, producers in admin.describe_producers(places).all().items()
        for each in producers
    ]
