"""The target assignment of a consumer group, from an assignor or forced, and each member's steps to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import AssignorError, GroupError
from kafka_msgs.groups.assignors import CONSUMER_ASSIGNORS
from kafka_msgs.groups.assignors.java_hash_order import copy_capacity, hash_map_order
from kafka_msgs.groups.assignors.spec import Assignment, GroupSpec, Partitions, TopicSubscription
from kafka_msgs.groups.assignors.spec import MemberSpec as AssignorMember
from kafka_msgs.groups.config import ForcedTarget
from kafka_msgs.groups.consumer.current_assignment import ReconcileInput, Reported, reconcile
from kafka_msgs.groups.consumer.group import ConsumerGroup, Target
from kafka_msgs.groups.consumer.member import ConsumerGroupMember, MemberState
from kafka_msgs.groups.consumer.records import emit_current_assignment, emit_epoch, emit_target, emit_target_metadata
from kafka_msgs.groups.consumer.subscription import GroupSnapshot, ReplacedMember, SubscriptionChange
from kafka_msgs.groups.modern_group import Fence, can_compute_assignment, rebalance_timer_key, schedule_rebalance
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap, iter_kafka_order
from kafka_msgs.groups.topics_image import TopicsImage

__all__ = ["TargetAssignment", "previous_target", "reconcile_member", "update_target"]


def apply_forced_target(
    op: OperationContext, group: ConsumerGroup, forced: ForcedTarget, member: ConsumerGroupMember
) -> Target:
    """Record a forced target if it differs from the current one, with a new epoch. Return the target of a member.

    Members without an entry get no partitions. Topics that do not exist are skipped.
    """
    targets = {each.member_id: _target(op, forced, each) for each in (*group.members.values(), member)}
    changed = [member_id for member_id, target in targets.items() if not _is_same(target, group.targets.get(member_id))]
    if changed and group.assignment_epoch >= group.epoch:
        emit_epoch(op, group.group_id, group.epoch + 1, group.metadata_hash)
    for member_id in changed:
        emit_target(op, group.group_id, member_id, targets[member_id])
    if group.assignment_epoch < group.epoch:
        emit_target_metadata(op, group.group_id, group.epoch, op.now)
    return targets[member.member_id]


def _target(op: OperationContext, forced: ForcedTarget, member: ConsumerGroupMember) -> Target:
    topics = op.image.topics
    names = member.member_id, member.metadata.instance_id, member.metadata.client_id
    wanted = next((forced[name] for name in names if name is not None and name in forced), {})
    return {topics[name].id: tuple(partitions) for name, partitions in wanted.items() if name in topics}


def _is_same(target: Target, other: Target | None) -> bool:
    if other is None or target.keys() != other.keys():
        return False
    return all(set(partitions) == set(other[topic]) for topic, partitions in target.items())


class TargetAssignment(NamedTuple):
    """The target assignment of a member, and its epoch."""

    epoch: int
    target: Target


def previous_target(group: ConsumerGroup, view: GroupSnapshot, member: ConsumerGroupMember) -> TargetAssignment:
    """Return the current target assignment of a member. A member with a new instance id has none yet."""
    return TargetAssignment(
        group.assignment_epoch, {} if view.new_instance else group.targets.get(member.member_id, {})
    )


def update_target(
    op: OperationContext,
    group: ConsumerGroup,
    view: GroupSnapshot,
    change: SubscriptionChange,
    member: ConsumerGroupMember,
) -> TargetAssignment:
    """Compute the target assignment if the group epoch is newer, and the minimum interval has passed.

    Raises ``GroupError`` if the assignor fails.
    """
    forced = op.forced_target(group.group_id)
    if forced is not None:
        target = apply_forced_target(op, group, forced, member)
        return TargetAssignment(group.assignment_epoch, target)
    interval = op.group_config(group.group_id).consumer_assignment_interval_ms
    if group.assignment_epoch >= group.epoch or not can_compute_assignment(group, interval, op.now):
        return previous_target(group, view, member)
    order = hash_map_order(_members_in_order(group, view, member))
    subscriptions = _Subscriptions(group, op.image)
    spec = GroupSpec(
        members={
            member_id: AssignorMember(
                subscription=subscriptions.of(group.members[member_id]),
                assigned=_last_target(group, view, member, member_id) or {},
                instance_id=group.members[member_id].instance_id,
            )
            for member_id in order
        },
        partitions={topic.id: topic.partitions for topic in op.image.topics.values()},
        homogeneous=not change.heterogeneous,
        owned=None if view.displaced is None else _owned([*group.targets.values(), view.displaced.target or {}]),
    )
    assignment = _assign(change.assignor, group, spec)
    for member_id in order:
        target = assignment.get(member_id, {})
        if not _same(target, _last_target(group, view, member, member_id)):
            emit_target(op, group.group_id, member_id, target)
    emit_target_metadata(op, group.group_id, group.epoch, op.now)
    return TargetAssignment(group.epoch, assignment.get(member.member_id, {}))


def _last_target(
    group: ConsumerGroup, view: GroupSnapshot, member: ConsumerGroupMember, member_id: str
) -> Target | None:
    """Return the target of a member before the request. A replaced member's new record does not count."""
    if member_id != member.member_id or not view.without_target:
        return group.targets.get(member_id)
    return None if view.displaced is None else view.displaced.target


