"""The APIs of transactional producers, and the APIs that describe and abort transactions.

The transaction coordinator decides; these handlers check authorization. The source is ``kafka.server.KafkaApis``;
KIP-98, KIP-664, KIP-890.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.coordinators.leadership import find_log
from kafka_msgs.broker.coordinators.transaction_service import TransactionCoordinatorService
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.transactions import TopicPartition, TransactionMetadata, group_by_topic
from kafka_msgs.broker.transactions import TransactionState as TransactionStatus
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.re2 import InvalidRegexError, compile_regex
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch
from kafka_msgs.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kafka_msgs.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
)
from kafka_msgs.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from kafka_msgs.messages.describe_transactions_request import DescribeTransactionsRequest
from kafka_msgs.messages.describe_transactions_response import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from kafka_msgs.messages.end_txn_request import EndTxnRequest
from kafka_msgs.messages.init_producer_id_request import InitProducerIdRequest
from kafka_msgs.messages.list_transactions_request import ListTransactionsRequest
from kafka_msgs.messages.list_transactions_response import ListTransactionsResponse
from kafka_msgs.messages.list_transactions_response import TransactionState as ListedTransaction

__all__ = ["HANDLERS", "attach"]

T = TypeVar("T")

_FENCED_SINCE: Final = {
    AddPartitionsToTxnRequest: 2,
    AddOffsetsToTxnRequest: 2,
    EndTxnRequest: 2,
    InitProducerIdRequest: 4,
}
"""The first versions that support PRODUCER_FENCED (KIP-588). Earlier versions return INVALID_PRODUCER_EPOCH."""

_BROKERS_SINCE: Final = 4
"""The first version of AddPartitionsToTxn for brokers, with several transactions."""

_BUMPS_SINCE: Final = 5
"""The first version of EndTxn that returns a new epoch (KIP-890)."""

attach = TransactionCoordinatorService.attach


_host = TransactionCoordinatorService.of_call


def _require(call: ServerCall[Any], transactional_id: str) -> None:
    call.require(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)


def _known(call: ServerCall[Any], error: ApiError | None) -> ErrorCode:
    """Return an error as the version of a request represents it."""
    if error is None:
        return ErrorCode.NONE
    if call.version < _FENCED_SINCE[type(call.request)] and error.error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode(error.error)


def _respond_later(call: ServerCall[Any], future: Future[T], fields: Callable[[T | None], Mapping[str, int]]) -> None:
    """Send the error of a result, and the response fields for its value, when the coordinator has settled it."""

    def respond(settled: Future[T]) -> None:
        response = call.request.response_class()
        call.respond(response(error_code=_known(call, settled.error), **fields(settled.value)))

    _host(call).settle()
    future.add_done_callback(respond)


def _producer_fields(producer: ProducerIdAndEpoch | None) -> Mapping[str, int]:
    producer = producer or ProducerIdAndEpoch()
    return {"producer_id": producer.id, "producer_epoch": producer.epoch}


def _init(call: ServerCall[InitProducerIdRequest]) -> None:
    request = call.request
    if request.transactional_id is not None:
        _require(call, request.transactional_id)
    elif not any(call.allows(AclOperation.WRITE, ResourceType.TOPIC, name) for name in call.cluster.image.topics):
        call.require_cluster(AclOperation.IDEMPOTENT_WRITE)
    expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    if (expected.id == -1) != (expected.epoch == -1):
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
    future = _host(call).coordinator.init_producer_id(
        request.transactional_id,
        request.transaction_timeout_ms,
        None if expected.id == -1 else expected,
        now=call.cluster.now,
    )

    _respond_later(call, future, _producer_fields)


def _add_partitions(call: ServerCall[AddPartitionsToTxnRequest]) -> None:
    request = call.request
    if call.version >= _BROKERS_SINCE:
        call.require_cluster(AclOperation.CLUSTER_ACTION)
        transactions: Sequence[AddPartitionsToTxnTransaction] = request.transactions
    else:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    futures = [_added(call, each) for each in transactions]

    def respond(_: Future[None]) -> None:
        results = tuple(future.result() for future in futures)
        if call.version >= _BROKERS_SINCE:
            call.respond(AddPartitionsToTxnResponse(results_by_transaction=results))
        else:
            call.respond(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results))

    _host(call).settle()
    Future.gather(futures).add_done_callback(respond)


def _added(
    call: ServerCall[AddPartitionsToTxnRequest], asked: AddPartitionsToTxnTransaction
) -> Future[AddPartitionsToTxnResult]:
    """Add the partitions of one transaction, or verify that they were added.

    A response with one error for all partitions repeats the lists of the request, including empty and duplicate ones.
    """
    listed = [(topic.name, topic.partitions) for topic in asked.topics]
    places = [TopicPartition(name, number) for name, partitions in listed for number in partitions]
    once = list(group_by_topic(dict.fromkeys(places)))
    if call.version < _BROKERS_SINCE and not call.allows(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, asked.transactional_id
    ):
        denied = dict.fromkeys(places, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return Future.from_value(_shown(asked, listed, denied))
    errors = _errors_before(call, places)
    if errors:
        return Future.from_value(_shown(asked, once, errors))
    repeated = once if asked.verify_only else listed
    result: Future[AddPartitionsToTxnResult] = Future()

    def show(asked_for: Future[Mapping[TopicPartition, ErrorCode]]) -> None:
        if asked_for.error is None:
            result.resolve(_shown(asked, repeated, asked_for.value or {}))
        else:
            code = _known(call, asked_for.error)
            result.resolve(_shown(asked, repeated, dict.fromkeys(places, code)))

    _ask(call, asked, places).add_done_callback(show)
    return result


def _shown(
    asked: AddPartitionsToTxnTransaction,
    listed: Iterable[tuple[str, tuple[int, ...]]],
    errors: Mapping[TopicPartition, ErrorCode],
) -> AddPartitionsToTxnResult:
    topics = (
        AddPartitionsToTxnTopicResult(
            name=name,
            results_by_partition=tuple(
                AddPartitionsToTxnPartitionResult(
                    partition_index=each,
                    partition_error_code=errors.get(TopicPartition(name, each), ErrorCode.NONE),
                )
                for each in partitions
            ),
        )
        for name, partitions in listed
    )
    return AddPartitionsToTxnResult(transactional_id=asked.transactional_id, topic_results=tuple(topics))


def _errors_before(call: ServerCall[Any], places: list[TopicPartition]) -> dict[TopicPartition, ErrorCode]:
    """Return the errors of unauthorized and unknown partitions. If any exist, no partition is added."""
    from_client = call.version < _BROKERS_SINCE
    errors: dict[TopicPartition, ErrorCode] = {}
    for place in places:
        if from_client and not call.allows(AclOperation.WRITE, ResourceType.TOPIC, place.topic):
            errors[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif find_log(call.cluster, *place) is None:
            errors[place] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return {place: errors.get(place, ErrorCode.OPERATION_NOT_ATTEMPTED) for place in places} if errors else {}


def _ask(call: ServerCall[Any], asked: AddPartitionsToTxnTransaction, places: list[TopicPartition]) -> Future[Any]:
    """Return the errors by partition."""
    coordinator = _host(call).coordinator
    producer = ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch)
    if asked.verify_only:
        try:
            return Future.from_value(coordinator.verify_partitions(asked.transactional_id, producer, places))
        except ApiError as error:
            return Future.from_error(error)
    version = 2 if call.version >= _BROKERS_SINCE else 0
    return coordinator.add_partitions(
        asked.transactional_id, producer, places, client_version=version, now=call.cluster.now
    )


def _add_offsets(call: ServerCall[AddOffsetsToTxnRequest]) -> None:
    request = call.request
    _require(call, request.transactional_id)
    call.require_group(request.group_id)
    partition = GroupCoordinatorService.of_call(call).coordinator.partition_for(request.group_id)
    future = _host(call).coordinator.add_partitions(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        [TopicPartition(CONSUMER_OFFSETS, partition)],
        client_version=0,
        now=call.cluster.now,
    )
    _respond_later(call, future, lambda _: {})


def _end(call: ServerCall[EndTxnRequest]) -> None:
    request = call.request
    _require(call, request.transactional_id)
    future = _host(call).coordinator.end(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        committed=request.committed,
        client_version=2 if call.version >= _BUMPS_SINCE else 0,
        now=call.cluster.now,
    )

    _respond_later(call, future, _producer_fields)


def _describe(call: ServerCall[DescribeTransactionsRequest]) -> None:
    states = tuple(_described(call, each) for each in call.request.transactional_ids)
    call.respond(DescribeTransactionsResponse(transaction_states=states))


def _described(call: ServerCall[Any], transactional_id: str) -> TransactionState:
    try:
        call.require(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        found = _host(call).coordinator.describe(transactional_id)
    except ApiError as refused:
        return TransactionState(error_code=refused.error, transactional_id=transactional_id)
    seen = (each for each in found.partitions if call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, each.topic))
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=found.status.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.started_ms,
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        topics=tuple(TopicData(topic=topic, partitions=numbers) for topic, numbers in group_by_topic(seen)),
    )


def _list(call: ServerCall[ListTransactionsRequest]) -> None:
    request = call.request
    matches = _pattern(request.transactional_id_pattern)
    labels = {status.label: status for status in TransactionStatus}
    states = {labels[name] for name in request.state_filters if name in labels}
    now = call.cluster.now

    def chosen(each: TransactionMetadata) -> bool:
        return (
            (not request.producer_id_filters or each.producer_id in request.producer_id_filters)
            and (not request.state_filters or each.status in states)
            and (request.duration_filter < 0 or now - each.started_ms > request.duration_filter)
            and matches(each.transactional_id)
            and call.allows(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, each.transactional_id)
        )

    call.respond(
        ListTransactionsResponse(
            unknown_state_filters=tuple(name for name in dict.fromkeys(request.state_filters) if name not in labels),
            transaction_states=tuple(
                ListedTransaction(
                    transactional_id=each.transactional_id,
                    producer_id=each.producer_id,
                    transaction_state=each.status.label,
                )
                for each in _host(call).coordinator.transactions()
                if chosen(each)
            ),
        )
    )


def _pattern(text: str | None) -> Callable[[str], bool]:
    """Return a matcher for a pattern. Kafka uses Java's syntax. This uses RE2, in time linear in the name."""
    if not text:
        return lambda name: True
    try:
        return compile_regex(text)
    except InvalidRegexError as error:
        raise RequestRefusedError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"Transaction ID pattern `{text}` is not a valid regular expression: {error}.",
        ) from None


HANDLERS: Final = (
    ApiHandler(InitProducerIdRequest, _init),
    ApiHandler(AddPartitionsToTxnRequest, _add_partitions),
    ApiHandler(AddOffsetsToTxnRequest, _add_offsets),
    ApiHandler(EndTxnRequest, _end),
    ApiHandler(DescribeTransactionsRequest, _describe),
    ApiHandler(ListTransactionsRequest, _list),
)
