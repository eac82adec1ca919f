"""Committed group offsets: commit (with and without a transaction), fetch and delete.

The coordinator stores offsets by topic name. These handlers resolve topic ids to names, and answer for unknown or
unauthorized partitions without the coordinator. The source is ``kafka.server.KafkaApis``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from attrs import evolve

from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.coordinators.leadership import find_log
from kafka_msgs.broker.coordinators.transaction_service import join_transaction
from kafka_msgs.broker.handlers.partition_access import find_topic
from kafka_msgs.broker.handlers.response_parts import group_by_key
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.output import ProducerIdAndEpoch
from kafka_msgs.messages.offset_commit_request import OffsetCommitRequest
from kafka_msgs.messages.offset_delete_request import OffsetDeleteRequest
from kafka_msgs.messages.offset_delete_response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafka_msgs.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka_msgs.messages.offset_fetch_response import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from kafka_msgs.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from kafka_msgs.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from kafka_msgs.schema import ZERO_UUID
from kafka_msgs.wire import error_response

__all__ = ["HANDLERS"]

_TOPIC_IDS_SINCE: Final = 10
_TRANSACTIONAL_TOPIC_IDS_SINCE: Final = 6
"""The first versions with topic ids instead of names (KIP-848, KIP-1319).

The first constant is for OffsetCommit and OffsetFetch, the second for TxnOffsetCommit.
"""

_GROUPS_SINCE: Final = 8
"""The first version of OffsetFetch with several groups."""

_ADDS_SINCE: Final = 5
_ABORTABLE_SINCE: Final = 4
"""The first versions in which TxnOffsetCommit adds its partition, and supports TRANSACTION_ABORTABLE."""

_LOADING_SINCE: Final = 2
"""The first version in which TxnOffsetCommit supports COORDINATOR_LOAD_IN_PROGRESS."""


class _CheckedTopics(NamedTuple):
    """The topics of a request: those for the coordinator, and those that receive an error each."""

    good: tuple[Any, ...]
    bad: list[tuple[Any, ErrorCode]]
    by_id: bool = False


def _sort(call: ServerCall[Any], topics: Iterable[Any], *, by_id: bool = False) -> _CheckedTopics:
    """Separate topics that are unknown or unauthorized, and partitions that do not exist."""
    good: list[Any] = []
    bad: list[tuple[Any, ErrorCode]] = []
    for topic in topics:
        try:
            found = find_topic(call, topic.name, topic.topic_id if by_id else None, AclOperation.READ)
        except RequestRefusedError as error:
            bad.append((topic, ErrorCode(error.error)))
            continue
        indexes = range(len(found.partitions))
        known = tuple(each for each in topic.partitions if each.partition_index in indexes)
        unknown = tuple(each for each in topic.partitions if each.partition_index not in indexes)
        if unknown:
            bad.append((evolve(topic, partitions=unknown), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if known:
            ids = {"topic_id": found.id} if hasattr(topic, "topic_id") else {}
            good.append(evolve(topic, name=found.name, partitions=known, **ids))
    return _CheckedTopics(tuple(good), bad, by_id)


def _ask(call: ServerCall[Any], topics: _CheckedTopics, ask: Callable[[Any, Callable[[Any], None]], None]) -> None:
    """Pass the valid topics to the coordinator, and add the invalid ones to its response."""
    request = call.request

    def complete(response: Any) -> None:
        call.respond(evolve(response, topics=_merged(request, response.topics, topics, call.version)))

    if topics.good:
        ask(evolve(request, topics=topics.good), complete)
    else:
        complete(request.response_class()())


def _merged(request: Any, answered: Iterable[Any], topics: _CheckedTopics, version: int) -> tuple[Any, ...]:
    """Return the topics of a response, with the invalid ones first. As in Kafka, each topic occurs once."""
    if not topics.bad:
        return tuple(answered)
    place = "topic_id" if topics.by_id else "name"
    failed = [_failed_topic(request, topic, error, version, topics.by_id) for topic, error in topics.bad]
    merged = group_by_key((getattr(each, place), each) for each in (*failed, *answered))
    return tuple(map(_joined_parts, merged.values()))


def _failed_topic(request: Any, topic: Any, error: ErrorCode, version: int, by_id: bool) -> Any:
    """Return a response topic with the same error for all partitions."""
    if isinstance(request, OffsetDeleteRequest):
        indexes = (each.partition_index for each in topic.partitions)
        parts = (OffsetDeleteResponsePartition(partition_index=index, error_code=error) for index in indexes)
        return OffsetDeleteResponseTopic(name=topic.name, partitions=tuple(parts))
    (failed,) = error_response(evolve(request, topics=(topic,)), error, version).topics
    return evolve(failed, topic_id=topic.topic_id) if by_id else failed


def _joined_parts(parts: tuple[Any, ...]) -> Any:
    """Return one response topic from its parts."""
    return evolve(parts[0], partitions=tuple(chain.from_iterable(each.partitions for each in parts)))


def _commit(call: ServerCall[OffsetCommitRequest]) -> None:
    call.require_group(call.request.group_id)
    topics = _sort(call, call.request.topics, by_id=call.version >= _TOPIC_IDS_SINCE)
    host = GroupCoordinatorService.of_call(call)
    _ask(call, topics, lambda request, reply: host.handle(call, request, reply))


def _delete(call: ServerCall[OffsetDeleteRequest]) -> None:
    call.require_group(call.request.group_id, AclOperation.DELETE)
    topics = _sort(call, call.request.topics)
    host = GroupCoordinatorService.of_call(call)
    request = evolve(call.request, topics=topics.good)

    def complete(response: OffsetDeleteResponse) -> None:
        if not response.error_code:
            response = evolve(response, topics=_merged(call.request, response.topics, topics, call.version))
        call.respond(response)

    host.handle(call, request, complete)


def _commit_in_transaction(call: ServerCall[TxnOffsetCommitRequest]) -> None:
    request = call.request
    call.require(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    call.require_group(request.group_id)

    def ask(part: TxnOffsetCommitRequest, reply: Callable[[Any], None]) -> None:
        _joined(call, part, lambda response: reply(_known_errors(response, call.version)))

    _ask(call, _sort(call, request.topics, by_id=call.version >= _TRANSACTIONAL_TOPIC_IDS_SINCE), ask)


def _joined(
    call: ServerCall[TxnOffsetCommitRequest], request: TxnOffsetCommitRequest, reply: Callable[[Any], None]
) -> None:
    """Add the group's partition to the transaction, then pass the request to the coordinator."""
    host = GroupCoordinatorService.of_call(call)
    partition = host.coordinator.partition_for(request.group_id)
    log = find_log(call.cluster, CONSUMER_OFFSETS, partition)
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    guard = None
    if log is not None and request.group_id and host.leads(partition):
        try:
            guard = join_transaction(
                call.cluster,
                log,
                request.transactional_id,
                producer,
                -1,
                adds=call.version >= _ADDS_SINCE,
                abortable=call.version >= _ABORTABLE_SINCE,
            )
        except RequestRefusedError as error:
            reply(error_response(request, error.error, call.version))
            return
    with host.guarding(producer, guard):
        host.handle(call, request, reply)


