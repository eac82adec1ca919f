"""The state of a shard: recorded hard state, and unrecorded soft state.

Only appliers change hard state, and only through their ``changes`` argument. An applier applies the records of one key
class, both new records and loaded records::

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
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from kafka_msgs.groups.runtime.undo_log import Changes
from kafka_msgs.internal_topics.records import NO_PRODUCER

__all__ = ["Applier", "HardState", "SoftState"]

T = TypeVar("T")


class HardState:
    """The recorded state of one partition. A coordinator adds its tables.

    ``position``, ``producer_id`` and ``now`` describe the record that is being applied: its offset in the log, the
    producer of its transaction, and the time in ms.
    """

    __slots__ = ("now", "position", "producer_id")

    def __init__(self) -> None:
        self.position = 0
        self.now = 0
        self.producer_id = NO_PRODUCER


Applier: TypeAlias = Callable[[Any, Changes, Any, Any], None]
"""Applies the records of one key class. Its arguments are the state, the changes, the key, and the value or None."""


class SoftState:
    """The unrecorded state of a shard. It is lost with the leadership of the partition."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: dict[type[Any], Any] = {}

    def get(self, cls: type[T]) -> T:
        """Return the instance of a class. It is created, without arguments, on first use."""
        part: T | None = self._parts.get(cls)
        if part is None:
            part = self._parts[cls] = cls()
        return part
