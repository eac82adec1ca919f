"""Partition lookup for handlers of records: authorization, leadership, and the current leader."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from uuid import UUID

from attrs import frozen

from kafka_msgs.broker.controller.image import PartitionRegistration, TopicImage
from kafka_msgs.broker.server_call import ServerCall
from kafka_msgs.broker.storage import PartitionLog
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError

__all__ = ["ERROR_TEXTS", "LeaderPartition", "endpoints", "find_topic", "get_leader_partition"]

ERROR_TEXTS: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.INVALID_REQUEST: (
        "This most likely occurs because of a request being malformed by the client library or the message was sent to "
        "an incompatible broker. See the broker logs for more details."
    ),
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
}
"""Kafka's error messages, for APIs with an error message field."""


@frozen
class LeaderPartition:
    """A partition that this broker leads, or can serve reads for: its registration in the image, and its log."""

    state: PartitionRegistration
    log: PartitionLog


def find_topic(call: ServerCall[Any], name: str, topic_id: UUID | None, operation: AclOperation | None) -> TopicImage:
    """Return the topic with a name or an id.

    ``topic_id`` is None if the request contains names. ``operation`` is the required permission, or None. Raises
    ``RequestRefusedError`` with TOPIC_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_ID or UNKNOWN_TOPIC_OR_PARTITION. The error
    for an unauthorized name does not reveal whether the topic exists.
    """
    image = call.cluster.image
    topic = image.topics.get(name) if topic_id is None else image.topics_by_id.get(topic_id)
    if topic is None and topic_id is not None:
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_ID)
    if operation is not None:
        call.require(operation, ResourceType.TOPIC, topic.name if topic else name)
    if topic is None:
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return topic


def get_leader_partition(
    call: ServerCall[Any], topic: TopicImage, partition: int, leader_epoch: int = -1, *, or_followed: bool = False
) -> LeaderPartition:
    """Return a partition that this broker leads. ``leader_epoch`` is the client's epoch, or -1.

    ``or_followed`` also accepts a partition that the broker follows.

    Raises ``RequestRefusedError`` with UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH or
    UNKNOWN_LEADER_EPOCH.
    """
    cluster, broker_id = call.cluster, call.session.broker_id
    log = cluster.log_manager.get((topic.id, partition))
    state = cluster.image.partition(topic.id, partition)
    if log is None or state is None:
        raise RequestRefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    here = broker_id in state.replicas
    if here and leader_epoch not in (-1, state.leader_epoch):
        older = leader_epoch < state.leader_epoch
        raise RequestRefusedError(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
    if state.leader != broker_id and not (or_followed and here):
        raise RequestRefusedError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    return LeaderPartition(state, log)


def endpoints(call: ServerCall[Any], leaders: Iterable[int]) -> Iterator[dict[str, Any]]:
    """Yield the addresses of running leaders, as the fields of a ``NodeEndpoint`` (KIP-951)."""
    image = call.cluster.image
    for broker_id in sorted(set(leaders)):
        broker = image.brokers.get(broker_id)
        endpoint = broker.endpoints.get(call.session.listener.name) if broker and broker.alive else None
        if broker is not None and endpoint is not None:
            yield {"node_id": broker_id, "host": endpoint.host, "port": endpoint.port, "rack": broker.rack}
