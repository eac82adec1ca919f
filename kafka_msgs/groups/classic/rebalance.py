"""The rebalances of classic groups, from the first join to the last member's sync, with their timers.

The names of the timers are Kafka's: ``heartbeat-GROUP-MEMBER``, ``join-GROUP`` and ``sync-GROUP``. The delay of the
first rebalance (KIP-134) also uses ``join-GROUP``. Source: Kafka's ``GroupMetadataManager``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol, cast

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.groups.classic.live_group import LiveGroup
from kafka_msgs.groups.classic.members import CAN_REBALANCE, ClassicGroupMember, ClassicGroupState
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.messages.group_metadata_key import GroupMetadataKey
from kafka_msgs.messages.group_metadata_value import GroupMetadataValue
from kafka_msgs.messages.join_group_response import JoinGroupResponse
from kafka_msgs.messages.sync_group_response import SyncGroupResponse

__all__ = [
    "JOIN_TIMEOUT_MS",
    "cancel_heartbeat_timeout",
    "complete_join_if_ready",
    "emit_metadata",
    "maybe_prepare_rebalance_or_complete_join",
    "prepare_rebalance",
    "remove_pending_sync",
    "remove_waiting_member",
    "reset_and_propagate_assignment",
    "schedule_heartbeat_timeout",
    "schedule_member_timeout",
    "set_and_propagate_assignment",
]

_RECORD_VERSION: Final = 3
"""The version in which Kafka 4.4.0 writes the records of classic groups."""

JOIN_TIMEOUT_MS: Final = 300_000
"""How long a new member may wait for its first generation, in milliseconds."""

_NOBODY_JOINED_WAIT_MS: Final = 500
"""How long a rebalance waits for static members whose rebalance timeout is 0, in ms. Kafka would retry forever."""


class RebalancingGroup(Protocol):
    """The part of a classic group that a rebalance changes."""

    group_id: str

    @property
    def live(self) -> LiveGroup: ...


def emit_metadata(op: OperationContext, group_id: str, value: GroupMetadataValue) -> None:
    """Emit the record of a classic group."""
    op.emit(GroupMetadataKey(group=group_id), value, _RECORD_VERSION)


# Start and end of a rebalance.


def maybe_prepare_rebalance_or_complete_join(op: OperationContext, group: RebalancingGroup) -> None:
    """Start a rebalance. If one is already in progress, complete its join phase once no member is missing."""
    live = group.live
    if live.state in CAN_REBALANCE:
        prepare_rebalance(op, group)
    else:
        complete_join_if_ready(op, group)


def complete_join_if_ready(op: OperationContext, group: RebalancingGroup) -> None:
    """Complete the join phase if all members have joined. The initial rebalance lasts until its delay ends."""
    live = group.live
    preparing = live.state is ClassicGroupState.PREPARING_REBALANCE
    if preparing and live.previous is not ClassicGroupState.EMPTY and live.all_joined:
        complete_join(op, group)


def prepare_rebalance(op: OperationContext, group: RebalancingGroup) -> None:
    """Start a rebalance, and complete its join phase immediately if all members have joined."""
    live = group.live
    if live.state is ClassicGroupState.COMPLETING_REBALANCE:
        reset_and_propagate_assignment(op, group, ErrorCode.REBALANCE_IN_PROGRESS)
    live.pending_syncs.clear()
    op.timers.cancel(_sync_key(group))
    initial = live.state is ClassicGroupState.EMPTY
    if initial:
        delay = op.config.group_initial_rebalance_delay_ms
        _delay_initial(op, group, delay, max(live.rebalance_timeout_ms - delay, 0))
    live.transition_to(ClassicGroupState.PREPARING_REBALANCE, op.now)
    if initial:
        return
    if live.all_joined:
        complete_join(op, group)
    else:
        _wait_for_joins(op, group)


def _delay_initial(op: OperationContext, group: RebalancingGroup, delay: int, remaining: int) -> None:
    """Wait ``delay`` ms for more members; ``remaining`` is the maximum extension in ms if members join."""

    def elapsed(op: OperationContext, group: RebalancingGroup) -> None:
        if group.live.member_added and remaining:
            group.live.member_added = False
            longer = min(op.config.group_initial_rebalance_delay_ms, remaining)
            _delay_initial(op, group, longer, max(remaining - delay, 0))
        else:
            complete_join(op, group)

    _schedule(op, _join_key(group), delay, group.group_id, elapsed)


def _wait_for_joins(op: OperationContext, group: RebalancingGroup, without_timeout_ms: int = 0) -> None:
    timeout = group.live.rebalance_timeout_ms or without_timeout_ms
    _schedule(op, _join_key(group), timeout, group.group_id, complete_join)


def complete_join(op: OperationContext, group: RebalancingGroup) -> None:
    """End the join phase: drop the dynamic members that are missing, and begin the next generation."""
    op.timers.cancel(_join_key(group))
    live = group.live
    for member in [each for each in live.members if each.joining is None and each.instance_id is None]:
        live.remove(member.member_id)
        cancel_heartbeat_timeout(op, group, member.member_id)
    if live.state is ClassicGroupState.DEAD:
        return
    if not live.elect_joined_leader() and live.members:
        _wait_for_joins(op, group, _NOBODY_JOINED_WAIT_MS)
        return
    live.next_generation(op.now)
    if live.state is ClassicGroupState.EMPTY:
        emit_metadata(op, group.group_id, live.metadata({}))
    else:
        _answer_joins(op, group)


def _answer_joins(op: OperationContext, group: RebalancingGroup) -> None:
    live = group.live
    for member in live.members:
        is_leader = live.leader == member.member_id
        live.answer_join(member, live.join_response(member.member_id, with_members=is_leader))
        schedule_heartbeat_timeout(op, group, member)
        member.is_new = False
        live.pending_syncs.add(member.member_id)
    generation = live.generation

    def elapsed(op: OperationContext, group: RebalancingGroup) -> None:
        _drop_unsynced(op, group, generation)

    _schedule(op, _sync_key(group), live.rebalance_timeout_ms, group.group_id, elapsed)


# Assignments.


def set_and_propagate_assignment(
    op: OperationContext, group: RebalancingGroup, assignments: Mapping[str, bytes]
) -> None:
    """Set the assignments of the members, by member id, and send the pending responses."""
    live = group.live
    for member in live.members:
        member.assignment = assignments.get(member.member_id, b"")
    _answer_syncs(op, group, live.protocol_type, live.protocol_name)
    live.transition_to(ClassicGroupState.STABLE, op.now)


def reset_and_propagate_assignment(op: OperationContext, group: RebalancingGroup, error: int) -> None:
    """Clear the assignments, and respond with an error to waiting members."""
    for member in group.live.members:
        member.assignment = b""
    _answer_syncs(op, group, None, None, error)


def _answer_syncs(
    op: OperationContext,
    group: RebalancingGroup,
    protocol_type: str | None,
    protocol_name: str | None,
    error: int = ErrorCode.NONE,
) -> None:
    for member in group.live.members:
        response = SyncGroupResponse(
            error_code=error, protocol_type=protocol_type, protocol_name=protocol_name, assignment=member.assignment
        )
        if member.answer_sync(response):
            schedule_heartbeat_timeout(op, group, member)


def remove_pending_sync(op: OperationContext, group: RebalancingGroup, member_id: str) -> None:
    """Record the SyncGroup of a member, and stop the timer when all members have sent it."""
    live = group.live
    live.pending_syncs.discard(member_id)
    if not live.pending_syncs:
        op.timers.cancel(_sync_key(group))


def _drop_unsynced(op: OperationContext, group: RebalancingGroup, generation: int) -> None:
    live = group.live
    synced = live.state in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE)
    if live.generation != generation or not synced or not live.pending_syncs:
        return
    for member_id in sorted(live.pending_syncs):
        live.remove(member_id)
        cancel_heartbeat_timeout(op, group, member_id)
    prepare_rebalance(op, group)


# Sessions of members.


def schedule_heartbeat_timeout(op: GroupOperation, group: RebalancingGroup, member: ClassicGroupMember) -> None:
    """Remove a member if it sends no request within its session timeout."""
    schedule_member_timeout(op, group, member.member_id, member.session_timeout_ms)


def schedule_member_timeout(op: GroupOperation, group: RebalancingGroup, member_id: str, timeout_ms: int) -> None:
    """Remove a member or a pending id if it sends no request within ``timeout_ms``."""

    def elapsed(op: OperationContext, group: RebalancingGroup) -> None:
        _expire_heartbeat(op, group, member_id)

    _schedule(op, _heartbeat_key(group, member_id), timeout_ms, group.group_id, elapsed)


def cancel_heartbeat_timeout(op: OperationContext, group: RebalancingGroup, member_id: str) -> None:
    """Stop the timer of a member."""
    op.timers.cancel(_heartbeat_key(group, member_id))


def _expire_heartbeat(op: OperationContext, group: RebalancingGroup, member_id: str) -> None:
    """Remove a member or a pending id that sent no request in time."""
    live = group.live
    member = live.members.get(member_id)
    if member_id in live.pending_join_members:
        live.remove(member_id)
    elif member is not None and not member.is_waiting:
        remove_waiting_member(op, group, member)
        if live.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
            prepare_rebalance(op, group)
            return
    else:
        return
    if live.state is ClassicGroupState.PREPARING_REBALANCE and live.all_joined:
        complete_join(op, group)


def remove_waiting_member(op: OperationContext, group: RebalancingGroup, member: ClassicGroupMember) -> None:
    """Remove a member, and respond to its pending JoinGroup request with UNKNOWN_MEMBER_ID."""
    group.live.answer_join(member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    group.live.remove(member.member_id)


# Timers.


def _schedule(
    op: GroupOperation,
    key: str,
    delay_ms: int,
    group_id: str,
    operation: Callable[[OperationContext, RebalancingGroup], None],
) -> None:
    """Run an operation after a delay, if the group is still a classic group then."""

    def run(op: OperationContext) -> None:
        group = op.state.groups.get(group_id)
        if group is not None and group.kind == "classic":
            operation(op, cast("RebalancingGroup", group))

    op.timers.schedule(key, delay_ms, run, retry_backoff_ms=None)


def _heartbeat_key(group: RebalancingGroup, member_id: str) -> str:
    return f"heartbeat-{group.group_id}-{member_id}"


def _join_key(group: RebalancingGroup) -> str:
    return f"join-{group.group_id}"


def _sync_key(group: RebalancingGroup) -> str:
    return f"sync-{group.group_id}"
