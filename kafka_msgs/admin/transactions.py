"""Transactions and producers: list, describe, abort a hanging transaction (KIP-664), fence producers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import frozen

from kafka_msgs.admin.fan_out import CoordinatorFanOut, LeaderFanOut, fan_out_to_brokers, milliseconds_left
from kafka_msgs.admin.partitions import by_topic
from kafka_msgs.admin.results import (
    Outcome,
    PartialList,
    Results,
    api_name,
    broker_error,
    no_value,
    outcomes,
    raise_top_level,
)
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.core import ClientCore
from kafka_msgs.client.flow import Flow
from kafka_msgs.client.routing import CoordinatorKind
from kafka_msgs.messages import describe_producers_request as producers
from kafka_msgs.messages import write_txn_markers_request as markers
from kafka_msgs.messages.describe_producers_response import DescribeProducersResponse, PartitionResponse, ProducerState
from kafka_msgs.messages.describe_transactions_request import DescribeTransactionsRequest
from kafka_msgs.messages.describe_transactions_response import TransactionState
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.list_transactions_request import ListTransactionsRequest
from kafka_msgs.messages.list_transactions_response import TransactionState as ListedTransaction
from kafka_msgs.messages.write_txn_markers_response import WriteTxnMarkersResponse

__all__ = [
    "ProducerIdAndEpoch",
    "abort_transaction",
    "describe_producers",
    "describe_transactions",
    "fence_producers",
    "list_transactions",
]


@frozen
class ProducerIdAndEpoch:
    """The id and the epoch of a producer."""

    producer_id: int
    epoch: int


def list_transactions(
    client: ClientCore,
    *,
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    running_longer_than_ms: int = -1,
    id_pattern: str | None = None,
    timeout: float | None = None,
) -> Flow[PartialList[ListedTransaction]]:
    """Return the transactions of all coordinators: of these states (such as ``Ongoing``) and producers, or all.

    ``running_longer_than_ms`` (KIP-994) and ``id_pattern`` (a regular expression of RE2, KIP-1152) need brokers
    that support them.
    """
    deadline = client.deadline(timeout)
    request = ListTransactionsRequest(
        state_filters=tuple(states),
        producer_id_filters=tuple(producer_ids),
        duration_filter=running_longer_than_ms,
        transactional_id_pattern=id_pattern,
    )

    def ask(broker_id: int) -> Flow[tuple[ListedTransaction, ...]]:
        response = yield from client.call(request, broker_id=broker_id, deadline=deadline)
        raise_top_level(response, api_name(request), broker_id)
        return response.transaction_states

    answers = yield from fan_out_to_brokers(client, ask, deadline=deadline)
    return PartialList(tuple(each for part in answers.ok.values() for each in part), answers.errors)


def describe_transactions(
    client: ClientCore, transactional_ids: Collection[str], *, timeout: float | None = None
) -> Flow[Results[str, TransactionState]]:
    """Return the state of transactions: their producer, their partitions, and their start time."""
    return (
        yield from CoordinatorFanOut(client, CoordinatorKind.TRANSACTION, deadline=client.deadline(timeout)).each(
            transactional_ids,
            lambda ids: DescribeTransactionsRequest(transactional_ids=tuple(ids)),
            lambda response: ((each.transactional_id, each) for each in response.transaction_states),
            lambda item, broker: item,
        )
    )


def fence_producers(
    client: ClientCore, transactional_ids: Collection[str], *, timeout: float | None = None
) -> Flow[Results[str, ProducerIdAndEpoch]]:
    """Increase the producer epochs of transactions: running producers fail, and open transactions are aborted."""
    deadline = client.deadline(timeout)

    def ask(broker_id: int, ids: Sequence[str]) -> Flow[Mapping[str, Outcome[ProducerIdAndEpoch]]]:
        found: dict[str, Outcome[ProducerIdAndEpoch]] = {}
        for each in ids:
            request = InitProducerIdRequest(
                transactional_id=each, transaction_timeout_ms=milliseconds_left(client, deadline)
            )
            response = yield from client.call(request, broker_id=broker_id, retry=False, deadline=deadline)
            error = broker_error(response, api_name(request), each)
            found[each] = error or ProducerIdAndEpoch(response.producer_id, response.producer_epoch)
        return found

    coordinators = CoordinatorFanOut(client, CoordinatorKind.TRANSACTION, deadline=deadline)
    return (yield from coordinators.run(transactional_ids, ask))


def describe_producers(
    client: ClientCore,
    partitions: Collection[TopicPartition],
    *,
    broker_id: int | None = None,
    timeout: float | None = None,
) -> Flow[Results[TopicPartition, tuple[ProducerState, ...]]]:
    """Return the active producers of partitions, from the leaders, or from the replicas on one broker."""
    deadline = client.deadline(timeout)

    def request_for(part: Collection[TopicPartition]) -> producers.DescribeProducersRequest:
        topics = by_topic(part).items()
        return producers.DescribeProducersRequest(
            topics=tuple(producers.TopicRequest(name=name, partition_indexes=numbers) for name, numbers in topics)
        )

    if broker_id is None:
        leaders = LeaderFanOut(client, deadline=deadline)
        return (yield from leaders.each(partitions, request_for, _of_partitions, lambda each, _: each.active_producers))
    request = request_for(partitions)
    response = yield from client.call(request, broker_id=broker_id, deadline=deadline)
    return outcomes(api_name(request), _of_partitions(response), lambda each: each.active_producers, partitions)


def _of_partitions(response: DescribeProducersResponse) -> Iterator[tuple[TopicPartition, PartitionResponse]]:
    for topic in response.topics:
        for each in topic.partitions:
            yield TopicPartition(topic.name, each.partition_index), each


def abort_transaction(
    client: ClientCore,
    partition: TopicPartition,
    producer_id: int,
    producer_epoch: int,
    *,
    coordinator_epoch: int = -1,
    timeout: float | None = None,
) -> Flow[None]:
    """Abort a hanging transaction in a partition: write an abort marker at its leader.

    ``describe_producers`` returns such a transaction: ``current_txn_start_offset`` is not -1, and the coordinator
    has no such transaction. Raises ``BrokerError``.
    """
    marker = markers.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=(markers.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=(partition.partition,)),),
        coordinator_epoch=coordinator_epoch,
    )
    request = markers.WriteTxnMarkersRequest(markers=(marker,))

    def read(response: WriteTxnMarkersResponse) -> Outcome[None]:
        items = (
            (TopicPartition(topic.name, each.partition_index), each)
            for answer in response.markers
            for topic in answer.topics
            for each in topic.partitions
        )
        return outcomes(api_name(request), items, no_value, [partition]).outcomes[partition]

    yield from LeaderFanOut(client, deadline=client.deadline(timeout)).one(partition, request, read)
