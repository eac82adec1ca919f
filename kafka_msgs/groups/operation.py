"""The context of handlers, timers and background tasks: one operation against one shard.

A handler is a function. It reads the state, emits records, and returns the response or a future of it::

    def heartbeat(
        op: OperationContext, context: RequestContext, request: HeartbeatRequest
    ) -> HeartbeatResponse | Future[HeartbeatResponse]:
        group = op.state.groups.get(request.group_id)
        if group is None:
            raise GroupError(error=ErrorCode.GROUP_ID_NOT_FOUND, message=f"Group {request.group_id} not found.")
        op.emit(key, value)
        op.timers.schedule(f"heartbeat-{group.group_id}", 10_000, expire)
        return HeartbeatResponse()

The response is sent when the records are committed. A handler whose response waits for other members returns
``op.new_future()``, and the response is sent when that future is settled. A ``GroupError`` becomes a response with its
error code, after all changes of the operation are undone. Any other exception is a bug: it also undoes the operation,
and propagates to the caller. Changes of soft state and of timers are not undone, except for ``stop_timer``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from kafka_msgs.groups.group import Group, OffsetAndPosition
from kafka_msgs.groups.group_operation import GroupOperation
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap
from kafka_msgs.groups.runtime.undo_log import Changes, HardState

__all__ = ["OFFSETS_TOPIC", "OffsetTable", "OperationContext", "ShardState", "subscribe"]

OffsetTable: TypeAlias = TimelineHashMap[str, TimelineHashMap[str, TimelineHashMap[int, OffsetAndPosition]]]
"""Committed offsets by group, topic and partition."""


class ShardState(HardState):
    """The recorded state of one partition of ``__consumer_offsets``.

    ``groups`` has all groups by their name. ``offsets`` has the committed offsets, ``pending_offsets`` the offsets of
    open transactions by producer id, and ``open_transactions`` the producers with pending offsets by group, topic and
    partition. ``subscribers`` has, for each topic, the groups that subscribe to it.

    ``new_simple_group`` creates the group for offsets of a group that no member has joined.
    """

    __slots__ = ("groups", "new_simple_group", "offsets", "open_transactions", "pending_offsets", "subscribers")

    def __init__(self, new_simple_group: Callable[[str], Group]) -> None:
        super().__init__()
        self.new_simple_group = new_simple_group
        self.groups: TimelineHashMap[str, Group] = TimelineHashMap()
        self.offsets: OffsetTable = TimelineHashMap()
        self.pending_offsets: TimelineHashMap[int, OffsetTable] = TimelineHashMap()
        self.open_transactions: TimelineHashMap[str, TimelineHashMap[str, TimelineHashMap[int, dict[int, None]]]] = (
            TimelineHashMap()
        )
        self.subscribers: dict[str, dict[str, None]] = {}


def subscribe(state: ShardState, changes: Changes, group_id: str, before: Iterable[str], after: Iterable[str]) -> None:
    """Replace a group's subscriptions to the topics ``before`` by subscriptions to the topics ``after``."""
    old, new = dict.fromkeys(before), dict.fromkeys(after)
    for topic in old:
        if topic not in new and (groups := state.subscribers.get(topic)):
            changes.delete(groups, group_id)
            if not groups:
                changes.delete(state.subscribers, topic)
    for topic in new:
        if topic not in old:
            if topic not in state.subscribers:
                changes.set(state.subscribers, topic, {})
            changes.set(state.subscribers[topic], group_id, None)


OFFSETS_TOPIC: Final = "__consumer_offsets"


class OperationContext(GroupOperation):
    """One operation against one shard, with access to all groups of the shard. Only ``emit`` changes ``state``."""

    __slots__ = ()

    state: ShardState

    def keep_simple_group(self, group_id: str) -> None:
        """Create a group without a record, for ``Quirks.commit_makes_group`` only.

        The group stays even if the current operation fails.
        """
        self._shard.changes.journal.set(self.state.groups, group_id, self.state.new_simple_group(group_id))
        self._shard.changes.keep()

    def forget_group(self, group_id: str) -> None:
        """Remove a group without a record, for the quirk ``late_join_forgets_group``."""
        self.detach_group(group_id, ())
        self._shard.changes.keep()

    def detach_group(self, group_id: str, topics: Iterable[str]) -> None:
        """Remove a group from the state before its tombstones are emitted. The tombstones then have no effect.

        Earlier changes of this operation to the group are undone: Kafka applies no record of an operation in which a
        group of another kind replaces the group. ``topics`` is the group's own table of its subscriptions.
        """
        self._shard.changes.undo_operation()
        self._shard.changes.journal.delete(self.state.groups, group_id)
        subscribe(self.state, self._shard.changes.journal, group_id, topics, ())
