"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Such a member gets what the group's own assignor gives it. It learns of a new target by REBALANCE_IN_PROGRESS, joins
again, and takes its assignment with SyncGroup. Its generation is its member epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DecodeError, GroupError
from kafka_msgs.groups.consumer.embedded import read_subscription, write_assignment
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import Member, MemberState
from kafka_msgs.groups.consumer.membership import (
    fence_member,
    fence_members,
    join_key,
    new_member_id,
    refuse_fenced_instance,
    replace_member,
    require_room,
    require_static_member,
    schedule_member_session,
    sorted_names,
    sync_key,
)
from kafka_msgs.groups.consumer.migration import Tombstones, accepts_classic_members, downgrade, may_downgrade_replacing
from kafka_msgs.groups.consumer.reconcile import Reported
from kafka_msgs.groups.consumer.subscription import View, update_subscription
from kafka_msgs.groups.consumer.targets import approach, last_target, update_target
from kafka_msgs.groups.context import RequestContext
from kafka_msgs.groups.image import Image
from kafka_msgs.groups.modern import member_timer
from kafka_msgs.groups.promise import Promise
from kafka_msgs.groups.timeline import walk
from kafka_msgs.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.heartbeat_request import HeartbeatRequest
from kafka_msgs.messages.heartbeat_response import HeartbeatResponse
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from kafka_msgs.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from kafka_msgs.messages.sync_group_request import SyncGroupRequest
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

if TYPE_CHECKING:
    from kafka_msgs.groups.transaction import Transaction

__all__ = ["classic_heartbeat", "classic_join", "classic_leave", "classic_sync"]

_PROTOCOL_TYPE = "consumer"
_FIRST_JOIN_IN_TWO_STEPS = 4


class _Before(NamedTuple):
    """A group before a request: its epoch, its members and its regular expressions in Kafka's order."""

    epoch: int
    members: Sequence[str]
    regexes: Sequence[str]


def classic_join(
    tx: Transaction, context: RequestContext, group: ConsumerGroup, request: JoinGroupRequest
) -> JoinGroupResponse | Promise[JoinGroupResponse]:
    """Let a member of the classic protocol join a consumer group, or join it again."""
    if not accepts_classic_members(tx):
        message = (
            f"Cannot join the consumer group {group.group_id} with the classic protocol because the group migration is "
            "disabled."
        )
        raise GroupError(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message=message)
    member_id = request.member_id or new_member_id(tx)
    instance_id = request.group_instance_id
    require_room(tx, group, member_id, instance_id)
    _require_protocols(group, member_id, request)
    if not request.member_id and instance_id is None and context.version >= _FIRST_JOIN_IN_TWO_STEPS:
        promise: Promise[JoinGroupResponse] = tx.promise()
        promise.resolve(JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED))
        return promise
    view = View.of(tx, group, member_id, instance_id)
    before = _Before(group.epoch, walk(group.members), walk(group.resolved))
    replaced = group.static_member(instance_id)
    becomes_classic = may_downgrade_replacing(tx, group, replaced)
    member = _joining_member(tx, group, member_id, request, replaced)
    subscription = _subscription(request)
    updated = evolve(member, metadata=_metadata(member, context, request, subscription))
    change = update_subscription(tx, group.group_id, view, member, updated)
    reported = _reported(subscription, tx.image)
    if becomes_classic and group.assignment_epoch < group.epoch:
        assert replaced is not None
        _become_classic(tx, group, before, replaced, updated, rebalance=True)
    elif becomes_classic:
        assert replaced is not None
        goal = last_target(group, view, updated)
        updated = approach(tx, group, updated, goal, changed=change.subscription, reported=reported, fence=fence_member)
        _become_classic(tx, group, before, replaced, updated, rebalance=False)
    else:
        goal = update_target(tx, group, view, change, updated)
        updated = approach(tx, group, updated, goal, changed=change.subscription, reported=reported, fence=fence_member)
    tx.after_append(lambda error: _joined(tx, group, request, member_id, error, becomes_classic))
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=updated.epoch,
        protocol_type=_PROTOCOL_TYPE,
        protocol_name=request.protocols[0].name,
    )


