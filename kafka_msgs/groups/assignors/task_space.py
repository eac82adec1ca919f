"""Tasks as numbers.

Subtopologies in ascending order of their ids have consecutive numbers, one for each partition. The numeric order is
therefore the order of tasks in records, and a list can replace a dict of tasks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence

from kafka_msgs.groups.assignors.spec import SubtopologySpec, Tasks
from kafka_msgs.groups.runtime.timeline_map import string_key

__all__ = ["TaskSpace"]


class TaskSpace:
    """The tasks of a topology as numbers."""

    def __init__(self, subtopologies: Sequence[SubtopologySpec]) -> None:
        self.subtopologies = sorted(subtopologies, key=lambda each: string_key(each.id))
        self.first: dict[str, int] = {}
        self.size = 0
        for each in self.subtopologies:
            self.first[each.id] = self.size
            self.size += each.partitions
        self._partitions = {each.id: each.partitions for each in subtopologies}

    def by_partition(self, *, stateful: bool = False) -> list[int]:
        """Return all tasks, or only the tasks of stateful subtopologies, by partition, then by subtopology."""
        spans = [(self.first[each.id], each.partitions) for each in self.subtopologies if each.stateful or not stateful]
        longest = max((count for _, count in spans), default=0)
        return [first + number for number in range(longest) for first, count in spans if number < count]

    def numbers(self, tasks: Mapping[str, Collection[int]]) -> Iterator[int]:
        """Yield the numbers of those tasks that the topology has."""
        for subtopology, partitions in tasks.items():
            first, limit = self.first.get(subtopology, 0), self._partitions.get(subtopology, 0)
            for partition in partitions:
                if partition < limit:
                    yield first + partition

    def sums(self, offsets: Mapping[str, Mapping[int, int]]) -> Iterator[tuple[int, int]]:
        """Yield the numbers of the tasks that the topology has, each with the offset that a member reported for it."""
        for subtopology, reported in offsets.items():
            first, limit = self.first.get(subtopology, 0), self._partitions.get(subtopology, 0)
            for partition, offset in reported.items():
                if partition < limit:
                    yield first + partition, offset

    def tasks(self, numbers: list[int]) -> Tasks:
        """Return tasks by subtopology, both in ascending order."""
        numbers.sort()
        tasks: dict[str, tuple[int, ...]] = {}
        start = 0
        for each in self.subtopologies:
            first = self.first[each.id]
            stop = bisect_left(numbers, first + each.partitions, start)
            if start < stop:
                tasks[each.id] = tuple([number - first for number in numbers[start:stop]])
            start = stop
        return tasks

    def name(self, task: int) -> str:
        """Return the name of a task in Kafka's messages."""
        each = next(each for each in reversed(self.subtopologies) if self.first[each.id] <= task and each.partitions)
        return f"{each.id}_{task - self.first[each.id]}"
