"""The recorded state of one partition of ``__consumer_offsets``. Only the appliers of the protocols change it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from kafka_msgs.groups.group import Group, OffsetAndPosition
from kafka_msgs.groups.runtime.hard_state import HardState
from kafka_msgs.groups.runtime.timeline_map import TimelineHashMap
from kafka_msgs.groups.runtime.undo_log import Changes

__all__ = ["OffsetTable", "ShardState", "subscribe"]

OffsetTable: TypeAlias = TimelineHashMap[str, TimelineHashMap[str, TimelineHashMap[int, OffsetAndPosition]]]
"""Committed offsets by group, topic and partition."""


class ShardState(HardState):
    """The recorded state of one partition of ``__consumer_offsets``.

    ``groups`` has all groups by their name. ``offsets`` has the committed offsets, ``pending_offsets`` the offsets of
    open transactions by producer id, and ``open_transactions`` the producers with pending offsets by group, topic and
    partition. ``subscribers`` has, for each topic, the groups that subscribe to it.

    ``new_simple_group`` creates the group for offsets of a group that no member has joined.
    """

    __slots__ = (
        "groups",
        "new_simple_group",
        "offsets",
        "open_transactions",
        "pending_offsets",
        "subscribers",
    )

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
