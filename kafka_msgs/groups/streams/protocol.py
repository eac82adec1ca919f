"""The streams group protocol as rows of the coordinator's tables."""

from __future__ import annotations

from typing import Final

from kafka_msgs.errors import GroupError
from kafka_msgs.groups.group_protocol import GroupProtocol, SingleGroupApi, TopicChange
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.streams.appliers import APPLIERS
from kafka_msgs.groups.streams.describe import DESCRIBE
from kafka_msgs.groups.streams.description_cleanup import clean_up
from kafka_msgs.groups.streams.extension import streams_extension
from kafka_msgs.groups.streams.fencing import loaded
from kafka_msgs.groups.streams.group import StreamsGroup
from kafka_msgs.groups.streams.heartbeat import heartbeat
from kafka_msgs.groups.streams.topic_creation import creation_failed
from kafka_msgs.groups.streams.topology_descriptions import UPDATE
from kafka_msgs.groups.streams.validation import check
from kafka_msgs.messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from kafka_msgs.messages.streams_group_heartbeat_response import StreamsGroupHeartbeatResponse

__all__ = ["PROTOCOL"]


def _refuse(request: StreamsGroupHeartbeatRequest, error: GroupError, version: int) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=error.error, error_message=error.message)


def _refresh(op: OperationContext, group: StreamsGroup) -> None:
    group.request_refresh()


def _refresh_patterns(op: OperationContext, change: TopicChange) -> None:
    """Resolve the topics again for all groups whose topologies have patterns."""
    if (extension := streams_extension(op)) is not None:
        for group in op.state.groups.values():
            if isinstance(group, StreamsGroup) and group.topology and extension.has_patterns(group.topology):
                group.request_refresh()


PROTOCOL: Final = GroupProtocol(
    apis=(
        SingleGroupApi(
            request=StreamsGroupHeartbeatRequest,
            group=lambda request: request.group_id,
            handle=heartbeat,
            refuse=_refuse,
            check=check,
        ),
        DESCRIBE,
        UPDATE,
    ),
    appliers=APPLIERS,
    on_loaded={"streams": loaded},
    on_image_changed=(_refresh_patterns,),
    on_topics_changed={"streams": _refresh},
    on_topic_creation_failed=creation_failed,
    cleanup=clean_up,
)
