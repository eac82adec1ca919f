"""The share group protocol (KIP-932) for the coordinator: its apis, appliers and descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.group_protocol import GroupProtocol, SingleGroupApi, describe_api
from kafka_msgs.groups.member_timers import restart_timers
from kafka_msgs.groups.message_fields import with_fields_of
from kafka_msgs.groups.modern_group import find_group
from kafka_msgs.groups.modern_records import for_group
from kafka_msgs.groups.operation import OperationContext, ShardState
from kafka_msgs.groups.partition_assignment import described_partitions
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import Applier, Changes
from kafka_msgs.groups.share.group import RECORDS, ShareGroup, ShareMember
from kafka_msgs.groups.share.heartbeat import check_heartbeat, fence_members, heartbeat
from kafka_msgs.groups.share.initialization import forget_topics
from kafka_msgs.groups.share.offsets import OFFSET_APIS
from kafka_msgs.message import Message
from kafka_msgs.messages import share_group_describe_response as response
from kafka_msgs.messages.share_group_describe_request import ShareGroupDescribeRequest
from kafka_msgs.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_msgs.messages.share_group_state_partition_metadata_key import ShareGroupStatePartitionMetadataKey

__all__ = ["APPLIERS", "PROTOCOL"]


def _partitions(state: ShardState, changes: Changes, group: ShareGroup, key: Any, value: Any) -> None:
    changes.assign(group, "partitions", value)
    changes.assign(group, "written_ms", state.now)


APPLIERS: Final[Mapping[type[Message], Applier]] = {
    **RECORDS.appliers(ShareGroup),
    ShareGroupStatePartitionMetadataKey: for_group(ShareGroup, _partitions),
}
"""The effect of each record of a share group."""


_MESSAGES: Final[Mapping[int, str]] = {
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
}
"""The messages of descriptions for errors of the whole partition."""


def _refuse(group_id: str, error: GroupError, version: int) -> response.DescribedGroup:
    message = error.message or _MESSAGES.get(error.error)
    return response.DescribedGroup(error_code=error.error, error_message=message, group_id=group_id)


def _describe(op: OperationContext, request: ShareGroupDescribeRequest, group_id: str) -> response.DescribedGroup:
    group = find_group(op, ShareGroup, group_id)
    return response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=op.config.group_share_assignors[0],
        members=tuple(_member(op, group.members[member_id]) for member_id in iter_kafka_order(group.members)),
    )


def _member(op: OperationContext, member: ShareMember) -> response.Member:
    assigned = described_partitions(response.TopicPartitions, member.assigned, op.image)
    return with_fields_of(
        response.Member,
        member.metadata,
        member_id=member.member_id,
        member_epoch=member.epoch,
        assignment=response.Assignment(topic_partitions=assigned),
    )


def _loaded(op: OperationContext, group: ShareGroup) -> None:
    restart_timers(op, group, op.group_config(group.group_id).share_session_timeout_ms, fence_members)


PROTOCOL: Final = GroupProtocol(
    apis=(
        *OFFSET_APIS,
        SingleGroupApi(request=ShareGroupHeartbeatRequest, handle=heartbeat, check=check_heartbeat),
        describe_api(ShareGroupDescribeRequest, response.DescribedGroup, _describe, _refuse),
    ),
    appliers=APPLIERS,
    on_loaded={"share": _loaded},
    on_topics_deleted=(forget_topics,),
    on_topics_changed={"share": lambda op, group: group.request_refresh()},
)
"""The share group protocol, for the coordinator."""
