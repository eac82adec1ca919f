"""FindCoordinator: the broker that coordinates a group, a transactional id or a share partition.

The coordinator is the leader of a partition of an internal topic, which the first request creates. Kafka responds with
COORDINATOR_NOT_AVAILABLE while it creates the topic; here the topic exists immediately.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from kafka_msgs.broker.controller.internal_topic_configs import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from kafka_msgs.broker.coordinators.leadership import auto_create_topic, leader_of
from kafka_msgs.broker.handlers.partition_access import ERROR_TEXTS
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.broker.share import SharePartitionKey
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


def _may_see(kind: ResourceType, error: ErrorCode) -> Callable[[ServerCall[Any], str], None]:
    def check(call: ServerCall[Any], key: str) -> None:
        if not call.allows(AclOperation.DESCRIBE, kind, key):
            raise RequestRefusedError(error)

    return check


def _check_share(call: ServerCall[Any], key: str) -> None:
    if call.version < _SHARE_SINCE:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)
    call.require_cluster(AclOperation.CLUSTER_ACTION)
    if SharePartitionKey.parse(key) is None:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST)


class _Kind(NamedTuple):
    """A key type: its internal topic and its authorization check."""

    topic: str
    check: Callable[[ServerCall[Any], str], None]


_KINDS: Final[Mapping[int, _Kind]] = {
    0: _Kind(CONSUMER_OFFSETS, _may_see(ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED)),
    1: _Kind(
        TRANSACTION_STATE,
        _may_see(ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    ),
    2: _Kind(SHARE_GROUP_STATE, _check_share),
}
"""The key types, by Kafka's numbers (``CoordinatorType``)."""


def _find(call: ServerCall[FindCoordinatorRequest]) -> None:
    request = call.request
    if request.key_type not in _KINDS:
        raise RequestRefusedError(ErrorCode.INVALID_REQUEST, ERROR_TEXTS[ErrorCode.INVALID_REQUEST])
    if call.version < _SEVERAL_SINCE:
        found = _found(call, request.key)
        call.respond(
            FindCoordinatorResponse(
                error_code=found.error_code,
                error_message=ERROR_TEXTS.get(ErrorCode(found.error_code)) if found.error_code else "NONE",
                node_id=found.node_id,
                host=found.host,
                port=found.port,
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
    kind = _KINDS[call.request.key_type]
    kind.check(call, key)
    image = call.cluster.image
    if kind.topic not in image.topics:
        auto_create_topic(call.cluster, kind.topic)
    topic = image.topics.get(kind.topic)
    leader = None
    if topic is not None:
        leader = leader_of(call.cluster, kind.topic, partition_for_key(key, len(topic.partitions)))
    if leader is None or call.session.listener.name not in image.brokers[leader].endpoints:
        raise RequestRefusedError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return leader


HANDLERS: Final = (ApiHandler(FindCoordinatorRequest, _find),)
