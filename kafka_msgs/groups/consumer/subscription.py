"""Changes of a member's subscription by a request: records of the member, and a new group epoch.

Kafka bases its decisions on the state before the request, because its records take effect at the end. Here each record
takes effect immediately. So ``GroupSnapshot`` stores the state that those decisions need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from attrs import evolve, frozen

from kafka_msgs.groups.assignors.java_hash_order import HashTable, copied
from kafka_msgs.groups.consumer.group import ConsumerGroup, Target
from kafka_msgs.groups.consumer.member import ConsumerGroupMember
from kafka_msgs.groups.consumer.membership import GroupLookup
from kafka_msgs.groups.consumer.records import emit_epoch, emit_member, remove_partition_metadata
from kafka_msgs.groups.consumer.regex_subscriptions import RegexChange, RegexSnapshot, update_regexes
from kafka_msgs.groups.metrics import CONSUMER_REBALANCES
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order, java_hash_code
from kafka_msgs.groups.topics_image import group_hash

__all__ = [
    "GroupSnapshot",
    "ReplacedMember",
    "SubscriptionChange",
    "live_group",
    "preferred_assignor",
    "update_subscription",
]


class ReplacedMember(NamedTuple):
    """A member and its target assignment, or None if it has none yet."""

    member: ConsumerGroupMember
    target: Target | None


@frozen(kw_only=True)
class GroupSnapshot:
    """A snapshot of a group before a request changes it.

    ``exists`` is not set for a group that the request creates. ``is_new`` is set if the member is not in the group,
    ``new_instance`` if it joins with an instance id that is new to the group. ``assignors`` counts the members that
    request each assignor, in Kafka's iteration order. ``preferred`` is the assignor of the group. ``order`` has the
    members in Kafka's order, if the records of the request change it. ``without_target`` is set if the instance id
    belongs to a member without a target assignment. ``displaced`` is the former state of a member that takes over an
    instance id.
    """

    exists: bool
    is_new: bool
    new_instance: bool
    heterogeneous: bool
    capacity: int
    assignors: Mapping[str, int]
    preferred: str
    regexes: RegexSnapshot
    order: Sequence[str] | None
    without_target: bool
    displaced: ReplacedMember | None

    @classmethod
    def from_group(
        cls, op: OperationContext, group: ConsumerGroup, member_id: str, instance_id: str | None
    ) -> GroupSnapshot:
        """Return the snapshot of a group for a member's request."""
        replaced = None if instance_id is None else group.static_members.get(instance_id)
        return cls(
            exists=True,
            is_new=member_id not in group.members,
            new_instance=instance_id is not None and replaced is None,
            heterogeneous=group.heterogeneous,
            capacity=group.members.capacity,
            assignors={name: group.assignors[name] for name in iter_kafka_order(group.assignors)},
            preferred=preferred_assignor(op, group.assignors, partial(iter_kafka_order, group.assignors)),
            regexes=RegexSnapshot.of(group),
            order=None,
            without_target=replaced is not None and replaced not in group.targets,
            displaced=None,
        )

    @classmethod
    def of_heartbeat(
        cls, op: OperationContext, entry: GroupLookup, member_id: str, instance_id: str | None, *, joins: bool
    ) -> GroupSnapshot:
        """Return the snapshot of a group for a heartbeat, whose member may replace another member or itself."""
        group, order, displaced = entry.group, entry.order, None
        replaced = group.static_members.get(instance_id) if joins and instance_id is not None else None
        present = group.members.get(member_id)
        if replaced is not None and replaced == member_id:
            order = iter_kafka_order(group.members)
        elif replaced is not None and present is not None and op.quirks.rejoin_counts_twice:
            displaced = ReplacedMember(present, group.targets.get(member_id))
        view = cls.from_group(op, group, member_id, instance_id)
        return evolve(view, exists=entry.exists, order=order, displaced=displaced)


