"""The state of a shard: recorded hard state, and unrecorded soft state.

``ShardState`` is hard state. Only appliers change it, and only through their ``changes`` argument. An applier
applies the records of one key class, both new records and loaded records::

    def apply_metadata(
        state: ShardState, changes: Changes, key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None
    ) -> None:
        group = state.groups.get(key.group_id)
        if value is None:
            changes.delete(state.groups, key.group_id)
        elif group is None:
            changes.set(state.groups, key.group_id, StreamsGroup(...))
        else:
            changes.assign(group, "metadata", value)

    APPLIERS = {StreamsGroupMetadataKey: apply_metadata}

A new object may be changed directly before it is added to the state. A set is a dict with None as values. A table with
a visible order is a ``TimelineHashMap``.

``SoftState`` is lost with the leadership of the partition: pending requests, caches, flags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from kafka_msgs.groups.timeline_map import TimelineHashMap
from kafka_msgs.groups.undo_log import Changes
from kafka_msgs.internal_topics.records import NO_PRODUCER
from kafka_msgs.messages.offset_commit_value import OffsetCommitValue

if TYPE_CHECKING:
    from kafka_msgs.groups.group import Group

__all__ = ["Applier", "OffsetAndPosition", "OffsetTable", "ShardState", "SoftState", "subscribe"]

T = TypeVar("T")


class OffsetAndPosition(NamedTuple):
    """A committed offset: its value, and the offset of its record in the log."""

    value: OffsetCommitValue
    position: int


OffsetTable: TypeAlias = TimelineHashMap[str, TimelineHashMap[str, TimelineHashMap[int, OffsetAndPosition]]]
"""Committed offsets by group, topic and partition."""


class ShardState:
    """The recorded state of one partition of ``__consumer_offsets``.

    ``groups`` has all groups by their name. ``offsets`` has the committed offsets, ``pending_offsets`` the offsets of
    open transactions by producer id, and ``open_transactions`` the producers with pending offsets by group, topic and
    partition. ``subscribers`` has, for each topic, the groups that subscribe to it.

    ``new_simple_group`` creates the group for offsets of a group that no member has joined. ``position``,
    ``producer_id`` and ``now`` describe the record that is being applied: its offset in the log, the producer of its
    transaction, and the time in ms.
    """

    __slots__ = (
        "groups",
        "new_simple_group",
        "now",
        "offsets",
        "open_transactions",
        "pending_offsets",
        "position",
        "producer_id",
        "subscribers",
    )

    def __init__(self, new_simple_group: Callable[[str], Group]) -> None:
        self.new_simple_group = new_simple_group
        self.groups: TimelineHashMap[str, Group] = TimelineHashMap()
        self.offsets: OffsetTable = TimelineHashMap()
        self.pending_offsets: TimelineHashMap[int, OffsetTable] = TimelineHashMap()
        self.open_transactions: TimelineHashMap[str, TimelineHashMap[str, TimelineHashMap[int, dict[int, None]]]] = (
            TimelineHashMap()
        )
        self.subscribers: dict[str, dict[str, None]] = {}
        self.position = 0
        self.now = 0
        self.producer_id = NO_PRODUCER


Applier: TypeAlias = Callable[[ShardState, Changes, Any, Any], None]
"""Applies the records of one key class. Its arguments are the state, the changes, the key, and the value or None."""


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


class SoftState:
    """The unrecorded state of a shard. The soft state of one group is in ``Group.soft``."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[type[Any], Any] = {}

    def get(self, cls: type[T]) -> T:
        """Return the instance of a class. It is created, without arguments, on first use."""
        part: T | None = self._parts.get(cls)
        if part is None:
            part = self._parts[cls] = cls()
        return part
