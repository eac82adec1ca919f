"""The consumer group protocol (KIP-848) for the coordinator: its apis, appliers, descriptions and hooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.heartbeat import check_heartbeat, heartbeat
from kafka_msgs.groups.consumer.member import RECORDS, ConsumerGroupMember
from kafka_msgs.groups.consumer.membership import fence_members
from kafka_msgs.groups.consumer.regex_subscriptions import track_topics_image
from kafka_msgs.groups.consumer.subscription import preferred_assignor
from kafka_msgs.groups.group_protocol import GroupProtocol, SingleGroupApi, describe_api
from kafka_msgs.groups.member_timers import restart_timers
from kafka_msgs.groups.message_fields import with_fields_of
from kafka_msgs.groups.modern_group import find_group
from kafka_msgs.groups.modern_records import for_group
from kafka_msgs.groups.operation import OperationContext, ShardState
from kafka_msgs.groups.partition_assignment import described_partitions
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.runtime.undo_log import Applier, Changes
from kafka_msgs.message import Message
from kafka_msgs.messages import consumer_group_describe_response as response
from kafka_msgs.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from kafka_msgs.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_msgs.messages.consumer_group_partition_metadata_key import ConsumerGroupPartitionMetadataKey
from kafka_msgs.messages.consumer_group_regular_expression_key import ConsumerGroupRegularExpressionKey

__all__ = ["APPLIERS", "PROTOCOL"]

_CLASSIC = 0
_CONSUMER = 1


def _describe(op: OperationContext, request: ConsumerGroupDescribeRequest, group_id: str) -> response.DescribedGroup:
    group = find_group(op, ConsumerGroup, group_id)
    return response.DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name(),
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=preferred_assignor(op, group.assignors, partial(iter_kafka_order, group.assignors)),
        members=tuple(_member(op, group, group.members[member_id]) for member_id in iter_kafka_order(group.members)),
    )


def _member(op: OperationContext, group: ConsumerGroup, member: ConsumerGroupMember) -> response.Member:
    return with_fields_of(
        response.Member,
        member.metadata,
        member_id=member.member_id,
        member_epoch=member.epoch,
        assignment=_assignment(op, _owned(member)),
        target_assignment=_assignment(op, group.targets.get(member.member_id, {})),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _owned(member: ConsumerGroupMember) -> Mapping[UUID, Sequence[int]]:
    """Return a member's partitions, including partitions to revoke."""
    owned: dict[UUID, list[int]] = {}
    for part in (member.assigned, member.revoking):
        for topic, epochs in part.items():
            owned.setdefault(topic, []).extend(epochs)
    return owned


def _assignment(op: OperationContext, partitions: Mapping[UUID, Sequence[int]]) -> response.Assignment:
    return response.Assignment(topic_partitions=described_partitions(response.TopicPartitions, partitions, op.image))


def _partition_metadata(state: ShardState, changes: Changes, group: ConsumerGroup, key: Any, value: Any) -> None:
    changes.assign(group, "has_partition_metadata", value is not None)


def _regex(state: ShardState, changes: Changes, group: ConsumerGroup, key: Any, value: Any) -> None:
    group.resolve(state, changes, key.regular_expression, value)


APPLIERS: Final[Mapping[type[Message], Applier]] = {
    **RECORDS.appliers(ConsumerGroup),
    ConsumerGroupPartitionMetadataKey: for_group(ConsumerGroup, _partition_metadata),
    ConsumerGroupRegularExpressionKey: for_group(ConsumerGroup, _regex),
}
"""The effect of each record of a consumer group."""


def _loaded(op: OperationContext, group: ConsumerGroup) -> None:
    restart_timers(op, group, op.group_config(group.group_id).consumer_session_timeout_ms, fence_members)


PROTOCOL: Final = GroupProtocol(
    apis=(
        SingleGroupApi(request=ConsumerGroupHeartbeatRequest, handle=heartbeat, check=check_heartbeat),
        describe_api(ConsumerGroupDescribeRequest, response.DescribedGroup, _describe),
    ),
    appliers=APPLIERS,
    on_loaded={"consumer": _loaded},
    on_image_changed=(track_topics_image,),
    on_topics_changed={"consumer": lambda op, group: group.request_refresh()},
)
"""The consumer group protocol, for the coordinator."""
