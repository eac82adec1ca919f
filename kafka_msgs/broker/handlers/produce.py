"""Produce: append batches to their partitions, return a result for each, and wait for the in-sync replicas.

Batches are passed on unchanged: the log validates them and assigns offsets. These are the tasks of ``KafkaApis`` and
``ReplicaManager.handleProduceAppend``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Final
from uuid import UUID

from attrs import Factory, define, evolve

from kafka_msgs.broker.controller.image import PartitionRegistration, TopicImage
from kafka_msgs.broker.controller.internal_topic_configs import is_internal
from kafka_msgs.broker.handlers.partition_access import LeaderPartition, endpoints, find_topic, get_leader_partition
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.storage import AppendResult, PartitionLog, VerificationGuard
from kafka_msgs.broker.storage.batch_headers import header_at
from kafka_msgs.broker.storage.log_validator import is_transactional, split_batches, validate_produced
from kafka_msgs.codec import Buffer
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedRecordsError, RequestRefusedError
from kafka_msgs.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_msgs.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)

__all__ = ["HANDLERS"]

_ALL: Final = -1
_NONE: Final = 0
_INTERNAL_ALLOWED: Final = "__admin_client"
_FIRST_WITH_ABORTABLE_ERRORS: Final = 11
_COORDINATOR_ERRORS: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""Transaction coordinator errors that old producers do not retry. Kafka returns NOT_ENOUGH_REPLICAS instead."""
_FIRST_THAT_ADDS_PARTITIONS: Final = 12
_FIRST_WITH_LEADERS: Final = 10
_FIRST_WITH_IDS: Final = 13
_TEXTS: Final[Mapping[IntEnum, str]] = {ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction"}
"""The errors with a message after a query to the transaction coordinator."""
_WITHOUT_START: Final = frozenset(
    {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.CORRUPT_MESSAGE}
    | {ErrorCode.KAFKA_STORAGE_ERROR}
)
"""The append errors for which Kafka returns no log start offset."""


@define
class _PartitionResult:
    """The result for one partition of a request, and the offset up to which it must be replicated (None: no offset)."""

    response: PartitionProduceResponse
    log: PartitionLog | None = None
    wanted: int | None = None


@define
class _PartitionBatches:
    """The batches of a request for one partition: the valid batches, and error responses for the invalid ones.

    If a partition is repeated, the last valid entry is appended, and the last invalid entry determines the error
    response.
    """

    index: int
    sound: list[tuple[TopicImage, PartitionRegistration, Buffer]] = Factory(list)
    refused: list[PartitionProduceResponse] = Factory(list)


def _produce(call: ServerCall[ProduceRequest]) -> None:
    request = call.request
    try:
        _check_transaction(call)
    except RequestRefusedError:
        call.request = _without_repeats(request)
        raise
    topics = [(topic, [_appended(call, each) for each in parts]) for topic, parts in _checked(call)]
    if request.acks == _NONE:
        call.exempt = True
        _end_without_answer(call, topics)
        return
    waiting = [part for _, parts in topics for part in parts if not _replicated(part)]
    if request.acks == _ALL and waiting and request.timeout_ms > 0:
        _DelayedProduce(call, topics, waiting)
    else:
        _answer(call, topics)


def _check_transaction(call: ServerCall[ProduceRequest]) -> None:
    """Raise ``RequestRefusedError`` if a batch is transactional and the client may not use its transactional id."""
    data = (part.records for topic in call.request.topic_data for part in topic.partition_data)
    if not any(is_transactional(records) for records in data if records is not None):
        return
    name = call.request.transactional_id
    if name is None or not call.allows(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        raise RequestRefusedError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)


def _by_topic(request: ProduceRequest) -> list[tuple[TopicProduceData, dict[int, list[PartitionProduceData]]]]:
    """Return the data of each topic and partition. Topics and partitions may be repeated."""
    topics: dict[tuple[str, UUID], tuple[TopicProduceData, dict[int, list[PartitionProduceData]]]] = {}
    for topic in request.topic_data:
        for part in topic.partition_data:
            parts = topics.setdefault((topic.name, topic.topic_id), (topic, {}))[1]
            parts.setdefault(part.index, []).append(part)
    return list(topics.values())


def _without_repeats(request: ProduceRequest) -> ProduceRequest:
    """Return the request without repeated partitions, for the response when the whole request fails."""
    topics = (
        evolve(topic, partition_data=tuple(each[-1] for each in parts.values())) for topic, parts in _by_topic(request)
    )
    return evolve(request, topic_data=tuple(topics))


def _checked(call: ServerCall[ProduceRequest]) -> Iterator[tuple[TopicProduceData, list[_PartitionBatches]]]:
    """Yield the data of each topic, after the checks that precede all appends."""
    for topic, parts in _by_topic(call.request):
        found = {index: _PartitionBatches(index) for index in parts}
        for part in (each for repeats in parts.values() for each in repeats):
            try:
                found[part.index].sound.append(_sound(call, topic, part))
            except RequestRefusedError as error:
                refused = _failed(call, part.index, error, message=_TEXTS.get(error.error))
                found[part.index].refused.append(refused)
        yield topic, list(found.values())


_Topics = list[tuple[TopicProduceData, list[_PartitionResult]]]


def _replicated(part: _PartitionResult) -> bool:
    return part.log is None or part.wanted is None or part.log.high_watermark >= part.wanted


class _DelayedProduce:
    """The wait of an ``acks=-1`` request for partitions whose high watermark is held back, until it times out."""

    def __init__(self, call: ServerCall[ProduceRequest], topics: _Topics, waiting: list[_PartitionResult]) -> None:
        self._call, self._topics, self._waiting = call, topics, waiting
        keys = [(part.log.topic_id, part.log.partition) for part in waiting if part.log is not None]
        self._watch = call.cluster.log_manager.watch(keys, self._look)
        self._timer = call.cluster.call_later(call.request.timeout_ms, self._expire)

    def _look(self) -> None:
        if all(map(_replicated, self._waiting)):
            self._end()

    def _expire(self) -> None:
        for part in self._waiting:
            if not _replicated(part):
                timed_out = RequestRefusedError(ErrorCode.REQUEST_TIMED_OUT)
                part.response = _failed(self._call, part.response.index, timed_out)
        self._end()

    def _end(self) -> None:
        self._watch.cancel()
        self._timer.cancel()
        _answer(self._call, self._topics)


def _sound(
    call: ServerCall[ProduceRequest], topic: TopicProduceData, data: PartitionProduceData
) -> tuple[TopicImage, PartitionRegistration, Buffer]:
    """Return the partition and the records for it. Raises ``RequestRefusedError``."""
    topic_id = topic.topic_id if call.version >= _FIRST_WITH_IDS else None
    found = find_topic(call, topic.name, topic_id, AclOperation.WRITE)
    state = call.cluster.image.partition(found.id, data.index)
    if state is None:
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    records = data.records if data.records is not None else b""
    validate_produced(split_batches(records), call.version)
    return found, state, records


def _appended(call: ServerCall[ProduceRequest], batches: _PartitionBatches) -> _PartitionResult:
    outcomes = [_append(call, batches.index, *each) for each in batches.sound[-1:]]
    return [*outcomes, *map(_PartitionResult, batches.refused)][-1]


def _append(
    call: ServerCall[ProduceRequest], index: int, topic: TopicImage, state: PartitionRegistration, records: Buffer
) -> _PartitionResult:
    try:
        led = _writable(call, topic, index, records)
        guard = _guard(call, led.log, records)
    except RequestRefusedError as error:
        return _PartitionResult(_failed(call, index, error, state, message=_TEXTS.get(error.error)))
    try:
        appended = _write(call, led, records, guard)
    except RequestRefusedError as error:
        start = -1 if error.error in _WITHOUT_START else led.log.log_start_offset
        return _PartitionResult(_failed(call, index, error, state, log_start_offset=start))
    response = PartitionProduceResponse(
        index=index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=appended.log_start_offset,
    )
    return _PartitionResult(response, led.log, appended.last_offset + 1)


def _writable(call: ServerCall[ProduceRequest], topic: TopicImage, index: int, records: Buffer) -> LeaderPartition:
    """Return the partition of the records, if this broker leads it. Raises ``RequestRefusedError``."""
    if call.request.acks not in (_ALL, _NONE, 1):
        raise RequestRefusedError(ErrorCode.INVALID_REQUIRED_ACKS)
    if call.request.transactional_id is not None and is_transactional(records):
        get_leader_partition(call, topic, index)
    if is_internal(topic.name) and call.client_id != _INTERNAL_ALLOWED:
        raise RequestRefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION)
    return get_leader_partition(call, topic, index)


