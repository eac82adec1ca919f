"""Produce: batches to the logs of their partitions, an outcome for each, and the wait for all replicas in sync.

Batches pass as they are: the log checks them and gives them offsets. This is the work of ``KafkaApis`` and
``ReplicaManager.handleProduceAppend``.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import define, evolve

from kafka_msgs.broker.call import Call, Handler
from kafka_msgs.broker.controller.image import PartitionState, TopicState
from kafka_msgs.broker.controller.internal_topics import is_internal
from kafka_msgs.broker.handlers.leading import Led, endpoints, find_topic, led_partition
from kafka_msgs.broker.partitions import Appended, Guard, PartitionLog
from kafka_msgs.broker.partitions.headers import header_at
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError, RefusedRecordsError
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
_FIRST_THAT_ADDS_PARTITIONS: Final = 12
_FIRST_WITH_LEADERS: Final = 10


@define
class _Part:
    """One partition of a request: what came of it, and up to where it must be replicated (None: nowhere)."""

    response: PartitionProduceResponse
    log: PartitionLog | None = None
    wanted: int | None = None


def _produce(call: Call[ProduceRequest]) -> None:
    request = call.request
    if request.transactional_id is not None and not call.allows(
        AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id
    ):
        raise RefusedError(error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    topics = [(topic, [_append(call, topic, each) for each in topic.partition_data]) for topic in request.topic_data]
    if request.acks == _NONE:
        _end_without_answer(call, topics)
        return
    waiting = [part for _, parts in topics for part in parts if not _replicated(part)]
    if request.acks == _ALL and waiting and request.timeout_ms > 0:
        _Replication(call, topics, waiting).begin()
    else:
        _answer(call, topics)


_Topics = list[tuple[TopicProduceData, list[_Part]]]


def _replicated(part: _Part) -> bool:
    return part.log is None or part.wanted is None or part.log.high_watermark >= part.wanted


class _Replication:
    """The wait of a request with ``acks=-1`` for partitions whose high watermark is held back."""

    def __init__(self, call: Call[ProduceRequest], topics: _Topics, waiting: list[_Part]) -> None:
        self._call, self._topics, self._waiting = call, topics, waiting

    def begin(self) -> None:
        """Watch the partitions, until the timeout of the request."""
        cluster = self._call.cluster
        keys = [(part.log.topic_id, part.log.partition) for part in self._waiting if part.log is not None]
        self._watch = cluster.partitions.watch(keys, self._look)
        self._timer = cluster.after(self._call.request.timeout_ms, self._expire)

    def _look(self) -> None:
        if all(map(_replicated, self._waiting)):
            self._end()

    def _expire(self) -> None:
        for part in self._waiting:
            if not _replicated(part):
                index = part.response.index
                part.response = _failed(self._call, index, RefusedError(error=ErrorCode.REQUEST_TIMED_OUT))
        self._end()

    def _end(self) -> None:
        self._watch.cancel()
        self._timer.cancel()
        _answer(self._call, self._topics)


def _append(call: Call[ProduceRequest], topic: TopicProduceData, data: PartitionProduceData) -> _Part:
    state: PartitionState | None = None
    try:
        found = _writable(call, topic)
        state = call.cluster.image.partition(found.id, data.index)
        led = led_partition(call, found, data.index)
        appended = _write(call, led, data)
    except RefusedError as error:
        return _Part(_failed(call, data.index, error, state))
    response = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=appended.log_start_offset,
    )
    return _Part(response, led.log, appended.last_offset + 1)


def _writable(call: Call[ProduceRequest], topic: TopicProduceData) -> TopicState:
    if call.request.acks not in (_ALL, _NONE, 1):
        raise RefusedError(error=ErrorCode.INVALID_REQUIRED_ACKS)
    found = find_topic(call, topic.name, topic.topic_id, AclOperation.WRITE)
    if is_internal(found.name) and call.client_id != _INTERNAL_ALLOWED:
        message = f"Cannot append to internal topic {found.name}"
        raise RefusedError(error=ErrorCode.INVALID_TOPIC_EXCEPTION, message=message)
    return found


def _write(call: Call[ProduceRequest], led: Led, data: PartitionProduceData) -> Appended:
    if call.request.acks == _ALL:
        _check_in_sync(call, led)
    records = data.records if data.records is not None else b""
    return led.log.append(
        records,
        leader_epoch=led.state.leader_epoch,
        now=call.cluster.now,
        guard=_guard(call, led.log, records),
        produce_version=call.version,
    )


def _check_in_sync(call: Call[ProduceRequest], led: Led) -> None:
    needed = min(call.cluster.partitions.number(led.log.topic, "min.insync.replicas"), len(led.state.replicas))
    if len(led.state.isr) < needed:
        message = (
            f"The size of the current ISR {len(led.state.isr)} is insufficient to satisfy the min.isr requirement of "
            f"{needed} for partition {led.log.place}"
        )
        raise RefusedError(error=ErrorCode.NOT_ENOUGH_REPLICAS, message=message)


def _guard(call: Call[ProduceRequest], log: PartitionLog, records: bytes | memoryview) -> Guard | None:
    """Return what lets the first batch of a transaction pass (KIP-890). Raises ``RefusedError``."""
    join, transactional_id = call.cluster.join_transaction, call.request.transactional_id
    if join is None or transactional_id is None:
        return None
    header = header_at(records, 0, 0, len(records))
    if header is None or not header.is_transactional or not header.has_producer:
        return None
    return join(
        call.cluster,
        log,
        transactional_id,
        (header.producer_id, header.producer_epoch),
        header.base_sequence,
        adds=call.version >= _FIRST_THAT_ADDS_PARTITIONS,
        abortable=call.version >= _FIRST_WITH_ABORTABLE_ERRORS,
    )


def _failed(
    call: Call[ProduceRequest], index: int, error: RefusedError, state: PartitionState | None = None
) -> PartitionProduceResponse:
    response = PartitionProduceResponse(
        index=index, error_code=error.error, base_offset=-1, log_start_offset=-1, error_message=None
    )
    if isinstance(error, RefusedRecordsError):
        log = call.cluster.partitions.get(state.key) if state else None
        response = evolve(response, error_message=error.message, log_start_offset=log.log_start_offset if log else -1)
        errors = (BatchIndexAndErrorMessage(batch_index=i, batch_index_error_message=m) for i, m in error.record_errors)
        response = evolve(response, record_errors=tuple(errors))
    moved = error.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    if state is not None and moved and call.version >= _FIRST_WITH_LEADERS:
        leader = LeaderIdAndEpoch(leader_id=state.leader, leader_epoch=state.leader_epoch)
        response = evolve(response, current_leader=leader)
    return response


def _end_without_answer(call: Call[ProduceRequest], topics: _Topics) -> None:
    """End a request with ``acks=0``. A failure ends the connection: there is no other way to tell the client."""
    if any(part.response.error_code for _, parts in topics for part in parts):
        call.disconnect()
    else:
        call.answer(None)


def _answer(call: Call[ProduceRequest], topics: _Topics) -> None:
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
        if part.response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    ]
    nodes: tuple[Any, ...] = ()
    if call.version >= _FIRST_WITH_LEADERS:
        nodes = tuple(NodeEndpoint(**each) for each in endpoints(call, leaders))
    call.answer(ProduceResponse(responses=responses, node_endpoints=nodes))


HANDLERS: Final = (Handler(ProduceRequest, _produce),)
