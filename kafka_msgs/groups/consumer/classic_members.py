"""Members of the classic protocol in a consumer group: JoinGroup, and the handlers for this kind of group."""

from __future__ import annotations

from typing import Final

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DecodeError, GroupError
from kafka_msgs.errors.api import ApiError
from kafka_msgs.groups.assignors.java_hash_order import sorted_strings
from kafka_msgs.groups.classic_support import (
    ClassicMemberSupport,
    ClassicMetadata,
    refuse_unknown_member_id,
    requires_known_member_id,
    schedule_sync_timeout,
)
from kafka_msgs.groups.consumer.current_assignment import Reported
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import RECORDS, ConsumerGroupMember, MemberState
from kafka_msgs.groups.consumer.membership import MemberUpdate, fence_members, new_member_id
from kafka_msgs.groups.consumer.migration import (
    accepts_classic_members,
    classic_metadata,
    downgrade,
    may_downgrade_replacing,
)
from kafka_msgs.groups.consumer.subscription import update_subscription
from kafka_msgs.groups.consumer.target_assignment import previous_target, reconcile_member, update_target
from kafka_msgs.groups.consumer_protocol import CONSUMER_PROTOCOL, decode_subscription, encode_assignment
from kafka_msgs.groups.member_timers import join_timer_key
from kafka_msgs.groups.modern_group import check_capacity
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.request_context import RequestContext
from kafka_msgs.groups.runtime.future import Future
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.topics_image import TopicsImage
from kafka_msgs.messages.consumer_group_member_metadata_value import ConsumerGroupMemberMetadataValue
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse

__all__ = ["CLASSIC_SUPPORT"]


def _join(
    op: OperationContext, context: RequestContext, group: ConsumerGroup, request: JoinGroupRequest
) -> JoinGroupResponse | Future[JoinGroupResponse]:
    """Handle a classic protocol member that joins or rejoins a consumer group."""
    if not accepts_classic_members(op):
        message = (
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration is "
            "disabled."
        )
        raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message)
    member_id = request.member_id or new_member_id(op)
    instance_id = request.group_instance_id
    check_capacity(group, op.config.group_consumer_max_size, member_id, instance_id)
    _require_protocols(group, member_id, request)
    if requires_known_member_id(context, request):
        return refuse_unknown_member_id(op, member_id)
    updated, becomes_classic = _join_member(op, context, group, request, member_id)

    def joined(error: ApiError | None) -> None:
        if error is None:
            op.timers.cancel(join_timer_key(group.group_id, member_id))
            if not becomes_classic:
                schedule_sync_timeout(op, group, member_id, request, fence_members)

    op.on_committed(joined)
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=updated.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=request.protocols[0].name,
    )


def _join_member(
    op: OperationContext, context: RequestContext, group: ConsumerGroup, request: JoinGroupRequest, member_id: str
) -> tuple[ConsumerGroupMember, bool]:
    """Record the member and its next step. Return the updated member, and whether the group is downgraded."""
    replaced = group.static_member(request.group_instance_id)
    becomes_classic = may_downgrade_replacing(op, group, replaced)
    written: list[Record] = []
    member = _joining_member(group, member_id, request, replaced, written)
    subscription = _subscription(request)
    update = MemberUpdate(
        op=op,
        group=group,
        old=member,
        new=evolve(member, metadata=_metadata(member, context, request, subscription)),
        replaced=None if replaced is None or replaced.member_id == member_id else replaced.member_id,
        written=written,
    )
    change = update_subscription(update)
    rebalance = becomes_classic and group.assignment_epoch < change.epoch
    updated = update.new
    if not rebalance:
        goal = previous_target(update) if becomes_classic else update_target(update, change)
        reported = _reported(subscription, op.image)
        updated = reconcile_member(update, goal, changed=change.subscription, reported=reported)
    if becomes_classic:
        assert replaced is not None
        order = iter_kafka_order(group.members)
        staying = [group.members[each] for each in order if each != replaced.member_id]
        members = [member_id if each == replaced.member_id else each for each in order]
        downgrade(op, group, members, [*staying, updated], rebalance=rebalance, written=written)
    else:
        op.emit_all(written)
    return updated, becomes_classic


def _require_protocols(group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
    names = [protocol.name for protocol in request.protocols]
    if request.protocol_type == CONSUMER_PROTOCOL and any(
        group.classic_protocols.get(name, 0) == group.classic_members for name in names
    ):
        return
    raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")


def _joining_member(
    group: ConsumerGroup,
    member_id: str,
    request: JoinGroupRequest,
    existing: ConsumerGroupMember | None,
    written: list[Record],
) -> ConsumerGroupMember:
    instance_id = request.group_instance_id
    if instance_id is None or (not request.member_id and existing is None):
        return group.members.get(member_id) or ConsumerGroupMember(member_id=member_id)
    if request.member_id:
        return group.sender(member_id, instance_id)
    assert existing is not None
    return RECORDS.replacing_member(group, existing, member_id, written)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return decode_subscription(request.protocols[0].metadata)
    except DecodeError as error:
        message = "Malformed embedded consumer protocol in subscription deserialization."
        raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message) from error


def _metadata(
    member: ConsumerGroupMember,
    context: RequestContext,
    request: JoinGroupRequest,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerGroupMemberMetadataValue:
    old, timeout = member.metadata, request.rebalance_timeout_ms
    return ConsumerGroupMemberMetadataValue(
        instance_id=old.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or old.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        subscribed_topic_names=tuple(sorted_strings(set(subscription.topics))),
        subscribed_topic_regex="",
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout == -1 else timeout,
        server_assignor=old.server_assignor,
        classic_member_metadata=classic_metadata(request),
    )


def _reported(subscription: ConsumerProtocolSubscription, image: TopicsImage) -> Reported:
    return {
        image.topics[owned.topic].id: owned.partitions
        for owned in subscription.owned_partitions
        if owned.topic in image.topics
    }


def _assignment(
    op: OperationContext, group: ConsumerGroup, member: ConsumerGroupMember, classic: ClassicMetadata
) -> bytes:
    return encode_assignment(member.assigned, op.image, classic.supported_protocols[0].metadata)


def _may_advance(op: OperationContext, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Return whether all partitions that a member waits for are free."""
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        partition not in member.assigned.get(topic, ()) and group.owner_epoch(topic, partition) is not None
        for topic, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


CLASSIC_SUPPORT: Final = ClassicMemberSupport(
    join=_join, assignment=_assignment, may_advance=_may_advance, remove=fence_members
)
"""The support of consumer groups for members of the classic protocol."""
