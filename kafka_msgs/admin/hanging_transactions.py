"""Hanging transactions: open in a partition, and forgotten by their coordinator (KIP-664)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_msgs.admin.fan_out import seconds_left
from kafka_msgs.admin.results import Outcome, Results
from kafka_msgs.admin.topics import list_topics
from kafka_msgs.admin.transactions import describe_producers, describe_transactions, list_transactions
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError
from kafka_msgs.messages.describe_producers_response import ProducerState

__all__ = ["find_hanging_transactions"]


def find_hanging_transactions(
    client: ClientCore,
    partitions: Collection[TopicPartition] | None = None,
    *,
    last_write_before_ms: int,
    broker_id: int | None = None,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, tuple[ProducerState, ...]]]:
    """Return the producers whose transaction in a partition is open, but unknown to its coordinator (KIP-664).

    ``partitions`` None means all, with ``broker_id`` all that have a replica there. Transactions whose producer has
    written after ``last_write_before_ms`` (ms since 1970) are not hanging: their coordinator may learn of them yet.
    Raises the error of a coordinator that does not list its transactions.
    """
    deadline = client.deadline(timeout)
    if partitions is None:
        partitions = yield from _partitions(client, broker_id, deadline)
    described = yield from describe_producers(
        client, partitions, broker_id=broker_id, timeout=seconds_left(client, deadline)
    )
    candidates = {
        partition: tuple(each for each in producers if _is_open(each, last_write_before_ms))
        for partition, producers in described.ok.items()
    }
    ids = {each.producer_id for producers in candidates.values() for each in producers}
    ongoing = (yield from _ongoing(client, ids, deadline)) if ids else {}
    found: dict[TopicPartition, Outcome[tuple[ProducerState, ...]]] = {
        partition: tuple(each for each in producers if partition not in ongoing.get(each.producer_id, ()))
        for partition, producers in candidates.items()
    }
    return Results({**found, **described.errors})


def _partitions(client: ClientCore, broker_id: int | None, deadline: float) -> Flow[list[TopicPartition]]:
    topics = yield from list_topics(client, include_internal=True, timeout=seconds_left(client, deadline))
    return [
        TopicPartition(name, each.partition_index)
        for name, topic in topics.items()
        for each in topic.partitions
        if broker_id is None or broker_id in each.replica_nodes
    ]


def _is_open(producer: ProducerState, last_write_before_ms: int) -> bool:
    return producer.current_txn_start_offset >= 0 and producer.last_timestamp < last_write_before_ms


def _ongoing(
    client: ClientCore, producer_ids: Collection[int], deadline: float
) -> Flow[Mapping[int, frozenset[TopicPartition]]]:
    """Return the partitions of the transactions of producers, as their coordinators describe them."""
    listed = yield from list_transactions(client, producer_ids=producer_ids, timeout=seconds_left(client, deadline))
    described = yield from describe_transactions(
        client, [each.transactional_id for each in listed], timeout=seconds_left(client, deadline)
    )
    for error in described.errors.values():
        if not (isinstance(error, BrokerError) and error.error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND):
            raise error
    return {
        each.producer_id: frozenset(
            TopicPartition(topic.topic, number) for topic in each.topics for number in topic.partitions
        )
        for each in described.ok.values()
    }
