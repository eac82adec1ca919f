"""CreateTopics, DeleteTopics and CreatePartitions, with one result per topic of a request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import filterfalse
from typing import Any, Final

from kafka_msgs.broker.controller.config_entries import topic_entries
from kafka_msgs.broker.controller.image import TopicImage
from kafka_msgs.broker.controller.topics import (
    MAX_PARTITIONS,
    TopicToCreate,
    add_partitions,
    delete_topic,
)
from kafka_msgs.broker.handlers.partition_access import ERROR_TEXTS
from kafka_msgs.broker.handlers.response_parts import outcome_of
from kafka_msgs.broker.handlers.topic_creation import Creation, create_topics, requested_topic
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_msgs.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from kafka_msgs.messages.create_topics_request import CreateTopicsRequest
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

_FIRST_STRICT: Final = {DeleteTopicsRequest: 5, CreatePartitionsRequest: 3}
"""The first version of each API that is refused if the client exceeds its ``controller_mutation_rate``."""


def _create_topics(call: ServerCall[CreateTopicsRequest]) -> None:
    request = call.request
    topics = [requested_topic(each) for each in request.topics]
    creations = create_topics(call, topics, version=call.version, validate_only=request.validate_only)
    call.respond(CreateTopicsResponse(topics=tuple(_created(call, each) for each in creations)))


def _created(call: ServerCall[CreateTopicsRequest], creation: Creation) -> CreatableTopicResult:
    topic, outcome = creation
    if not isinstance(outcome, RequestRefusedError):
        return _success(call, topic, outcome)
    return CreatableTopicResult(
        name=topic.name,
        error_code=outcome.error,
        error_message=outcome.message,
        configs=() if call.version > 4 else None,
    )


def _charge(call: ServerCall[Any], partitions: int) -> None:
    call.charge_mutations(partitions, strict=call.version >= _FIRST_STRICT[type(call.request)])


def _success(
    call: ServerCall[CreateTopicsRequest], new: TopicToCreate, records: Sequence[MetadataRecord]
) -> CreatableTopicResult:
    topic = next(each for each in records if isinstance(each, TopicRecord))
    facts: dict[str, Any] = {"name": topic.name, "topic_id": topic.topic_id, "error_message": None}
    if not call.allows(AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, topic.name):
        return CreatableTopicResult(**facts, topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, configs=None)
    partitions = [each for each in records if isinstance(each, PartitionRecord)]
    own = {name: value or "" for name, value in new.configs.items()}
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
            for entry in topic_entries(call.cluster.image, call.cluster.configs, own)
        ),
    )


def _delete_topics(call: ServerCall[DeleteTopicsRequest]) -> None:
    request = call.request
    wanted = request.topics or tuple(DeleteTopicState(name=name) for name in request.topic_names)
    if not call.cluster.configs.flag("delete.topic.enable"):
        error = ErrorCode.TOPIC_DELETION_DISABLED if call.version >= 3 else ErrorCode.INVALID_REQUEST
        raise RequestRefusedError(error, "This version does not support topic deletion." if call.version < 3 else None)
    keys = Counter((each.name, each.topic_id) for each in wanted)
    # A topic that is named twice has one result; entries that name no topic have one result each.
    answered = [*filterfalse(_names_one, wanted), *dict.fromkeys(filter(_names_one, wanted))]
    call.respond(DeleteTopicsResponse(responses=tuple(_deleted(call, each, keys) for each in answered)))


def _names_one(wanted: DeleteTopicState) -> bool:
    """Return whether an entry has exactly one of topic name and topic id."""
    return (wanted.name is None) != (wanted.topic_id == ZERO_UUID)


def _deleted(
    call: ServerCall[DeleteTopicsRequest], wanted: DeleteTopicState, keys: Counter[tuple[str | None, Any]]
) -> DeletableTopicResult:
    name, topic_id = wanted.name, wanted.topic_id
    try:
        name = _shown_name(call, wanted)
        topic = _topic_to_delete(call, wanted, keys)
        name, topic_id = topic.name, topic.id
        _charge(call, len(topic.partitions))
    except RequestRefusedError as error:
        return DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.error, error_message=error.message)
    call.cluster.commit(delete_topic(topic))
    return DeletableTopicResult(name=name, topic_id=topic_id)


def _shown_name(call: ServerCall[DeleteTopicsRequest], wanted: DeleteTopicState) -> str | None:
    """Return the name for a response: the requested name, or the name of an id if the client may see it."""
    topic = call.cluster.image.topics_by_id.get(wanted.topic_id)
    if wanted.name is not None or topic is None or not _may_delete(call, AclOperation.DESCRIBE, topic.name):
        return wanted.name
    return topic.name


def _may_delete(call: ServerCall[DeleteTopicsRequest], operation: AclOperation, name: str) -> bool:
    """Return whether the client has this permission on a topic, or may delete all topics of the cluster."""
    return call.allows_cluster(AclOperation.DELETE) or call.allows(operation, ResourceType.TOPIC, name)


def _topic_to_delete(
    call: ServerCall[DeleteTopicsRequest], wanted: DeleteTopicState, keys: Counter[tuple[str | None, Any]]
) -> TopicImage:
    image, by_id = call.cluster.image, wanted.topic_id != ZERO_UUID
    if by_id and wanted.name is not None:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if not by_id and wanted.name is None:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if keys[wanted.name, wanted.topic_id] > 1:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, f"Duplicate topic {'id' if by_id else 'name'}.")
    topic = image.topics_by_id.get(wanted.topic_id) if by_id else image.topics.get(wanted.name or "")
    name = topic.name if topic else wanted.name
    if name is not None and not _may_delete(call, AclOperation.DESCRIBE, name):
        raise RequestRefusedError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is not None and not _may_delete(call, AclOperation.DELETE, topic.name):
        raise RequestRefusedError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        raise RequestRefusedError(error, ERROR_TEXTS[error])
    return topic


def _create_partitions(call: ServerCall[CreatePartitionsRequest]) -> None:
    counts = Counter(each.name for each in call.request.topics)
    unique = {each.name: each for each in call.request.topics}
    added = sum(_added(call, each) for each in unique.values() if counts[each.name] == 1)
    if added > MAX_PARTITIONS:
        message = "Excessively large number of additional partitions per request."
        raise RequestRefusedError(ErrorCode.POLICY_VIOLATION, message)
    call.respond(CreatePartitionsResponse(results=tuple(_grown(call, unique.values(), counts))))


def _added(call: ServerCall[CreatePartitionsRequest], asked: CreatePartitionsTopic) -> int:
    """Return the number of partitions to add to a topic; 0 if the client may not change it."""
    topic = call.cluster.image.topics.get(asked.name)
    if topic is None or not call.allows(AclOperation.ALTER, ResourceType.TOPIC, asked.name):
        return 0
    return max(0, asked.count - len(topic.partitions))


def _grown(
    call: ServerCall[CreatePartitionsRequest], asked: Any, counts: Counter[str]
) -> Iterator[CreatePartitionsTopicResult]:
    for each in asked:
        records = outcome_of(_new_partitions, call, each, counts[each.name])
        if isinstance(records, RequestRefusedError):
            yield CreatePartitionsTopicResult(name=each.name, error_code=records.error, error_message=records.message)
            continue
        if not call.request.validate_only:
            call.cluster.commit(records)
        yield CreatePartitionsTopicResult(name=each.name)


def _new_partitions(
    call: ServerCall[CreatePartitionsRequest], asked: CreatePartitionsTopic, times: int
) -> list[MetadataRecord]:
    if times > 1:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    call.require(AclOperation.ALTER, ResourceType.TOPIC, asked.name)
    topic = call.cluster.image.topics.get(asked.name)
    if topic is None:
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assignments = None if asked.assignments is None else [each.broker_ids for each in asked.assignments]
    records = add_partitions(call.cluster.image, topic, asked.count, assignments)
    _charge(call, len(records))
    return records


HANDLERS: Final = (
    ApiHandler(CreateTopicsRequest, _create_topics),
    ApiHandler(DeleteTopicsRequest, _delete_topics),
    ApiHandler(CreatePartitionsRequest, _create_partitions),
)