@frozen
class SubscriptionChange:
    """The changes of a request.

    ``subscription`` is set if the member changes its subscription. ``epoch`` is set if that needs a new group epoch: a
    member with a new regular expression waits until its topics are resolved. ``heterogeneous`` and ``assignor`` are for
    the next target assignment.
    """

    subscription: bool
    epoch: bool
    heterogeneous: bool
    assignor: str


def preferred_assignor(
    op: OperationContext, counts: Mapping[str, int], table_order: Callable[[], Iterable[str]]
) -> str:
    """Return the assignor that most members request, or the coordinator's first assignor if they request none.

    If several assignors have the most requests, the first of them in the coordinator's list wins. With the quirk
    ``consumer_assignors_draw``, the first in ``table_order`` wins, the order of one of Kafka's tables.
    """
    known = op.config.group_consumer_assignors
    names = table_order() if op.quirks.consumer_assignors_draw else known
    return max((name for name in names if counts.get(name)), key=lambda name: counts[name], default=known[0])


def live_group(op: OperationContext, group_id: str) -> ConsumerGroup:
    """Return a group that exists because a record was emitted for it."""
    group = op.state.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


def update_subscription(
    op: OperationContext, group_id: str, view: GroupSnapshot, old: ConsumerGroupMember, new: ConsumerGroupMember
) -> SubscriptionChange:
    """Record a member's reported changes, and increase the group epoch if its subscriptions or topics changed."""
    if new.metadata != old.metadata:
        emit_member(op, group_id, new)
    group = live_group(op, group_id)
    names = new.metadata.subscribed_topic_names != old.metadata.subscribed_topic_names
    regex = update_regexes(op, group, view.regexes, old, new)
    assignor = _preferred(op, view, old, new)
    if new.classic is None:
        bump = names or regex is RegexChange.UPDATED_AND_RESOLVED or assignor != view.preferred
    else:
        bump = names or regex is not RegexChange.NONE
    heterogeneous = view.heterogeneous
    if bump or group.needs_refresh(op.now):
        heterogeneous = group.is_heterogeneous() or _differs(view.displaced, new)
        _update_epoch(op, group, view, bump)
    return SubscriptionChange(names or regex is not RegexChange.NONE, bump, heterogeneous, assignor)


def _differs(displaced: ReplacedMember | None, new: ConsumerGroupMember) -> bool:
    if displaced is None:
        return False
    old = displaced.member
    return (set(old.metadata.subscribed_topic_names), old.regex) != (
        set(new.metadata.subscribed_topic_names),
        new.regex,
    )


def _preferred(op: OperationContext, view: GroupSnapshot, old: ConsumerGroupMember, new: ConsumerGroupMember) -> str:
    """Return the group's assignor after the request."""
    counts = Counter(view.assignors)
    left, wanted = old.metadata.server_assignor, new.metadata.server_assignor
    if left is not None and left in counts:
        counts[left] -= 1
    if wanted is not None:
        counts[wanted] += 1

    def table_order() -> list[str]:
        table = HashTable(java_hash_code, view.assignors, capacity=copied(view.assignors))
        if left is not None and left in view.assignors and not view.assignors[left] - 1:
            table.remove(left)
        if wanted is not None:
            table.compute(wanted)
        return table.walk()

    return preferred_assignor(op, counts, table_order)


def _update_epoch(op: OperationContext, group: ConsumerGroup, view: GroupSnapshot, bump: bool) -> None:
    names = {*group.topics, *(view.displaced.member.metadata.subscribed_topic_names if view.displaced else ())}
    metadata_hash = group_hash(op.image, names)
    if bump or metadata_hash != group.metadata_hash:
        emit_epoch(op, group.group_id, group.epoch + 1, metadata_hash)
        op.count_metric(CONSUMER_REBALANCES)
    if view.exists:
        group.refreshed(op.now)
    if group.has_partition_metadata:
        remove_partition_metadata(op, group.group_id)
