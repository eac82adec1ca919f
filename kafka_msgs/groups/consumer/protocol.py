"""The consumer group protocol (KIP-848) for the coordinator: its apis, records and hooks."""

from __future__ import annotations

from typing import Final

from kafka_msgs.groups.consumer.appliers import APPLIERS
from kafka_msgs.groups.consumer.describe import describe, refuse_description
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.heartbeat import check_heartbeat, heartbeat
from kafka_msgs.groups.consumer.member import MemberState
from kafka_msgs.groups.consumer.membership import fence_member
from kafka_msgs.groups.consumer.regex_subscriptions import track_topics_image
from kafka_msgs.groups.group_protocol import GroupProtocol, MultiGroupApi, SingleGroupApi
from kafka_msgs.groups.modern_group import schedule_rebalance, schedule_session
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_msgs.messages.consumer_group_describe_response import ConsumerGroupDescribeResponse
from kafka_msgs.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_msgs.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse

__all__ = ["PROTOCOL"]


def _loaded(op: OperationContext, group: ConsumerGroup) -> None:
    """Restart each member's session timer, and the rebalance timer of each member with partitions to revoke."""
    timeout = op.group_config(group.group_id).consumer_session_timeout_ms
    for member_id in iter_kafka_order(group.members):
        member = group.members[member_id]
        schedule_session(op, group, member_id, timeout, fence_member)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            rebalance = member.metadata.rebalance_timeout_ms
            schedule_rebalance(op, group, member_id, member.epoch, rebalance, fence_member)


PROTOCOL: Final = GroupProtocol(
    apis=(
        SingleGroupApi(
            request=ConsumerGroupHeartbeatRequest,
            group=lambda request: request.group_id,
            handle=heartbeat,
            refuse=lambda request, error, version: ConsumerGroupHeartbeatResponse(
                error_code=error.error, error_message=error.message
            ),
            check=check_heartbeat,
        ),
        MultiGroupApi(
            request=ConsumerGroupDescribeRequest,
            groups=lambda request, version: ((group_id or None, group_id) for group_id in request.group_ids),
            handle=describe,
            refuse=refuse_description,
            respond=lambda request, groups, version: ConsumerGroupDescribeResponse(groups=tuple(groups)),
        ),
    ),
    appliers=APPLIERS,
    on_loaded={"consumer": _loaded},
    on_image_changed=(track_topics_image,),
    on_topics_changed={"consumer": lambda op, group: group.request_refresh()},
)
"""The consumer group protocol, for the coordinator."""
