"""The target assignment of a consumer group, from an assignor or forced, and each member's steps to it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from kafka_msgs.groups.assignors import CONSUMER_ASSIGNORS
from kafka_msgs.groups.assignors.java_hash_order import copy_capacity, hash_map_order
from kafka_msgs.groups.assignors.spec import Partitions, TopicSubscription, owned_partitions
from kafka_msgs.groups.config import ForcedTarget
from kafka_msgs.groups.consumer.current_assignment import ReconcileInput, Reported, reconcile
from kafka_msgs.groups.consumer.group import ConsumerGroup
from kafka_msgs.groups.consumer.member import RECORDS, ConsumerGroupMember
from kafka_msgs.groups.consumer.membership import MemberUpdate, fence_members
from kafka_msgs.groups.consumer.subscription import SubscriptionChange
from kafka_msgs.groups.member_timers import rebalance_timer_key, schedule_rebalance
from kafka_msgs.groups.modern_group import can_compute_assignment, current_target, members_after
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.partition_assignment import compute_target, same_partitions
from kafka_msgs.groups.topics_image import TopicsImage

__all__ = ["TargetAssignment", "previous_target", "reconcile_member", "update_target"]


class TargetAssignment(NamedTuple):
    """The target assignment of a member, and its epoch."""

    epoch: int
    target: Partitions


def _apply_forced_target(update: MemberUpdate, epoch: int, forced: ForcedTarget) -> TargetAssignment:
    """Record a forced target if it differs from the current one, with a new epoch.

    Members without an entry get no partitions. Topics that do not exist are skipped.
    """
    group, member_id = update.group, update.new.member_id
    members = members_after(group, update.new, update.replaced)
    targets = {each: _target(update.op, forced, member) for each, member in members.items()}
    before = current_target(group, member_id, update.replaced)
    changed = [each for each, target in targets.items() if not same_partitions(target, before.get(each))]
    if changed and group.assignment_epoch >= epoch:
        epoch += 1
        update.written.append(RECORDS.epoch(group.group_id, epoch, group.metadata_hash))
    update.written += (RECORDS.target(group.group_id, each, targets[each]) for each in changed)
    if group.assignment_epoch < epoch:
        update.written.append(RECORDS.target_metadata(group.group_id, epoch, update.op.now))
    return TargetAssignment(epoch, targets[member_id])


def _target(op: OperationContext, forced: ForcedTarget, member: ConsumerGroupMember) -> Partitions:
    topics = op.image.topics
    names = member.member_id, member.metadata.instance_id, member.metadata.client_id
    wanted = next((forced[name] for name in names if name is not None and name in forced), {})
    return {topics[name].id: tuple(partitions) for name, partitions in wanted.items() if name in topics}


def previous_target(update: MemberUpdate) -> TargetAssignment:
    """Return the current target assignment of a member. A member with a new instance id has none yet."""
    group, new = update.group, update.new
    holder = new.member_id if new.instance_id is None else group.static_members.get(new.instance_id, "")
    return TargetAssignment(group.assignment_epoch, group.targets.get(holder, {}))


def update_target(update: MemberUpdate, change: SubscriptionChange) -> TargetAssignment:
    """Compute the target assignment if the group epoch is newer, and the minimum interval has passed.

    Raises ``GroupError`` if the assignor fails.
    """
    op, group, member_id = update.op, update.group, update.new.member_id
    forced = op.services.forced_targets.get(group.group_id)
    if forced is not None:
        return _apply_forced_target(update, change.epoch, forced)
    interval = op.group_config(group.group_id).consumer_assignment_interval_ms
    if group.assignment_epoch >= change.epoch or not can_compute_assignment(group, interval, op.now):
        return previous_target(update)
    targets = dict(current_target(group, member_id, update.replaced))
    if update.freed is not None and update.replaced not in group.targets:
        targets.pop(member_id, None)
    assignment, written = compute_target(
        op,
        group,
        RECORDS,
        change.epoch,
        CONSUMER_ASSIGNORS[change.assignor],
        members=members_after(group, update.new, update.replaced),
        targets=targets,
        subscription=_Subscriptions(group, op.image).of,
        homogeneous=not change.heterogeneous,
        owned=owned_partitions(group.targets.values()) if op.quirks.rejoin_counts_twice else None,
    )
    update.written += written
    return TargetAssignment(change.epoch, assignment.get(member_id, {}))


def reconcile_member(
    update: MemberUpdate, goal: TargetAssignment, *, changed: bool, reported: Reported | None
) -> ConsumerGroupMember:
    """Move a member one step towards its target, and record the step. Return the updated member."""
    op, group, member, freed = update.op, update.group, update.new, update.freed
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
            group.owner_epoch(topic, partition) is not None and not (freed is not None and freed.owns(topic, partition))
        ),
        reported=reported,
    )
    after = reconcile(member, step)
    if after != member:
        update.written.append(RECORDS.current(group.group_id, after))
        if after.is_revoking and after.classic is None:
            schedule_rebalance(op, group, after.member_id, after.epoch, after.rebalance_timeout_ms, fence_members)
        elif after.classic is None:
            op.stop_timer(rebalance_timer_key(group.group_id, after.member_id))
    return after


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
