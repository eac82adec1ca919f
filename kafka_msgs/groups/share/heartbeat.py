"""ShareGroupHeartbeat: a member joins, reports, gets its assignment, and leaves (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from kafka_msgs.groups.assignors.java_hash_order import copy_capacity, hash_map_order, map_copy_capacity, sorted_strings
from kafka_msgs.groups.assignors.simple import assign_simple
from kafka_msgs.groups.assignors.spec import Partitions, TopicSubscription
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.member_timers import schedule_session
from kafka_msgs.groups.metrics import SHARE_REBALANCES
from kafka_msgs.groups.modern_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    can_compute_assignment,
    check_capacity,
    check_names,
    fenced_epoch,
    find_group,
    invalid_request,
    members_after,
)
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.partition_assignment import compute_target, same_partitions, topic_partitions
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.share.group import RECORDS, ShareGroup, ShareMember, is_heterogeneous, topics_after
from kafka_msgs.groups.share.initialization import has_unassigned, initialize, initialized_partitions
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_msgs.messages.share_group_heartbeat_response import Assignment, ShareGroupHeartbeatResponse, TopicPartitions
from kafka_msgs.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue

__all__ = ["check_heartbeat", "fence_members", "heartbeat"]


def check_heartbeat(services: GroupServices, context: RequestContext, request: ShareGroupHeartbeatRequest) -> None:
    """Raise ``GroupError`` for an invalid request, whatever the state of the group."""
    check_names(("MemberId", request.member_id), ("GroupId", request.group_id), ("RackId", request.rack_id))
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        raise invalid_request("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise invalid_request("MemberEpoch is invalid.")


def heartbeat(
    op: OperationContext, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    """Respond to a heartbeat. Raises ``GroupError``."""
    if request.member_epoch == LEAVE_EPOCH:
        group = find_group(op, ShareGroup, request.group_id)
        fence_members(op, group, (group.member(request.member_id),))
        return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    joins = request.member_epoch == JOIN_EPOCH
    if joins and request.group_id not in op.state.groups:
        group = ShareGroup(request.group_id)
    else:
        group = find_group(op, ShareGroup, request.group_id, "Share group")
    member = _member(op, group, request)
    updated = evolve(member, metadata=_metadata(member, context, request))
    written = [RECORDS.member(group.group_id, updated)] if updated.metadata != member.metadata else []
    bump = group.assignment_epoch >= group.epoch and has_unassigned(group)
    bump = bump or updated.metadata.subscribed_topic_names != member.metadata.subscribed_topic_names
    epoch, heterogeneous, names = group.epoch, group.heterogeneous, iter_kafka_order(group.topics)
    if bump or group.needs_refresh(op.now):
        before = group.members.get(member.member_id)
        topics = topics_after(group.topics, before, updated)
        heterogeneous = is_heterogeneous(topics, len(group.members) + (before is None))
        names = [*(name for name in names if name in topics), *(name for name in topics if name not in group.topics)]
        epoch = RECORDS.next_epoch(op, group, names, SHARE_REBALANCES, written, bump=bump)
    target_epoch, target = _next_target(op, group, updated, epoch, heterogeneous, written)
    updated = _approach(op, group, updated, target_epoch, target, epoch > group.epoch, written)
    op.emit_all(written)
    config = op.group_config(request.group_id)
    schedule_session(op, group, request.member_id, config.share_session_timeout_ms, fence_members)
    initialize(op, group, epoch, names)
    full = joins or request.subscribed_topic_names is not None
    shows = full or not same_partitions(member.assigned, updated.assigned)
    return ShareGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=config.share_heartbeat_interval_ms,
        assignment=Assignment(topic_partitions=topic_partitions(TopicPartitions, updated.assigned)) if shows else None,
    )


def _member(op: OperationContext, group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """Return the member that sent a heartbeat, or a new member if it joins."""
    member_id, epoch = request.member_id, request.member_epoch
    check_capacity(group, op.config.group_share_max_size, member_id)
    if epoch == JOIN_EPOCH:
        return group.members.get(member_id) or ShareMember(member_id=member_id)
    member = group.member(member_id)
    if epoch > member.epoch or epoch not in (member.epoch, member.previous_epoch):
        also = f", and it does not match the previous member epoch ({member.previous_epoch})"
        raise fenced_epoch("share", epoch, member.epoch, also if epoch < member.epoch else "")
    return member


def _metadata(
    member: ShareMember, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupMemberMetadataValue:
    old, names = member.metadata, request.subscribed_topic_names
    return ShareGroupMemberMetadataValue(
        rack_id=old.rack_id if request.rack_id is None else request.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        subscribed_topic_names=(old.subscribed_topic_names if names is None else tuple(sorted_strings(set(names)))),
    )


def _next_target(
    op: OperationContext, group: ShareGroup, member: ShareMember, epoch: int, heterogeneous: bool, written: list[Record]
) -> tuple[int, Partitions]:
    """Compute the target assignment if it is due; return its epoch, and the member's partitions."""
    interval = op.group_config(group.group_id).share_assignment_interval_ms
    if group.assignment_epoch >= epoch or not can_compute_assignment(group, interval, op.now):
        return group.assignment_epoch, group.targets.get(member.member_id, {})
    assignment, records = compute_target(
        op,
        group,
        RECORDS,
        epoch,
        assign_simple,
        members=members_after(group, member, None),
        targets=group.targets,
        subscription=lambda each: _subscription(each, op.image),
        homogeneous=not heterogeneous,
        assignable=initialized_partitions(group),
    )
    written += records
    return epoch, assignment.get(member.member_id, {})


def _subscription(member: ShareMember, image: TopicsImage) -> TopicSubscription:
    names = member.metadata.subscribed_topic_names
    ordered = hash_map_order(names, capacity=copy_capacity(len(names)))
    return TopicSubscription(tuple(image.topics[name].id for name in ordered if name in image.topics), len(names))


def _approach(
    op: OperationContext,
    group: ShareGroup,
    member: ShareMember,
    epoch: int,
    target: Partitions,
    changed: bool,
    written: list[Record],
) -> ShareMember:
    """Assign the target of a member immediately: share partitions have no single owner."""
    if not changed and member.is_reconciled_to(epoch):
        return member
    topics, names = op.image.by_id, member.metadata.subscribed_topic_names
    kept = [topic for topic in target if topic in topics and topics[topic].name in names]
    if len(kept) < len(target):
        kept = [topic for topic in hash_map_order(target, capacity=map_copy_capacity(len(target))) if topic in kept]
    after = evolve(member, assigned={topic: target[topic] for topic in kept})
    if member.epoch != epoch:
        after = evolve(after, epoch=epoch, previous_epoch=member.epoch, state=0)
    if member.epoch != epoch or not same_partitions(after.assigned, member.assigned):
        written.append(RECORDS.current(group.group_id, after))
    return after


def fence_members(op: OperationContext, group: ShareGroup, members: Sequence[ShareMember]) -> None:
    """Remove members that left or missed their session timeout."""
    RECORDS.remove_members(op, group, members)