def _known_errors(response: TxnOffsetCommitResponse, version: int) -> TxnOffsetCommitResponse:
    """Replace an error that old clients do not support."""
    if version >= _LOADING_SINCE:
        return response
    loading, unavailable = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE

    def known(part: Any) -> Any:
        return evolve(part, error_code=unavailable) if part.error_code == loading else part

    topics = (evolve(topic, partitions=tuple(map(known, topic.partitions))) for topic in response.topics)
    return evolve(response, topics=tuple(topics))


def _fetch(call: ServerCall[OffsetFetchRequest]) -> None:
    if call.version < _GROUPS_SINCE:
        _fetch_one(call)
        return
    request = call.request
    answers: dict[int, OffsetFetchResponseGroup] = {}

    def answered(index: int, group: OffsetFetchResponseGroup) -> None:
        answers[index] = group
        if len(answers) == len(request.groups):
            call.respond(OffsetFetchResponse(groups=tuple(answers[each] for each in range(len(answers)))))

    if not request.groups:
        call.respond(OffsetFetchResponse())
    for index, group in enumerate(request.groups):
        _fetch_group(call, group, partial(answered, index))


def _fetch_one(call: ServerCall[OffsetFetchRequest]) -> None:
    """Handle a request for one group.

    Topics that the client may not see receive an error, or are omitted if it requests all topics.
    """
    request = call.request
    call.require_group(request.group_id, AclOperation.DESCRIBE)
    hidden = tuple(each for each in request.topics or () if not _sees(call, each.name))
    visible = request.topics and tuple(each for each in request.topics if _sees(call, each.name))

    def complete(response: OffsetFetchResponse) -> None:
        topics = tuple(each for each in response.topics if _sees(call, each.name))
        if hidden and not response.error_code:
            part = evolve(request, topics=hidden)
            # Version 1 has no group-level error, so each topic repeats it.
            failed = error_response(part, ErrorCode.TOPIC_AUTHORIZATION_FAILED, 1)
            topics += failed.topics
        call.respond(evolve(response, topics=topics))

    GroupCoordinatorService.of_call(call).handle(call, evolve(request, topics=visible), complete)


