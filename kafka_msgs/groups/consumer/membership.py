"""The members of a consumer group: finding and creating groups, replacing and fencing members.

A member of the consumer protocol that joins a classic group of consumers turns it into a consumer group. When the last
member of the consumer protocol is gone, the group becomes a classic group again. ``migration`` implements both.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from attrs import evolve

from kafka_msgs.groups.assignors.java_hash_order import string_key
from kafka_msgs.groups.classic.group import ClassicGroup
from kafka_msgs.groups.classic_support import join_timer_key, sync_timer_key
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import ConsumerGroupMember
from kafka_msgs.groups.consumer.migration import Tombstones, downgrade, may_downgrade, upgrade
from kafka_msgs.groups.consumer.records import (
    emit_current_assignment,
    emit_epoch,
    emit_member,
    emit_regex,
    emit_removal,
    emit_target,
    emit_target_metadata,
)
from kafka_msgs.groups.modern_group import find_group, rebalance_timer_key, session_timer_key
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.groups.topics_image import group_hash

__all__ = [
    "GroupLookup",
    "fence_member",
    "fence_members",
    "get_or_create_group",
    "new_member_id",
    "replace_member",
    "sorted_names",
]


class GroupLookup(NamedTuple):
    """The group of a request, and whether it was a consumer group before the request.

    ``order`` has its members in Kafka's order if the request converted a classic group.
    """

    group: ConsumerGroup
    exists: bool = True
    order: Sequence[str] | None = None


def get_or_create_group(op: OperationContext, group_id: str) -> GroupLookup:
    """Return the group that a member joins. A new group is not in the state before its first record.

    An empty classic group is deleted; a classic group with members becomes a consumer group. Raises ``GroupError``.
    """
    group = op.state.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return GroupLookup(group)
    if group is None:
        return GroupLookup(ConsumerGroup(group_id), exists=False)
    if not isinstance(group, ClassicGroup):
        return GroupLookup(find_group(op, ConsumerGroup, group_id))
    if group.is_empty:
        group.emit_tombstones(op)
        group.cancel_timers(op)
        return GroupLookup(ConsumerGroup(group_id), exists=False)
    upgraded, order = upgrade(op, group, fence_member)
    return GroupLookup(upgraded, exists=False, order=order)


def new_member_id(op: OperationContext) -> str:
    """Return an id for a member that did not generate one, in the text form of Kafka's ids."""
    return urlsafe_b64encode(UUID(op.new_id()).bytes).rstrip(b"=").decode()


def replace_member(
    op: OperationContext, group: ConsumerGroup, old: ConsumerGroupMember, member_id: str
) -> ConsumerGroupMember:
    """Replace a static member by a member with a new id. Return the new member."""
    target = group.targets.get(old.member_id, {})
    new = evolve(old, member_id=member_id, epoch=0, previous_epoch=0)
    emit_removal(op, group.group_id, old.member_id)
    emit_member(op, group.group_id, new)
    emit_target(op, group.group_id, member_id, target)
    emit_current_assignment(op, group.group_id, new)
    return new


def fence_member(op: OperationContext, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
    """Remove a member that left or missed a timeout."""
    fence_members(op, group, (member,))


def fence_members(op: OperationContext, group: ConsumerGroup, members: Sequence[ConsumerGroupMember]) -> None:
    """Remove members. The group is downgraded if only members of the classic protocol remain."""
    if not members:
        return
    if may_downgrade(op, group, members):
        order = iter_kafka_order(group.members)
        staying = [group.members[member_id] for member_id in order if group.members[member_id] not in members]
        downgrade(op, group, group.epoch, Tombstones(order, iter_kafka_order(group.resolved)), staying, rebalance=True)
        return
    group_id, epoch = group.group_id, group.epoch + 1
    counts, is_last = dict(group.regexes), len(members) == len(group.members)
    for member in members:
        emit_removal(op, group_id, member.member_id)
    for regex, count in Counter(member.regex for member in members if member.regex).items():
        if counts[regex] == count:
            emit_regex(op, group_id, regex, None)
    emit_epoch(op, group_id, epoch, group_hash(op.image, group.topics))
    if is_last:
        emit_target_metadata(op, group_id, epoch, 0)
    for member in members:
        for key in (session_timer_key, rebalance_timer_key, join_timer_key, sync_timer_key):
            op.stop_timer(key(group_id, member.member_id))


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return topic names in the order of a record: without duplicates, in Java's string order."""
    return tuple(sorted(set(names), key=string_key))