def _owned(targets: Iterable[Target]) -> Mapping[UUID, Collection[int]]:
    owned: dict[UUID, set[int]] = {}
    for target in targets:
        for topic, partitions in target.items():
            owned.setdefault(topic, set()).update(partitions)
    return owned


def reconcile_member(
    op: OperationContext,
    group: ConsumerGroup,
    member: ConsumerGroupMember,
    goal: TargetAssignment,
    *,
    changed: bool,
    reported: Reported | None,
    fence: Fence,
    displaced: ReplacedMember | None = None,
) -> ConsumerGroupMember:
    """Move a member one step towards its target, and record the step. Return the updated member.

    Partitions that a ``displaced`` member owned are not free in this step.
    """
    if not changed and member.is_reconciled_to(goal.epoch):
        return member
    names = group.subscribed_topics_of(member)
    topics = op.image.by_id
    step = ReconcileInput(
        target_epoch=goal.epoch,
        target=goal.target,
        subscription_changed=changed,
        subscribed=lambda topic: topic in topics and topics[topic].name in names,
        subscribes_to_nothing=not names,
        is_owned=lambda topic, partition: (
            group.owner_epoch(topic, partition) is not None
            or (displaced is not None and displaced.member.owns(topic, partition))
        ),
        reported=reported,
    )
    after = reconcile(member, step)
    if after != member:
        emit_current_assignment(op, group.group_id, after)
        if after.classic is None and after.state is MemberState.UNREVOKED_PARTITIONS:
            timeout = after.metadata.rebalance_timeout_ms
            schedule_rebalance(op, group, after.member_id, after.epoch, timeout, fence)
        elif after.classic is None:
            op.stop_timer(rebalance_timer_key(group.group_id, after.member_id))
    return after


def _assign(name: str, group: ConsumerGroup, spec: GroupSpec) -> Assignment:
    try:
        return CONSUMER_ASSIGNORS[name](spec)
    except AssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {group.epoch}: {error}"
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error


def _members_in_order(group: ConsumerGroup, view: GroupSnapshot, member: ConsumerGroupMember) -> Sequence[str]:
    """Return the members in the order of Kafka's assignment: a new member comes last."""
    if view.order is not None:
        present = [each for each in view.order if each in group.members]
        return [*present, member.member_id] if view.is_new else present
    if not view.is_new:
        return iter_kafka_order(group.members)
    others: TimelineHashMap[str, None] = TimelineHashMap()
    for member_id in group.members:
        if member_id != member.member_id:
            others[member_id] = None
    others.capacity = view.capacity
    return [*iter_kafka_order(others), member.member_id]


class _Subscriptions:
    """The subscriptions of members. Members that subscribe to the same topics share one value."""

    def __init__(self, group: ConsumerGroup, image: TopicsImage) -> None:
        self._group = group
        self._image = image
        self._known: dict[tuple[tuple[str, ...], str], TopicSubscription] = {}

    def of(self, member: ConsumerGroupMember) -> TopicSubscription:
        """Return the subscription of a member."""
        key = (member.metadata.subscribed_topic_names, member.regex)
        found = self._known.get(key)
        if found is None:
            names = self._names(*key)
            topics = self._image.topics
            found = self._known[key] = TopicSubscription(
                tuple(topics[name].id for name in names if name in topics), len(names)
            )
        return found

    def _names(self, names: tuple[str, ...], regex: str) -> Sequence[str]:
        own = _set_order(names)
        resolved = self._group.resolved.get(regex) if regex else None
        matched = _set_order(resolved.topics) if resolved is not None else []
        large, small = (own, matched) if len(own) > len(matched) else (matched, own)
        return [*large, *(name for name in small if name not in large)]


def _set_order(names: Collection[str]) -> Sequence[str]:
    return hash_map_order(names, capacity=copy_capacity(len(names)))


def _same(one: Partitions, other: Target | None) -> bool:
    if other is None or one.keys() != other.keys():
        return False
    return all(set(partitions) == set(other[topic]) for topic, partitions in one.items())
