"""Topic creation for clients, with the same checks, limits and quotas for every kind of request.

CreateTopics, Metadata auto-creation and the internal topics of Streams groups all use it. In Kafka all of them are
CreateTopics requests to the controller (``ControllerApis`` and ``ReplicationControlManager``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from kafka_msgs.broker.controller.topics import (
    MAX_PARTITIONS,
    TopicToCreate,
    check_new_name,
    check_not_reserved,
    topic_records,
)
from kafka_msgs.broker.handlers.response_parts import outcome_of
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.message import MetadataRecord
from kafka_msgs.messages.create_topics_request import CreatableTopic
from kafka_msgs.messages.partition_record import PartitionRecord

__all__ = ["Creation", "create_forwarded", "create_topics", "requested_topic"]

_STRICT_VERSION: Final = 6
"""The first version of CreateTopics that is refused if the client exceeds its ``controller_mutation_rate``."""


Creation: TypeAlias = tuple[TopicToCreate, list[MetadataRecord] | RequestRefusedError]
"""A topic, with its metadata records or the error."""


def requested_topic(topic: CreatableTopic) -> TopicToCreate:
    """Return the definition of a topic in a CreateTopics request."""
    return TopicToCreate(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(each.partition_index, each.broker_ids) for each in topic.assignments],
        configs={each.name: each.value for each in topic.configs},
    )


def create_topics(
    call: ServerCall[Any],
    topics: Sequence[TopicToCreate],
    *,
    version: int,
    validate_only: bool = False,
    forwarded: bool = False,
) -> list[Creation]:
    """Create topics for a client like a CreateTopics request of this version. Return the result for each distinct name.

    ``forwarded`` is True for a broker that sends the request on behalf of a client: the response then does not contain
    the client's throttle time. Raises ``RequestRefusedError`` with POLICY_VIOLATION for too many partitions.
    """
    counts = Counter(each.name for each in topics)
    unique = {each.name: each for each in topics}
    errors = {name: _forbidden(call, name, counts[name]) for name in unique}
    if sum(_partitions(call, each) for each in unique.values() if errors[each.name] is None) > MAX_PARTITIONS:
        raise RequestRefusedError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    # As in Kafka, all names are checked before any topic is created.
    errors = {name: error or outcome_of(check_new_name, call.cluster.image, name) for name, error in errors.items()}
    creations: list[Creation] = []
    for name, topic in unique.items():
        strict = version >= _STRICT_VERSION
        records = outcome_of(_records, call, topic, errors[name], strict=strict, forwarded=forwarded)
        if not validate_only and not isinstance(records, RequestRefusedError):
            call.cluster.commit(records)
        creations.append((topic, records))
    return creations


def create_forwarded(call: ServerCall[Any], topics: Sequence[TopicToCreate]) -> dict[str, RequestRefusedError]:
    """Create topics that a client needs. Return the errors by name."""
    try:
        creations = create_topics(call, topics, version=_STRICT_VERSION, forwarded=True)
    except RequestRefusedError as error:
        return {each.name: error for each in topics}
    return {topic.name: outcome for topic, outcome in creations if isinstance(outcome, RequestRefusedError)}


def _records(
    call: ServerCall[Any], topic: TopicToCreate, error: RequestRefusedError | None, *, strict: bool, forwarded: bool
) -> list[MetadataRecord]:
    if error is not None:
        raise error
    records = topic_records(call.cluster.image, call.cluster.configs, call.cluster.new_id, topic)
    partitions = sum(isinstance(each, PartitionRecord) for each in records)
    call.charge_mutations(partitions, strict=strict, forwarded=forwarded)
    return records


def _partitions(call: ServerCall[Any], topic: TopicToCreate) -> int:
    """Return the number of partitions of a new topic."""
    if topic.assignments:
        return len(topic.assignments)
    default = call.cluster.configs.number("num.partitions")
    return default if topic.num_partitions == -1 else max(0, topic.num_partitions)


def _forbidden(call: ServerCall[Any], name: str, times: int) -> RequestRefusedError | None:
    """Return the reason why the client may not create a topic that occurs ``times`` times in the request, or None."""
    if times > 1:
        return RequestRefusedError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if error := outcome_of(check_not_reserved, name):
        return error
    if not (call.allows_cluster(AclOperation.CREATE) or call.allows(AclOperation.CREATE, ResourceType.TOPIC, name)):
        return RequestRefusedError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return None
