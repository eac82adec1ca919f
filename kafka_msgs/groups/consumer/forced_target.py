"""Forced target assignments: a test chooses the target of a consumer group instead of an assignor."""

from __future__ import annotations

from kafka_msgs.groups.config import ForcedTarget
from kafka_msgs.groups.consumer.group import ConsumerGroup, Target
from kafka_msgs.groups.consumer.member import ConsumerGroupMember
from kafka_msgs.groups.consumer.records import emit_epoch, emit_target, emit_target_metadata
from kafka_msgs.groups.operation import OperationContext

__all__ = ["apply_forced_target"]


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
