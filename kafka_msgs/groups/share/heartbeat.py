"""ShareGroupHeartbeat: a member joins, reports, gets its assignment, and leaves (KIP-932)."""

from __future__ import annotations

from typing import NoReturn

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import AssignorError, GroupError
from kafka_msgs.groups.assignors.java_hash_order import copy_capacity, hash_map_order, map_copy_capacity, string_key
from kafka_msgs.groups.assignors.simple import assign_simple
from kafka_msgs.groups.assignors.spec import GroupSpec, TopicSubscription
from kafka_msgs.groups.assignors.spec import MemberSpec as AssignorMember
from kafka_msgs.groups.group_operation import GroupServices
from kafka_msgs.groups.metrics import SHARE_REBALANCES
from kafka_msgs.groups.modern_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    can_compute_assignment,
    check_capacity,
    fenced_epoch,
    find_group,
    schedule_session,
    session_timer_key,
)
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.share.group import (
    Partitions,
    ShareGroup,
    ShareMember,
    emit_current_assignment,
    emit_epoch,
    emit_member,
    emit_removal,
    emit_target,
    emit_target_metadata,
)
from kafka_msgs.groups.share.initialization import has_unassigned, initialize, initialized_partitions
from kafka_msgs.groups.topics_image import TopicsImage, group_hash
from kafka_msgs.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from kafka_msgs.messages.share_group_heartbeat_response import (
    Assignment,
    ShareGroupHeartbeatResponse,
    TopicPartitions,
)
from kafka_msgs.messages.share_group_member_metadata_value import ShareGroupMemberMetadataValue

__all__ = ["check_heartbeat", "fence_member", "heartbeat"]


