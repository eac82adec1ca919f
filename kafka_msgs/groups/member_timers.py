"""The timers of the members of consumer groups, share groups and streams groups, with Kafka's keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kafka_msgs.groups.modern_group import ModernGroup, ModernMember
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.timeline_map import iter_kafka_order
from kafka_msgs.internal_topics.replay import GroupKind

__all__ = [
    "Fence",
    "join_timer_key",
    "member_timer",
    "rebalance_timer_key",
    "restart_timers",
    "schedule_rebalance",
    "schedule_session",
    "stop_member_timers",
    "sync_timer_key",
]

Fence: TypeAlias = "Callable[[OperationContext, Any, Sequence[Any]], None]"
"""Removes members from their group, such as a member that missed a timeout."""


def session_timer_key(group_id: str, member_id: str) -> str:
    """Return the key of a member's session timer."""
    return f"session-timeout-{group_id}-{member_id}"


def rebalance_timer_key(group_id: str, member_id: str) -> str:
    """Return the key of a member's rebalance timer."""
    return f"rebalance-timeout-{group_id}-{member_id}"


def join_timer_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer within which a classic protocol member must rejoin."""
    return f"join-{group_id}-{member_id}"


def sync_timer_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer within which a member of the classic protocol must send SyncGroup."""
    return f"sync-{group_id}-{member_id}"


def stop_member_timers(op: OperationContext, group_id: str, member_id: str) -> None:
    """Stop all timers of a member that leaves its group."""
    for key in (session_timer_key, rebalance_timer_key, join_timer_key, sync_timer_key):
        op.stop_timer(key(group_id, member_id))


def member_timer(kind: GroupKind, group_id: str, member_id: str, fence: Fence) -> Callable[[OperationContext], None]:
    """Return the operation of a timer that fences a member, if the member and its group still exist."""

    def operation(op: OperationContext) -> None:
        group = op.state.groups.get(group_id)
        if isinstance(group, ModernGroup) and group.kind == kind:
            member = group.members.get(member_id)
            if member is not None:
                fence(op, group, (member,))

    return operation


def schedule_session(
    op: OperationContext, group: ModernGroup[Any, Any], member_id: str, timeout_ms: int, fence: Fence
) -> None:
    """Fence a member if it sends no heartbeat within its session timeout."""
    key = session_timer_key(group.group_id, member_id)
    op.timers.schedule(key, timeout_ms, member_timer(group.kind, group.group_id, member_id, fence))


def schedule_rebalance(
    op: OperationContext, group: ModernGroup[Any, Any], member_id: str, epoch: int, timeout_ms: int, fence: Fence
) -> None:
    """Fence a member if it is still at ``epoch`` when its rebalance timeout expires."""

    def fence_if_still_there(op: OperationContext, group: Any, members: Sequence[ModernMember]) -> None:
        if members[0].epoch == epoch:
            fence(op, group, members)

    key = rebalance_timer_key(group.group_id, member_id)
    op.timers.schedule(key, timeout_ms, member_timer(group.kind, group.group_id, member_id, fence_if_still_there))


def restart_timers(op: OperationContext, group: ModernGroup[Any, Any], timeout_ms: int, fence: Fence) -> None:
    """Restart each member's session timer, and the rebalance timer of each member with partitions to revoke."""
    for member_id in iter_kafka_order(group.members):
        member = group.members[member_id]
        schedule_session(op, group, member_id, timeout_ms, fence)
        if member.is_revoking:
            schedule_rebalance(op, group, member_id, member.epoch, member.rebalance_timeout_ms, fence)
