"""Requirements of the streams protocol: its features, and the permissions of a user (KIP-1071, "Required ACL").

In Kafka the broker checks these before it calls the coordinator (``KafkaApis``). A caller that performs these checks
itself keeps the default of ``RequestContext.allows``, which allows everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.config import CoordinatorConfig
from kafka_msgs.groups.group_protocol import RequestValidation
from kafka_msgs.groups.profiles import Profile, StreamsRules
from kafka_msgs.groups.request_context import CLUSTER_NAME, Permission, RequestContext
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest, Topology

__all__ = ["check_described", "check_enabled", "check_heartbeat", "may_create"]

_PROTOCOL: Final = "streams"


def check_enabled(config: CoordinatorConfig, profile: Profile, image: TopicsImage) -> None:
    """Refuse the protocol with ``UNSUPPORTED_VERSION`` if it is not enabled, or if its feature has too low a level."""
    name, lowest = ("group.version", 2) if profile.streams.requires_group_version else ("streams.version", 1)
    level = image.features.get(name)
    if _PROTOCOL not in config.group_coordinator_rebalance_protocols or (level is not None and level < lowest):
        raise GroupError(error=ErrorCode.UNSUPPORTED_VERSION)


def check_heartbeat(
    validation: RequestValidation, context: RequestContext, request: StreamsGroupHeartbeatRequest
) -> None:
    """Refuse a heartbeat of a user who may not read the group, or may not see a topic of the topology.

    Raises ``GroupError`` with ``GROUP_AUTHORIZATION_FAILED`` or ``TOPIC_AUTHORIZATION_FAILED``.
    """
    if not context.allows(Permission(AclOperation.READ, ResourceType.GROUP, request.group_id)):
        raise GroupError(error=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if request.topology is not None:
        _check_topics(validation.profile.streams, context, _names(request.topology))


def _names(topology: Topology) -> Iterable[str]:
    for subtopology in topology.subtopologies:
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            yield topic.name


def _check_topics(rules: StreamsRules, context: RequestContext, names: Iterable[str]) -> None:
    operation = AclOperation.DESCRIBE_CONFIGS if rules.stricter_permissions else AclOperation.DESCRIBE
    for name in dict.fromkeys(names):
        if not context.allows(Permission(operation, ResourceType.TOPIC, name)):
            raise GroupError(error=ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def check_described(rules: StreamsRules, context: RequestContext, group_id: str) -> None:
    """Refuse to describe a group with ``GROUP_AUTHORIZATION_FAILED`` to a user who may not see it."""
    operation = AclOperation.READ if rules.stricter_permissions else AclOperation.DESCRIBE
    if not context.allows(Permission(operation, ResourceType.GROUP, group_id)):
        raise GroupError(error=ErrorCode.GROUP_AUTHORIZATION_FAILED)


def may_create(context: RequestContext, names: Iterable[str]) -> bool:
    """Return whether a user may create topics: all topics of the cluster, or each of these."""
    everywhere = Permission(AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    return context.allows(everywhere) or all(
        context.allows(Permission(AclOperation.CREATE, ResourceType.TOPIC, name)) for name in names
    )