def _require_protocols(group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
    names = [protocol.name for protocol in request.protocols]
    if request.protocol_type == _PROTOCOL_TYPE and any(
        group.classic_protocols.get(name, 0) == group.classic_members for name in names
    ):
        return
    message = f"Member {member_id}'s protocols are not supported."
    raise GroupError(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message=message)


def _joining_member(
    tx: Transaction, group: ConsumerGroup, member_id: str, request: JoinGroupRequest, existing: Member | None
) -> Member:
    instance_id = request.group_instance_id
    if instance_id is None or (not request.member_id and existing is None):
        return group.members.get(member_id) or Member(member_id=member_id)
    if request.member_id:
        member = require_static_member(existing, instance_id)
        refuse_fenced_instance(member, member_id, instance_id)
        return member
    assert existing is not None
    return replace_member(tx, group, existing, member_id)


def _subscription(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    try:
        return read_subscription(request.protocols[0].metadata)
    except DecodeError as error:
        message = "Malformed embedded consumer protocol in subscription deserialization."
        raise GroupError(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message=message) from error


def _metadata(
    member: Member, context: RequestContext, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription
) -> ConsumerGroupMemberMetadataValue:
    old, timeout = member.metadata, request.rebalance_timeout_ms
    return ConsumerGroupMemberMetadataValue(
        instance_id=old.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or old.rack_id,
        client_id=context.client_id,
        client_host=context.client_host,
        subscribed_topic_names=sorted_names(subscription.topics),
        subscribed_topic_regex="",
        rebalance_timeout_ms=old.rebalance_timeout_ms if timeout == -1 else timeout,
        server_assignor=old.server_assignor,
        classic_member_metadata=ClassicMemberMetadata(
            session_timeout_ms=request.session_timeout_ms,
            supported_protocols=tuple(
                ClassicProtocol(name=protocol.name, metadata=protocol.metadata) for protocol in request.protocols
            ),
        ),
    )


def _reported(subscription: ConsumerProtocolSubscription, image: Image) -> Reported:
    return {
        image.topics[owned.topic].id: owned.partitions
        for owned in subscription.owned_partitions
        if owned.topic in image.topics
    }


def _become_classic(
    tx: Transaction,
    group: ConsumerGroup,
    before: _Before,
    replaced: Member,
    joining: Member,
    *,
    rebalance: bool,
) -> None:
    staying = [group.members[member_id] for member_id in before.members if member_id != replaced.member_id]
    members = [joining.member_id if member_id == replaced.member_id else member_id for member_id in before.members]
    tombstones = Tombstones(members, before.regexes)
    downgrade(tx, group, before.epoch, tombstones, [*staying, joining], rebalance=rebalance)


def _joined(
    tx: Transaction,
    group: ConsumerGroup,
    request: JoinGroupRequest,
    member_id: str,
    error: GroupError | None,
    becomes_classic: bool,
) -> None:
    if error is not None:
        return
    tx.timers.cancel(join_key(group.group_id, member_id))
    if not becomes_classic:
        schedule_member_session(tx, group, member_id, request.session_timeout_ms)
        operation = member_timer(group.kind, group.group_id, member_id, fence_member)
        tx.timers.schedule(sync_key(group.group_id, member_id), request.rebalance_timeout_ms, operation)


def classic_sync(tx: Transaction, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
    """Give a member of the classic protocol its assignment. Raises ``GroupError``."""
    member, classic = _known_member(group, request.member_id, request.group_instance_id, request.generation_id)
    name = classic.supported_protocols[0].name
    if request.protocol_type not in (None, _PROTOCOL_TYPE) or request.protocol_name not in (None, name):
        message = f"The protocol of the request of member {member.member_id} is not the one of its group."
        raise GroupError(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL, message=message)
    if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
        _expect_join(tx, group, member)
        message = f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} should rejoin."
        raise GroupError(error=ErrorCode.REBALANCE_IN_PROGRESS, message=message)
    metadata = classic.supported_protocols[0].metadata
    assignment = write_assignment(member.assigned, tx.image, metadata)

    def synced(error: GroupError | None) -> None:
        if error is None:
            tx.timers.cancel(sync_key(group.group_id, request.member_id))
            schedule_member_session(tx, group, request.member_id, classic.session_timeout_ms)

    tx.after_append(synced)
    return SyncGroupResponse(
        protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
    )


def classic_heartbeat(tx: Transaction, group: ConsumerGroup, request: HeartbeatRequest) -> HeartbeatResponse:
    """Answer a heartbeat: REBALANCE_IN_PROGRESS if the member must join again. Raises ``GroupError``."""
    member, classic = _known_member(group, request.member_id, request.group_instance_id, request.generation_id)
    schedule_member_session(tx, group, request.member_id, classic.session_timeout_ms)
    if (
        member.epoch < group.assignment_epoch
        or member.state is MemberState.UNREVOKED_PARTITIONS
        or (member.state is MemberState.UNRELEASED_PARTITIONS and not _waits_for_partitions(group, member))
    ):
        _expect_join(tx, group, member)
        return HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return HeartbeatResponse()


def _known_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[Member, ClassicMemberMetadata]:
    """Return a member of the classic protocol at its generation, and what it reported. Raises ``GroupError``."""
    if instance_id is None:
        member = group.member(member_id)
    else:
        found = group.static_member(instance_id)
        if found is None:
            message = f"Member with instance id {instance_id} is not a member of group {group.group_id}."
            raise GroupError(error=ErrorCode.UNKNOWN_MEMBER_ID, message=message)
        refuse_fenced_instance(found, member_id, instance_id)
        member = found
    if member.classic is None:
        message = f"Member {member.member_id} does not use the classic protocol."
        raise GroupError(error=ErrorCode.UNKNOWN_MEMBER_ID, message=message)
    if generation != member.epoch:
        message = f"The generation {generation} of the request is not the epoch {member.epoch} of member {member_id}."
        raise GroupError(error=ErrorCode.ILLEGAL_GENERATION, message=message)
    return member, member.classic


def _waits_for_partitions(group: ConsumerGroup, member: Member) -> bool:
    """Tell whether another member still owns a partition of the member's target."""
    return any(
        partition not in member.assigned.get(topic, ()) and group.owner_epoch(topic, partition) is not None
        for topic, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


def _expect_join(tx: Transaction, group: ConsumerGroup, member: Member) -> None:
    """Fence a member that does not join again within its rebalance timeout."""
    key = join_key(group.group_id, member.member_id)
    if not tx.timers.is_scheduled(key):
        operation = member_timer(group.kind, group.group_id, member.member_id, fence_member)
        tx.timers.schedule(key, member.metadata.rebalance_timeout_ms, operation)


def classic_leave(tx: Transaction, group: ConsumerGroup, request: LeaveGroupRequest) -> LeaveGroupResponse:
    """Remove members. Members of the consumer protocol may leave in this way, too."""
    leaving: dict[str, Member] = {}
    responses = []
    for identity in request.members:
        error = ErrorCode.NONE
        try:
            member = _leaving_member(group, identity)
            leaving[member.member_id] = member
        except GroupError as refused:
            error = ErrorCode(refused.error)
        responses.append(
            MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=error)
        )
    fence_members(tx, group, list(leaving.values()))
    return LeaveGroupResponse(members=tuple(responses))


def _leaving_member(group: ConsumerGroup, identity: MemberIdentity) -> Member:
    if identity.group_instance_id is None:
        return group.member(identity.member_id)
    member = require_static_member(group.static_member(identity.group_instance_id), identity.group_instance_id)
    if identity.member_id:
        refuse_fenced_instance(member, identity.member_id, identity.group_instance_id)
    return member