def _write(
    call: ServerCall[ProduceRequest], led: LeaderPartition, records: Buffer, guard: VerificationGuard | None
) -> AppendResult:
    if call.request.acks == _ALL:
        _check_in_sync(call, led)
    return led.log.append(records, leader_epoch=led.state.leader_epoch, now=call.cluster.now, guard=guard)


def _check_in_sync(call: ServerCall[ProduceRequest], led: LeaderPartition) -> None:
    needed = min(call.cluster.log_manager.config_number(led.log.topic, "min.insync.replicas"), len(led.state.replicas))
    if len(led.state.isr) < needed:
        message = (
            f"The size of the current ISR {len(led.state.isr)} is insufficient to satisfy the min.isr requirement of "
            f"{needed} for partition {led.log.name}"
        )
        raise RequestRefusedError(ErrorCode.NOT_ENOUGH_REPLICAS, message)


def _guard(call: ServerCall[ProduceRequest], log: PartitionLog, records: Buffer) -> VerificationGuard | None:
    """Return the guard for the first batch of a transaction (KIP-890). Raises ``RequestRefusedError``."""
    join, transactional_id = call.cluster.transaction_joiner, call.request.transactional_id
    if join is None or transactional_id is None:
        return None
    header = header_at(records, 0, 0, len(records))
    if header is None or not header.is_transactional or not header.has_producer:
        return None
    try:
        return join(
            call.cluster,
            log,
            transactional_id,
            (header.producer_id, header.producer_epoch),
            header.base_sequence,
            adds=call.version >= _FIRST_THAT_ADDS_PARTITIONS,
            abortable=call.version >= _FIRST_WITH_ABORTABLE_ERRORS,
        )
    except RequestRefusedError as error:
        if error.error not in _COORDINATOR_ERRORS:
            raise
        reason = "Unable to verify the partition has been added to the transaction. Underlying error: "
        raise RequestRefusedError(ErrorCode.NOT_ENOUGH_REPLICAS, reason + error.error.name) from None


