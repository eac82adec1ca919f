"""A member's target assignment while an assignor changes it, in the order of Kafka's tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from kafka_msgs.groups.assignors.java_hash_order import (
    DEFAULT_CAPACITY,
    HashTable,
    NumberTable,
    copy_capacity,
    hash_map_order,
    set_order,
    sized_capacity,
)
from kafka_msgs.groups.assignors.spec import Partitions
from kafka_msgs.groups.runtime.timeline_map import java_hash_code

__all__ = ["AssignmentBuilder", "assigned_partitions", "in_order"]


def in_order(assigned: Partitions) -> dict[UUID, tuple[int, ...]]:
    """Return an assignment that was decoded from a record, in the order in which Kafka iterates over it."""
    return {topic: tuple(set_order(assigned[topic])) for topic in hash_map_order(assigned)}


def assigned_partitions(topics: Iterable[Any]) -> Partitions:
    """Return the partitions of a record by topic id, in the order in which Kafka iterates over them."""
    return in_order({each.topic_id: each.partitions for each in topics})


class AssignmentBuilder:
    """A member's target assignment while it changes; the previous assignment is copied on the first change.

    The copied tables have the sizes that ``AssignorHelpers.deepCopyAssignment`` gives them.
    """

    __slots__ = ("_numbers", "_topics", "assigned")

    def __init__(self, assigned: Partitions) -> None:
        self.assigned = assigned
        self._topics: HashTable[UUID] | None = None
        self._numbers: dict[UUID, NumberTable | Sequence[int]] = {}

    def drop(self, topic: UUID) -> None:
        """Remove a topic that the member has."""
        self._copy().remove(topic)
        del self._numbers[topic]

    def remove(self, topic: UUID, number: int) -> bool:
        """Remove a partition that the member has; return whether none of the topic is left. The topic stays."""
        self._copy()
        numbers = self._opened(topic)
        numbers.remove(number)
        return not len(numbers)

    def add(self, topic: UUID, numbers: Sequence[int], *, capacity: int = DEFAULT_CAPACITY) -> None:
        """Add partitions that the member does not have. ``capacity`` is the initial capacity of a new topic's set."""
        topics = self._copy()
        topics.compute(topic)
        if topic not in self._numbers:
            self._numbers[topic] = NumberTable(capacity=capacity)
        if len(numbers) > 1:
            topics.compute(topic)
        self._opened(topic).put_all(numbers)

    def result(self) -> Partitions:
        """Return the assignment: the very object that the member had if nothing changed."""
        if self._topics is None:
            return self.assigned
        return {topic: self._opened(topic).walk() for topic in self._topics.walk()}

    def _copy(self) -> HashTable[UUID]:
        if self._topics is None:
            capacity = sized_capacity(len(self.assigned))
            self._topics = HashTable(java_hash_code, hash_map_order(self.assigned), capacity=capacity)
            self._numbers = dict(self.assigned)
        return self._topics

    def _opened(self, topic: UUID) -> NumberTable:
        numbers = self._numbers[topic]
        if not isinstance(numbers, NumberTable):
            numbers = self._numbers[topic] = NumberTable(numbers, capacity=copy_capacity(len(numbers)))
        return numbers
