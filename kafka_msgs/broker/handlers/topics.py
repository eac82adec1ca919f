"""CreateTopics, DeleteTopics and CreatePartitions: one outcome for each topic of a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import filterfalse
from typing import Any, Final

from kafka_msgs.broker.call import Call, Handler
from kafka_msgs.broker.controller.configs import topic_entries
from kafka_msgs.broker.controller.image import TopicState
from kafka_msgs.broker.controller.topics import (
    MAX_PARTITIONS,
    NewTopic,
    add_partitions,
    check_new_name,
    check_not_reserved,
    delete_topic,
    topic_records,
)
from kafka_msgs.broker.handlers.leading import ERROR_TEXTS
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RefusedError
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_msgs.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kafka_msgs.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafka_msgs.messages.create_topics_response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kafka_msgs.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from kafka_msgs.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from kafka_msgs.messages.partition_record import PartitionRecord
from kafka_msgs.messages.topic_record import TopicRecord
from kafka_msgs.schema import ZERO_UUID

__all__ = ["HANDLERS"]

_FIRST_STRICT: Final = {CreateTopicsRequest: 6, DeleteTopicsRequest: 5, CreatePartitionsRequest: 3}
"""The first version of each api that is refused if the client has used up its ``controller_mutation_rate``."""


def _create_topics(call: Call[CreateTopicsRequest]) -> None:
    request = call.request
    counts = Counter(each.name for each in request.topics)
    unique = {each.name: each for each in request.topics}
    errors = {name: _forbidden(call, name, counts[name]) for name in unique}
    if sum(_size(call, each) for each in unique.values() if errors[each.name] is None) > MAX_PARTITIONS:
        message = "Excessively large number of partitions per request."
        raise RefusedError(error=ErrorCode.POLICY_VIOLATION, message=message)
    # As in Kafka, the names are checked before any topic is created.
    errors = {name: error or _wrong_name(call, name) for name, error in errors.items()}
    results = tuple(_created(call, each, errors[each.name]) for each in unique.values())
    call.answer(CreateTopicsResponse(topics=results))


def _created(
    call: Call[CreateTopicsRequest], asked: CreatableTopic, wrong: RefusedError | None
) -> CreatableTopicResult:
    try:
        if wrong is not None:
            raise wrong
        records = topic_records(
            call.cluster,
            NewTopic(
                name=asked.name,
                num_partitions=asked.num_partitions,
                replication_factor=asked.replication_factor,
                assignments=[(each.partition_index, each.broker_ids) for each in asked.assignments],
                configs={each.name: each.value for each in asked.configs},
            ),
        )
        _charge(call, sum(isinstance(each, PartitionRecord) for each in records))
    except RefusedError as error:
        return CreatableTopicResult(
            name=asked.name,
            error_code=error.error,
            error_message=error.message,
            configs=() if call.version > 4 else None,
        )
    if not call.request.validate_only:
        call.cluster.commit(records)
    return _success(call, asked, records)


def _charge(call: Call[Any], partitions: int) -> None:
    call.charge_mutations(partitions, strict=call.version >= _FIRST_STRICT[type(call.request)])


def _size(call: Call[CreateTopicsRequest], asked: CreatableTopic) -> int:
    """Return how many partitions a new topic would have."""
    if asked.assignments:
        return len(asked.assignments)
    return (
        call.cluster.settings.number("num.partitions") if asked.num_partitions == -1 else max(0, asked.num_partitions)
    )


def _forbidden(call: Call[CreateTopicsRequest], name: str, times: int) -> RefusedError | None:
    """Return why the client may not create a topic that the request has so many ``times``, or None."""
    if times > 1:
        return RefusedError(error=ErrorCode.INVALID_REQUEST, message="Duplicate topic name.")
    try:
        check_not_reserved(name)
    except RefusedError as error:
        return error
    if not (call.allows_cluster(AclOperation.CREATE) or call.allows(AclOperation.CREATE, ResourceType.TOPIC, name)):
        return RefusedError(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None


def _wrong_name(call: Call[CreateTopicsRequest], name: str) -> RefusedError | None:
    """Return why no topic can be created with a name, or None."""
    try:
        check_new_name(call.cluster.image, name)
    except RefusedError as error:
        return error
    return None


def _success(
    call: Call[CreateTopicsRequest], asked: CreatableTopic, records: list[MetadataRecord]
) -> CreatableTopicResult:
    topic = next(each for each in records if isinstance(each, TopicRecord))
    facts: dict[str, Any] = {"name": topic.name, "topic_id": topic.topic_id, "error_message": None}
    if not call.allows(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        return CreatableTopicResult(**facts, topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, configs=None)
    partitions = [each for each in records if isinstance(each, PartitionRecord)]
    own = {each.name: each.value or "" for each in asked.configs}
    return CreatableTopicResult(
        **facts,
        num_partitions=len(partitions),
        replication_factor=len(partitions[0].replicas),
        configs=tuple(
            CreatableTopicConfigs(
                name=entry.setting.name,
                value=None if entry.sensitive else own.get(entry.setting.name, entry.value),
                config_source=entry.source,
                is_sensitive=entry.sensitive,
            )
            for entry in topic_entries(call.cluster, own)
        ),
    )


def _delete_topics(call: Call[DeleteTopicsRequest]) -> None:
    request = call.request
    wanted = request.topics or tuple(DeleteTopicState(name=name) for name in request.topic_names)
    if not call.cluster.settings.flag("delete.topic.enable"):
        error = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        raise RefusedError(
            error=error, message="This version does not support topic deletion." if call.version < 3 else None
        )
    keys = Counter((each.name, each.topic_id) for each in wanted)
    # A topic that is named twice is answered once; what names no topic is answered each time.
    answered = [*filterfalse(_names_one, wanted), *dict.fromkeys(filter(_names_one, wanted))]
    call.answer(DeleteTopicsResponse(responses=tuple(_deleted(call, each, keys) for each in answered)))


def _names_one(wanted: DeleteTopicState) -> bool:
    """Whether a topic is named by its name or by its id, not by both or by none."""
    return (wanted.name is None) != (wanted.topic_id == ZERO_UUID)


def _deleted(
    call: Call[DeleteTopicsRequest], wanted: DeleteTopicState, keys: Counter[tuple[str | None, Any]]
) -> DeletableTopicResult:
    name, topic_id = wanted.name, wanted.topic_id
    try:
        topic = _topic_to_delete(call, wanted, keys)
        name, topic_id = topic.name, topic.id
        _charge(call, len(topic.partitions))
    except RefusedError as error:
        return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.error, error_message=error.message)
    call.cluster.commit(delete_topic(topic))
    return DeletableTopicResult(name=name, topic_id=topic_id)


def _topic_to_delete(
    call: Call[DeleteTopicsRequest], wanted: DeleteTopicState, keys: Counter[tuple[str | None, Any]]
) -> TopicState:
    image, by_id = call.cluster.image, wanted.topic_id != ZERO_UUID
    if by_id and wanted.name is not None:
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message="You may not specify both topic name and topic id.")
    if not by_id and wanted.name is None:
        message = "Neither topic name nor id were specified."
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=message)
    if keys[wanted.name, wanted.topic_id] > 1:
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message=f"Duplicate topic {'id' if by_id else 'name'}.")
    topic = image.topics_by_id.get(wanted.topic_id) if by_id else image.topics.get(wanted.name or "")
    name = topic.name if topic else wanted.name
    if name is not None:
        if not call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            raise RefusedError(error=ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if not call.allows(AclOperation.DELETE, ResourceType.TOPIC, name):
            raise RefusedError(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise RefusedError(error=error, message=ERROR_TEXTS[error])
    return topic


def _create_partitions(call: Call[CreatePartitionsRequest]) -> None:
    counts = Counter(each.name for each in call.request.topics)
    unique = {each.name: each for each in call.request.topics}
    added = sum(_added(call, each) for each in unique.values() if counts[each.name] == 1)
    if added > MAX_PARTITIONS:
        message = "Excessively large number of additional partitions per request."
        raise RefusedError(error=ErrorCode.POLICY_VIOLATION, message=message)
    call.answer(CreatePartitionsResponse(results=tuple(_grown(call, unique.values(), counts))))


def _added(call: Call[CreatePartitionsRequest], asked: CreatePartitionsTopic) -> int:
    """Return how many partitions a topic is to get; 0 if the client may not change it."""
    topic = call.cluster.image.topics.get(asked.name)
    if topic is None or not call.allows(AclOperation.ALTER, ResourceType.TOPIC, asked.name):
        return 0
    return max(0, asked.count - len(topic.partitions))


def _grown(
    call: Call[CreatePartitionsRequest], asked: Any, counts: Counter[str]
) -> Iterator[CreatePartitionsTopicResult]:
    for each in asked:
        try:
            records = _new_partitions(call, each, counts[each.name])
            _charge(call, len(records))
        except RefusedError as error:
            yield CreatePartitionsTopicResult(name=each.name, error_code=error.error, error_message=error.message)
            continue
        if not call.request.validate_only:
            call.cluster.commit(records)
        yield CreatePartitionsTopicResult(name=each.name)


def _new_partitions(
    call: Call[CreatePartitionsRequest], asked: CreatePartitionsTopic, times: int
) -> list[MetadataRecord]:
    if times > 1:
        raise RefusedError(error=ErrorCode.INVALID_REQUEST, message="Duplicate topic name.")
    if not call.allows(AclOperation.ALTER, ResourceType.TOPIC, asked.name):
        raise RefusedError(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = call.cluster.image.topics.get(asked.name)
    if topic is None:
        raise RefusedError(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assignments = None if asked.assignments is None else [each.broker_ids for each in asked.assignments]
    return add_partitions(call.cluster, topic, asked.count, assignments)


HANDLERS: Final = (
    Handler(CreateTopicsRequest, _create_topics),
    Handler(DeleteTopicsRequest, _delete_topics),
    Handler(CreatePartitionsRequest, _create_partitions),
)
