"""FindCoordinator: the broker that coordinates a group, a transactional id or a share partition.

The coordinator is the leader of a partition of an internal topic, which the first request creates. Kafka responds with
COORDINATOR_NOT_AVAILABLE while it creates the topic; here the topic exists immediately.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kafka_msgs.broker.coordinators.leadership import auto_create_topic, leader_of
from kafka_msgs.broker.handlers.partition_access import ERROR_TEXTS
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.share import SharePartitionKey
from kafka_msgs.broker.struct_copies import copy_as
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.messages.find_coordinator_request import FindCoordinatorRequest
from kafka_msgs.messages.find_coordinator_response import Coordinator, FindCoordinatorResponse

__all__ = ["HANDLERS"]

_SEVERAL_SINCE: Final = 4
_SHARE_SINCE: Final = 6
"""The first versions with several keys per request, and with share partition keys."""


def _check_share(call: ServerCall[Any], key: str) -> None:
    if call.version < _SHARE_SINCE:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
    call.require_cluster(AclOperation.CLUSTER_ACTION)
    if SharePartitionKey.parse(key) is None:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)


_KINDS: Final[Mapping[int, tuple[str, ResourceType | None]]] = {
    0: (CONSUMER_OFFSETS, ResourceType.GROUP),
    1: (TRANSACTION_STATE, ResourceType.TRANSACTIONAL_ID),
    2: (SHARE_GROUP_STATE, None),
}
"""The internal topics and the ACL resource types of the key types, by Kafka's numbers (``CoordinatorType``)."""


def _find(call: ServerCall[FindCoordinatorRequest]) -> None:
    request = call.request
    if request.key_type not in _KINDS:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, ERROR_TEXTS[ErrorCode.INVALID_REQUEST])
    if call.version < _SEVERAL_SINCE:
        found = _found(call, request.key)
        call.respond(
            copy_as(
                FindCoordinatorResponse,
                found,
                error_message=ERROR_TEXTS.get(ErrorCode(found.error_code)) if found.error_code else "NONE",
            )
        )
        return
    call.respond(FindCoordinatorResponse(coordinators=tuple(_found(call, key) for key in request.coordinator_keys)))


def _found(call: ServerCall[FindCoordinatorRequest], key: str) -> Coordinator:
    try:
        leader = _leader(call, key)
    except RequestRefusedError as error:
        return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error.error)
    endpoint = call.cluster.image.brokers[leader].endpoints[call.session.listener.name]
    return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message="")


def _leader(call: ServerCall[FindCoordinatorRequest], key: str) -> int:
    topic_name, kind = _KINDS[call.request.key_type]
    if kind is None:
        _check_share(call, key)
    else:
        call.require(AclOperation.DESCRIBE, kind, key)
    image = call.cluster.image
    if topic_name not in image.topics:
        auto_create_topic(call.cluster, topic_name)
    topic = image.topics.get(topic_name)
    leader = None
    if topic is not None:
        leader = leader_of(call.cluster, topic_name, partition_for_key(key, len(topic.partitions)))
    if leader is None or call.session.listener.name not in image.brokers[leader].endpoints:
        raise RequestRefusedError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return leader


HANDLERS: Final = (ApiHandler(FindCoordinatorRequest, _find),)