def _sees(call: ServerCall[Any], topic: str) -> bool:
    return call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)


def _fetch_group(
    call: ServerCall[OffsetFetchRequest],
    group: OffsetFetchRequestGroup,
    reply: Callable[[OffsetFetchResponseGroup], None],
) -> None:
    if not call.allows(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id):
        reply(OffsetFetchResponseGroup(group_id=group.group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return
    by_id = call.version >= _TOPIC_IDS_SINCE
    good, failed = _fetchable(call, group, by_id)

    def complete(response: OffsetFetchResponse) -> None:
        (found,) = response.groups
        if not found.error_code:
            topics = [each for each in found.topics if _sees(call, each.name)]
            if by_id:
                topics = [evolve(each, topic_id=_id(call, each)) for each in topics if _id(call, each) != ZERO_UUID]
            found = evolve(found, topics=(*topics, *failed))
        reply(found)

    part = evolve(call.request, groups=(evolve(group, topics=good),))
    GroupCoordinatorService.of_call(call).handle(call, part, complete)


def _id(call: ServerCall[Any], topic: Any) -> Any:
    """Return the id of a response topic, from the offset or from the current topic with that name."""
    found = call.cluster.image.topics.get(topic.name)
    return topic.topic_id if topic.topic_id != ZERO_UUID or found is None else found.id


def _fetchable(
    call: ServerCall[Any], group: OffsetFetchRequestGroup, by_id: bool
) -> tuple[tuple[Any, ...] | None, list[Any]]:
    """Return the topics for the coordinator, and the response elements for all others. None requests all topics."""
    if group.topics is None:
        return None, []
    good: list[Any] = []
    failed: list[Any] = []
    for topic in group.topics:
        found = call.cluster.image.topics_by_id.get(topic.topic_id) if by_id else None
        name = found.name if found is not None else topic.name
        if by_id and not name:
            failed.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        elif not _sees(call, name):
            failed.append(_failed(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        else:
            good.append(evolve(topic, name=name))
    return tuple(good), failed


def _failed(topic: Any, error: ErrorCode) -> Any:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=tuple(
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, error_code=error)
            for index in topic.partition_indexes
        ),
    )


HANDLERS: Final = (
    ApiHandler(OffsetCommitRequest, _commit),
    ApiHandler(TxnOffsetCommitRequest, _commit_in_transaction),
    ApiHandler(OffsetFetchRequest, _fetch),
    ApiHandler(OffsetDeleteRequest, _delete),
)
