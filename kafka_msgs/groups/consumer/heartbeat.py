"""ConsumerGroupHeartbeat: a member joins, reports, gets its assignment, and leaves (KIP-848)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import GroupError
from kafka_msgs.groups.assignors.java_hash_order import sorted_strings
from kafka_msgs.groups.consumer.current_assignment import Reported
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import NO_PARTITIONS, RECORDS, ConsumerGroupMember, Owned
from kafka_msgs.groups.consumer.membership import MemberUpdate, fence_members, get_or_create_group, new_member_id
from kafka_msgs.groups.consumer.subscription import update_subscription
from kafka_msgs.groups.consumer.target_assignment import reconcile_member, update_target
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.member_timers import schedule_session
from kafka_msgs.groups.modern_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    check_capacity,
    check_names,
    find_group,
    invalid_request,
)
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.partition_assignment import topic_partitions
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from kafka_msgs.messages.consumer_group_heartbeat_response import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_msgs.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue

__all__ = ["check_heartbeat", "heartbeat"]

_CLIENT_MAKES_ID: Final = 1


def check_heartbeat(services: GroupServices, context: RequestContext, request: ConsumerGroupHeartbeatRequest) -> None:
    """Raise ``GroupError`` for an invalid request, whatever the state of the group."""
    epoch = request.member_epoch
    needs_id = context.version >= _CLIENT_MAKES_ID or epoch > 0 or epoch == LEAVE_EPOCH
    check_names(
        ("MemberId", request.member_id if needs_id else None),
        ("GroupId", request.group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    )
    if epoch == JOIN_EPOCH:
        _check_first(request)
    elif epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        raise invalid_request("InstanceId can't be null.")
    elif epoch < STATIC_LEAVE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")
    known = services.config.group_consumer_assignors
    if request.server_assignor is not None and request.server_assignor not in known:
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(known)}."
        raise GroupError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)


def _check_first(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise invalid_request("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise invalid_request("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise invalid_request("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def heartbeat(
    op: OperationContext, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Respond to a heartbeat. Raises ``GroupError``."""
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return _leave(op, request)
    joins = request.member_epoch == JOIN_EPOCH
    written: list[Record] = []
    if joins:
        group, written = get_or_create_group(op, request.group_id)
    else:
        group = find_group(op, ConsumerGroup, request.group_id, "Consumer group")
    check_capacity(group, op.config.group_consumer_max_size, request.member_id, request.instance_id)
    member_id = request.member_id or new_member_id(op)
    reported = _reported(request)
    member = RECORDS.member_of_heartbeat(
        group, request, member_id, written, lambda member: _is_subset(reported, member.assigned)
    )
    update = MemberUpdate(
        op=op,
        group=group,
        old=member,
        new=evolve(member, metadata=_metadata(member, context, request)),
        written=written,
    )
    if joins and request.instance_id is not None:
        replaced = group.static_members.get(request.instance_id, member_id)
        if replaced != member_id:
            update.replaced = replaced
            update.freed = None if op.quirks.rejoin_counts_twice else group.members.get(member_id)
    change = update_subscription(update)
    goal = update_target(update, change)
    updated = reconcile_member(update, goal, changed=change.subscription, reported=reported)
    op.emit_all(written)
    config = op.group_config(request.group_id)
    schedule_session(op, group, member_id, config.consumer_session_timeout_ms, fence_members)
    shows = joins or _is_full(request) or member.assigned != updated.assigned
    return ConsumerGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=config.consumer_heartbeat_interval_ms,
        assignment=Assignment(topic_partitions=topic_partitions(TopicPartitions, updated.assigned)) if shows else None,
    )


def _is_full(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Return whether a heartbeat has all fields, as after an error. Its response then includes the assignment."""
    return (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )


def _is_subset(reported: Reported | None, owned: Owned) -> bool:
    if reported is None:
        return False
    return all(
        topic in owned and all(partition in owned[topic] for partition in partitions)
        for topic, partitions in reported.items()
    )


def _reported(request: ConsumerGroupHeartbeatRequest) -> Reported | None:
    """Return the partitions that a member reports, or None if the request omits them."""
    if request.topic_partitions is None:
        return None
    reported: dict[UUID, list[int]] = {}
    for topic in request.topic_partitions:
        reported.setdefault(topic.topic_id, []).extend(topic.partitions)
    return reported


def _metadata(
    member: ConsumerGroupMember, context: RequestContext, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupMemberMetadataValue:
    """Return the metadata of a member. Fields that a request omits keep their values."""
    old = member.metadata
    names, regex, timeout = request.subscribed_topic_names, request.subscribed_topic_regex, request.rebalance_timeout_ms
    return ConsumerGroupMemberMetadataValue(
        instance_id=old.instance_id if request.instance_id is None else request.instance_id,
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        subscribed_topic_names=old.subscribed_topic_names if names is None else tuple(sorted_strings(set(names))),
        subscribed_topic_regex=old.subscribed_topic_regex if regex is None else regex,
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout == -1 else timeout,
        server_assignor=old.server_assignor if request.server_assignor is None else request.server_assignor,
        classic_member_metadata=None,
    )


def _leave(op: OperationContext, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    group = find_group(op, ConsumerGroup, request.group_id)
    member = group.sender(request.member_id, request.instance_id)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        assigned = {topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()}
        left = evolve(member, epoch=STATIC_LEAVE_EPOCH, assigned=assigned, revoking=NO_PARTITIONS)
        op.emit(*RECORDS.current(request.group_id, left))
    else:
        fence_members(op, group, (member,))
    return ConsumerGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
