"""Metadata: brokers and topics. A missing topic may be created automatically."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import evolve

from kafka_msgs.broker.controller.image import NO_LEADER, PartitionRegistration, TopicImage
from kafka_msgs.broker.controller.internal_topic_configs import is_internal
from kafka_msgs.broker.controller.topics import automatic_topic, missing_topic_error
from kafka_msgs.broker.handlers.topic_creation import create_forwarded
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from kafka_msgs.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_msgs.schema import ZERO_UUID

__all__ = ["HANDLERS"]

_FIRST_WITH_EMPTY_MEANING_NONE: Final = 1
_FIRST_WITH_IDS: Final = 12
_SHOWN: Final = (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.INVALID_REPLICATION_FACTOR)
"""The auto-creation errors that clients receive."""


def _metadata(call: ServerCall[MetadataRequest]) -> None:
    request, cluster = call.request, call.cluster
    if call.version < _FIRST_WITH_IDS:
        _check_names(request)
    operations: dict[str, Any] = {}
    if request.include_cluster_authorized_operations:
        operations["cluster_authorized_operations"] = call.operations(ResourceType.CLUSTER)
    call.respond(
        MetadataResponse(
            brokers=tuple(_brokers(call)),
            cluster_id=cluster.cluster_id,
            controller_id=cluster.controller_id if cluster.image.is_alive(cluster.controller_id) else -1,
            topics=tuple(_topics(call)),
            **operations,
        )
    )


def _check_names(request: MetadataRequest) -> None:
    """Raise ``RequestRefusedError`` for a topic without a name, or with an id in versions 10 and 11.

    These versions cannot look up ids.
    """
    for topic in request.topics or ():
        if topic.name is None or topic.topic_id != ZERO_UUID:
            raise RequestRefusedError(ErrorCode.INVALID_REQUEST)


def _brokers(call: ServerCall[MetadataRequest]) -> Iterator[MetadataResponseBroker]:
    for broker in call.cluster.image.alive():
        endpoint = broker.endpoints.get(call.session.listener.name)
        if endpoint is not None:
            yield MetadataResponseBroker(node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack)


def _topics(call: ServerCall[MetadataRequest]) -> Iterator[MetadataResponseTopic]:
    wanted = call.request.topics
    if wanted is None or (not wanted and call.version < _FIRST_WITH_EMPTY_MEANING_NONE):
        for topic in list(call.cluster.image.topics.values()):
            if call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
                yield _found(call, topic)
        return
    by_id = {each.topic_id: each for each in wanted if each.topic_id != ZERO_UUID}
    if by_id:
        yield from (_by_id(call, each) for each in by_id.values())
    elif any(each.name is None for each in wanted):
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        names = dict.fromkeys(each.name or "" for each in wanted)
        created = _auto_create(call, names)
        yield from (_by_name(call, name, created.get(name)) for name in names)


def _auto_create(call: ServerCall[MetadataRequest], names: Iterable[str]) -> dict[str, ErrorCode]:
    """Create the missing topics in one request to the controller. Return an error for each of them.

    Kafka creates them in the background and responds with UNKNOWN_TOPIC_OR_PARTITION or, for an invalid name, with
    INVALID_TOPIC_EXCEPTION. The client then retries.
    """
    cluster = call.cluster
    if not (call.request.allow_auto_topic_creation and cluster.configs.flag("auto.create.topics.enable")):
        return {}
    missing = [name for name in names if name not in cluster.image.topics and _may_create(call, name)]
    errors = create_forwarded(call, [automatic_topic(cluster.configs, name) for name in missing])
    shown = {name: ErrorCode(error.error) for name, error in errors.items() if error.error in _SHOWN}
    return dict.fromkeys(missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) | shown


def _may_create(call: ServerCall[MetadataRequest], name: str) -> bool:
    return call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, name) and (
        call.allows_cluster(AclOperation.CREATE) or call.allows(AclOperation.CREATE, ResourceType.TOPIC, name)
    )


def _by_id(call: ServerCall[MetadataRequest], wanted: MetadataRequestTopic) -> MetadataResponseTopic:
    topic = call.cluster.image.topics_by_id.get(wanted.topic_id)
    if topic is None:
        return _missing(ErrorCode.UNKNOWN_TOPIC_ID, None, wanted)
    if not call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
        return _missing(ErrorCode.TOPIC_AUTHORIZATION_FAILED, None, wanted)
    return _found(call, topic)


def _by_name(call: ServerCall[MetadataRequest], name: str, creation: ErrorCode | None) -> MetadataResponseTopic:
    """Return a topic. ``creation`` is the result of the auto-creation, or None if the topic was not created now."""
    topic = call.cluster.image.topics.get(name)
    if creation is not None:
        return _unknown(call, creation, name)
    if not call.allows(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
        return _missing(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)
    if topic is not None:
        return _found(call, topic)
    if not (call.request.allow_auto_topic_creation and call.cluster.configs.flag("auto.create.topics.enable")):
        return _unknown(call, missing_topic_error(name), name)
    return _missing(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name)


def _unknown(call: ServerCall[MetadataRequest], error: ErrorCode, name: str) -> MetadataResponseTopic:
    return evolve(_missing(error, name), **_operations(call, name))


def _operations(call: ServerCall[MetadataRequest], name: str) -> dict[str, Any]:
    if not call.request.include_topic_authorized_operations:
        return {}
    return {"topic_authorized_operations": call.operations(ResourceType.TOPIC, name)}


def _missing(error: ErrorCode, name: str | None, wanted: MetadataRequestTopic | None = None) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=error,
        name=name,
        topic_id=wanted.topic_id if wanted else ZERO_UUID,
        is_internal=name is not None and is_internal(name),
    )


def _found(call: ServerCall[MetadataRequest], topic: TopicImage) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=tuple(_partition(call, each) for each in topic.partitions),
        **_operations(call, topic.name),
    )


def _partition(call: ServerCall[MetadataRequest], state: PartitionRegistration) -> MetadataResponsePartition:
    image, listener = call.cluster.image, call.session.listener.name
    error = ErrorCode.NONE
    if state.leader == NO_LEADER or not image.is_alive(state.leader):
        error = ErrorCode.LEADER_NOT_AVAILABLE
    elif listener not in image.brokers[state.leader].endpoints:
        error = ErrorCode.LISTENER_NOT_FOUND
    return MetadataResponsePartition(
        error_code=error,
        partition_index=state.partition,
        leader_id=state.leader if error == ErrorCode.NONE else NO_LEADER,
        leader_epoch=state.leader_epoch,
        replica_nodes=state.replicas,
        isr_nodes=state.isr,
        offline_replicas=tuple(each for each in state.replicas if not image.is_alive(each)),
    )


HANDLERS: Final = (ApiHandler(MetadataRequest, _metadata),)
