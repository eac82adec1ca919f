"""Members of the classic protocol in a consumer group: what JoinGroup does, and what belongs to this kind of group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from attrs import evolve

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import DecodeError, GroupError
from kafka_msgs.groups.classic_speech import ClassicMetadata, ClassicSpeech, expect_sync, join_key, must_know_id
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import Member, MemberState
from kafka_msgs.groups.consumer.membership import (
    fence_member,
    fence_members,
    new_member_id,
    replace_member,
    require_room,
    sorted_names,
)
from kafka_msgs.groups.consumer.migration import Tombstones, accepts_classic_members, downgrade, may_downgrade_replacing
from kafka_msgs.groups.consumer.reconcile import Reported
from kafka_msgs.groups.consumer.subscription import View, update_subscription
from kafka_msgs.groups.consumer.targets import approach, last_target, update_target
from kafka_msgs.groups.context import RequestContext
from kafka_msgs.groups.embedded import CONSUMER_PROTOCOL, read_subscription, write_assignment
from kafka_msgs.groups.image import Image
from kafka_msgs.groups.modern import held_static_member
from kafka_msgs.groups.promise import Promise
from kafka_msgs.groups.timeline import walk
from kafka_msgs.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMemberMetadataValue,
)
from kafka_msgs.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_msgs.messages.join_group_request import JoinGroupRequest
from kafka_msgs.messages.join_group_response import JoinGroupResponse

if TYPE_CHECKING:
    from kafka_msgs.groups.transaction import Transaction

__all__ = ["SPEECH"]


class _Before(NamedTuple):
    """A group before a request: its epoch, its members and its regular expressions in Kafka's order."""

    epoch: int
    members: Sequence[str]
    regexes: Sequence[str]


def _join(
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
    if must_know_id(context, request):
        promise: Promise[JoinGroupResponse] = tx.promise()
        promise.resolve(JoinGroupResponse(member_id=member_id, error_code=ErrorCode.MEMBER_ID_REQUIRED))
        return promise
    updated, becomes_classic = _take_place(tx, context, group, request, member_id)

    def joined(error: GroupError | None) -> None:
        if error is None:
            tx.timers.cancel(join_key(group.group_id, member_id))
            if not becomes_classic:
                expect_sync(tx, group, member_id, request, fence_member)

    tx.after_append(joined)
    return JoinGroupResponse(
        member_id=member_id,
        generation_id=updated.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=request.protocols[0].name,
    )


def _take_place(
    tx: Transaction, context: RequestContext, group: ConsumerGroup, request: JoinGroupRequest, member_id: str
) -> tuple[Member, bool]:
    """Record the member, and its next step. Return the member after it, and whether the group becomes a classic one."""
    instance_id = request.group_instance_id
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
    return updated, becomes_classic


def _require_protocols(group: ConsumerGroup, member_id: str, request: JoinGroupRequest) -> None:
    names = [protocol.name for protocol in request.protocols]
    if request.protocol_type == CONSUMER_PROTOCOL and any(
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
        return held_static_member(group, member_id, instance_id)
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


def _assignment(tx: Transaction, group: ConsumerGroup, member: Member, classic: ClassicMetadata) -> bytes:
    return write_assignment(member.assigned, tx.image, classic.supported_protocols[0].metadata)


def _may_advance(tx: Transaction, group: ConsumerGroup, member: Member) -> bool:
    """Tell whether all partitions that a member waits for are free."""
    return member.state is MemberState.UNRELEASED_PARTITIONS and not any(
        partition not in member.assigned.get(topic, ()) and group.owner_epoch(topic, partition) is not None
        for topic, partitions in group.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


SPEECH: Final = ClassicSpeech(
    join=_join, assignment=_assignment, may_advance=_may_advance, fence=fence_member, remove=fence_members
)
"""How consumer groups serve members of the classic protocol."""