def check_heartbeat(services: GroupServices, context: RequestContext, request: ShareGroupHeartbeatRequest) -> None:
    """Raise ``GroupError`` for an invalid request, whatever the state of the group."""
    for value, name in ((request.member_id, "MemberId"), (request.group_id, "GroupId"), (request.rack_id, "RackId")):
        if value is not None and not value.strip():
            _refuse(f"{name} can't be empty.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        _refuse("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        _refuse("MemberEpoch is invalid.")


def _refuse(message: str) -> NoReturn:
    raise GroupError(ErrorCode.INVALID_REQUEST, message)


def heartbeat(
    op: OperationContext, context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    """Respond to a heartbeat. Raises ``GroupError``."""
    if request.member_epoch == LEAVE_EPOCH:
        group = find_group(op, ShareGroup, request.group_id)
        fence_member(op, group, group.member(request.member_id))
        return ShareGroupHeartbeatResponse(member_id=request.member_id, member_epoch=request.member_epoch)
    joins = request.member_epoch == JOIN_EPOCH
    exists = request.group_id in op.state.groups
    group = (
        ShareGroup(request.group_id)
        if joins and not exists
        else find_group(op, ShareGroup, request.group_id, "Share group")
    )
    member = _member(op, group, request)
    updated = evolve(member, metadata=_metadata(member, context, request))
    ready = group.assignment_epoch >= group.epoch and has_unassigned(group)
    heterogeneous, names = group.heterogeneous, iter_kafka_order(group.topics)
    if updated.metadata != member.metadata:
        emit_member(op, request.group_id, updated)
        group = find_group(op, ShareGroup, request.group_id)
    bump = ready or updated.metadata.subscribed_topic_names != member.metadata.subscribed_topic_names
    if bump or group.needs_refresh(op.now):
        heterogeneous, names = group.is_heterogeneous(), iter_kafka_order(group.topics)
        bump = _update_epoch(op, group, bump, exists)
    target_epoch, target = _update_target(op, group, updated, heterogeneous)
    updated = _approach(op, group, updated, target_epoch, target, bump)
    config = op.group_config(request.group_id)
    schedule_session(op, group, request.member_id, config.share_session_timeout_ms, fence_member)
    initialize(op, group, names)
    shows = joins or request.subscribed_topic_names is not None or not _same(member.assigned, updated.assigned)
    return ShareGroupHeartbeatResponse(
        member_id=updated.member_id,
        member_epoch=updated.epoch,
        heartbeat_interval_ms=config.share_heartbeat_interval_ms,
        assignment=_assignment(updated.assigned) if shows else None,
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
        subscribed_topic_names=(
            old.subscribed_topic_names if names is None else tuple(sorted(set(names), key=string_key))
        ),
    )


def _update_epoch(op: OperationContext, group: ShareGroup, bump: bool, exists: bool) -> bool:
    """Give the group a new epoch if ``bump`` is set or its topics changed; return whether it got one."""
    metadata_hash = group_hash(op.image, group.topics)
    bump = bump or metadata_hash != group.metadata_hash
    if bump:
        emit_epoch(op, group.group_id, group.epoch + 1, metadata_hash)
        op.count_metric(SHARE_REBALANCES)
    if exists:
        group.refreshed(op.now)
    return bump


def _update_target(
    op: OperationContext, group: ShareGroup, member: ShareMember, heterogeneous: bool
) -> tuple[int, Partitions]:
    """Compute the target assignment if it is due; return its epoch, and the member's partitions."""
    interval = op.group_config(group.group_id).share_assignment_interval_ms
    if group.assignment_epoch >= group.epoch or not can_compute_assignment(group, interval, op.now):
        return group.assignment_epoch, group.targets.get(member.member_id, {})
    order = hash_map_order(iter_kafka_order(group.members))
    spec = GroupSpec(
        members={
            member_id: AssignorMember(
                subscription=_subscription(group.members[member_id], op.image),
                assigned=group.targets.get(member_id, {}),
            )
            for member_id in order
        },
        partitions={topic.id: topic.partitions for topic in op.image.topics.values()},
        homogeneous=not heterogeneous,
        assignable=initialized_partitions(group),
    )
    try:
        assignment = assign_simple(spec)
    except AssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {group.epoch}: {error}"
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
    for member_id in order:
        target = assignment.get(member_id, {})
        old = group.targets.get(member_id)
        if old is None or not _same(target, old):
            emit_target(op, group.group_id, member_id, target)
    emit_target_metadata(op, group.group_id, group.epoch, op.now)
    return group.epoch, assignment.get(member.member_id, {})


def _subscription(member: ShareMember, image: TopicsImage) -> TopicSubscription:
    names = member.metadata.subscribed_topic_names
    ordered = hash_map_order(names, capacity=copy_capacity(len(names)))
    return TopicSubscription(tuple(image.topics[name].id for name in ordered if name in image.topics), len(names))


def _approach(
    op: OperationContext, group: ShareGroup, member: ShareMember, epoch: int, target: Partitions, changed: bool
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
    if member.epoch != epoch or not _same(after.assigned, member.assigned):
        emit_current_assignment(op, group.group_id, after)
    return after


def fence_member(op: OperationContext, group: ShareGroup, member: ShareMember) -> None:
    """Remove a member that left or missed its session timeout."""
    epoch, is_last = group.epoch + 1, len(group.members) == 1
    emit_removal(op, group.group_id, member.member_id)
    emit_epoch(op, group.group_id, epoch, group_hash(op.image, group.topics))
    if is_last:
        emit_target_metadata(op, group.group_id, epoch, 0)
    op.stop_timer(session_timer_key(group.group_id, member.member_id))


def _same(one: Partitions, other: Partitions) -> bool:
    return one.keys() == other.keys() and all(set(one[topic]) == set(other[topic]) for topic in one)


def _assignment(assigned: Partitions) -> Assignment:
    return Assignment(
        topic_partitions=tuple(
            TopicPartitions(topic_id=topic, partitions=tuple(partitions)) for topic, partitions in assigned.items()
        )
    )