def _failed(
    call: ServerCall[ProduceRequest],
    index: int,
    error: RequestRefusedError,
    state: PartitionRegistration | None = None,
    *,
    message: str | None = None,
    log_start_offset: int = -1,
) -> PartitionProduceResponse:
    response = PartitionProduceResponse(
        index=index, error_code=error.error, base_offset=-1, log_start_offset=log_start_offset, error_message=message
    )
    if isinstance(error, RefusedRecordsError):
        errors = (BatchIndexAndErrorMessage(batch_index=i, batch_index_error_message=m) for i, m in error.record_errors)
        response = evolve(response, error_message=error.message, record_errors=tuple(errors))
    moved = error.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if state is not None and moved and call.version >= _FIRST_WITH_LEADERS:
        leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
        response = evolve(response, current_leader=leader)
    return response


def _end_without_answer(call: ServerCall[ProduceRequest], topics: _Topics) -> None:
    """End a request with ``acks=0``. A failure closes the connection, because no response can report it."""
    call.charge(call.meters.produce, call.size)
    if any(part.response.error_code for _, parts in topics for part in parts):
        call.disconnect()
    else:
        call.respond(None)


def _answer(call: ServerCall[ProduceRequest], topics: _Topics) -> None:
    responses = tuple(
        TopicProduceResponse(
            name=topic.name, topic_id=topic.topic_id, partition_responses=tuple(part.response for part in parts)
        )
        for topic, parts in topics
    )
    leaders = [
        part.response.current_leader.leader_id
        for _, parts in topics
        for part in parts
        if part.response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and call.version >= _FIRST_WITH_LEADERS
    ]
    nodes = tuple(NodeEndpoint(**each) for each in endpoints(call, leaders))
    call.charge(call.meters.produce, call.size)
    call.respond(ProduceResponse(responses=responses, node_endpoints=nodes))


HANDLERS: Final = (ApiHandler(ProduceRequest, _produce),)
