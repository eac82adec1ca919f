"""The APIs of Streams groups (KIP-1071, KIP-1331): authorization, and the internal topics that a group needs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from attrs import evolve

from kafka_msgs.broker.controller.internal_topic_configs import is_internal
from kafka_msgs.broker.controller.topics import check_topic_name
from kafka_msgs.broker.coordinators.group_service import GroupCoordinatorService
from kafka_msgs.broker.handlers.groups import DescribeGroupsApi, describe
from kafka_msgs.broker.handlers.topic_creation import create_forwarded, requested_topic
from kafka_msgs.broker.server_call import ApiHandler, ServerCall
from kafka_msgs.enums import AclOperation, ResourceType
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import RequestRefusedError
from kafka_msgs.groups.runtime.output import Reply
from kafka_msgs.groups.streams.configured_topology import StatusCode
from kafka_msgs.message import Response
from kafka_msgs.messages.streams_group_describe_request import StreamsGroupDescribeRequest
from kafka_msgs.messages.streams_group_describe_response import DescribedGroup
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import Status
from kafka_msgs.messages.streams_group_topology_description_update_request import (
    StreamsGroupTopologyDescriptionUpdateRequest,
)

__all__ = ["HANDLERS"]

_MOST_SHOWN: Final = 3
"""The maximum number of failed topics that a group's status names."""


def _heartbeat(call: ServerCall[StreamsGroupHeartbeatRequest]) -> None:
    request = call.request
    call.require_group(request.group_id)
    if request.topology is not None:
        names = list(dict.fromkeys(_topics(request.topology.subtopologies)))
        if internal := [name for name in names if is_internal(name)]:
            _refuse(f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited.")
        if invalid := [name for name in names if not _is_topic_name(name)]:
            _refuse(f"Topic names {','.join(invalid)} are not valid topic names.")
        strict = call.cluster.config.profile.streams.stricter_permissions
        call.require(AclOperation.DESCRIBE_CONFIGS if strict else AclOperation.DESCRIBE, ResourceType.TOPIC, *names)
    host = GroupCoordinatorService.of_call(call)
    host.handle_then(call, request, lambda answer: call.respond(_with_topics(call, answer)))


def _with_topics(call: ServerCall[Any], answer: Reply) -> Response:
    """Create the internal topics that an answer requires. Return the response; its status reports failures.

    Kafka creates them in the background and reports failures in the next response.
    """
    names = [each.name for each in answer.topics_to_create]
    if not names:
        return answer.response
    if not call.allows_cluster(AclOperation.CREATE):
        refused = [name for name in names if not call.allows(AclOperation.CREATE, ResourceType.TOPIC, name)]
        if refused:
            return _with_detail(answer.response, f"Unauthorized to CREATE on topics {', '.join(refused)}.")
    failures = [
        f"{name} ({error.message})"
        for name, error in create_forwarded(call, [requested_topic(each) for each in answer.topics_to_create]).items()
        if error.error is not ErrorCode.TOPIC_ALREADY_EXISTS
    ]
    if not failures:
        return answer.response
    GroupCoordinatorService.of_call(call).creation_failed(call.request.group_id, ", ".join(failures))
    shown = ", ".join(failures[:_MOST_SHOWN])
    more = f" and {len(failures) - _MOST_SHOWN} more" if len(failures) > _MOST_SHOWN else ""
    return _with_detail(answer.response, f"Creation failed: {shown}{more}.")


def _with_detail(response: Any, detail: str) -> Response:
    """Add a detail to the status for missing internal topics."""
    statuses = list(response.status or ())
    code = StatusCode.MISSING_INTERNAL_TOPICS
    for index, each in enumerate(statuses):
        if each.status_code == code:
            statuses[index] = evolve(each, status_detail=f"{each.status_detail}; {detail}")
            break
    else:
        statuses.append(Status(status_code=code, status_detail=detail))
    shown: Response = evolve(response, status=tuple(statuses))
    return shown


def _refuse(message: str) -> None:
    raise RequestRefusedError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _is_topic_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except RequestRefusedError:
        return False
    return True


def _topics(subtopologies: tuple[Any, ...]) -> Iterator[str]:
    """Yield the topics that subtopologies name, in requests and in descriptions."""
    for each in subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        yield from (topic.name for topic in each.repartition_source_topics)
        yield from (topic.name for topic in each.state_changelog_topics)


def _described_topics(group: DescribedGroup) -> Iterator[str]:
    return iter(()) if group.topology is None else _topics(group.topology.subtopologies or ())


def _update_description(call: ServerCall[StreamsGroupTopologyDescriptionUpdateRequest]) -> None:
    call.require_group(call.request.group_id)
    GroupCoordinatorService.of_call(call).handle(call)


HANDLERS: Final = (
    ApiHandler(StreamsGroupHeartbeatRequest, _heartbeat),
    ApiHandler(
        StreamsGroupDescribeRequest,
        describe(
            DescribeGroupsApi(
                groups="group_ids",
                results="groups",
                stricter=AclOperation.READ,
                topics=_described_topics,
                hidden="The described group uses topics that the client is not authorized to describe.",
            )
        ),
    ),
    ApiHandler(StreamsGroupTopologyDescriptionUpdateRequest, _update_description),
)
