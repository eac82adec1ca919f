"""Kafka's ``UniformAssignor``: members have about the same number of partitions, and most partitions stay in place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

from kafka_msgs.errors import AssignorError
from kafka_msgs.groups.assignors.assignment_builder import AssignmentBuilder, in_order
from kafka_msgs.groups.assignors.java_hash_order import copy_capacity, hash_map_order
from kafka_msgs.groups.assignors.spec import Assignment, GroupSpec
from kafka_msgs.groups.assignors.uniform_heterogeneous import assign_heterogeneous

__all__ = ["assign_uniform"]


def assign_uniform(spec: GroupSpec) -> Assignment:
    """Assign partitions evenly. Raises ``AssignorError`` for a topic that does not exist."""
    if not spec.members:
        return {}
    return _assign_homogeneous(spec) if spec.homogeneous else assign_heterogeneous(spec)


def _assign_homogeneous(spec: GroupSpec) -> Assignment:
    """Assign partitions if all members subscribe to the same topics.

    Each member may keep as many partitions as its quota. Surplus partitions, and partitions without an owner, go to the
    members below their quota, in order.
    """
    subscription = next(iter(spec.members.values())).subscription
    topics = hash_map_order(subscription.topics, capacity=copy_capacity(subscription.names))
    if not topics:
        return {}
    free = _UnassignedPartitions(spec, topics)
    count = len(spec.members)
    quota, extras = divmod(sum(map(spec.count, topics)), count)
    targets = {member_id: AssignmentBuilder(member.assigned) for member_id, member in spec.members.items()}
    unfilled: list[tuple[AssignmentBuilder, int]] = []
    for place, target in enumerate(targets.values()):
        extra = extras > 0
        room = _revoke(target, quota + extra, free)
        # A member that is not full leaves the extra partition to other members while enough of them remain.
        if room > 0 and extra and count - place > extras:
            room -= 1
            extra = False
        if room > 0:
            unfilled.append((target, room))
        extras -= extra
    for target, room in unfilled:
        for topic, numbers in free.take(room):
            target.add(topic, numbers)
    if not free.empty:
        raise AssignorError(reason="Partitions were left unassigned")
    return {member_id: target.result() for member_id, target in targets.items()}


def _revoke(target: AssignmentBuilder, quota: int, free: _UnassignedPartitions) -> int:
    """Remove unsubscribed and surplus partitions from a member; return how many more it may have."""
    assigned = target.assigned
    if assigned.keys() <= free.topics and sum(map(len, assigned.values())) <= quota:
        return quota - sum(map(len, assigned.values()))
    for topic, numbers in in_order(assigned).items():
        if topic not in free.topics:
            target.drop(topic)
            continue
        for number in numbers[quota:]:
            free.runs.append((topic, (number,)))
            if target.remove(topic, number):
                target.drop(topic)
        quota = max(quota - len(numbers), 0)
    return quota


class _UnassignedPartitions:
    """The partitions without an owner, grouped by topic, in the order in which members get them."""

    def __init__(self, spec: GroupSpec, topics: Sequence[UUID]) -> None:
        self.topics = frozenset(topics)
        self.runs: list[tuple[UUID, Sequence[int]]] = []
        self._run = self._start = 0
        owned = _owned(spec)
        for topic in topics:
            numbers: Sequence[int] = range(spec.count(topic))
            if taken := owned.get(topic):
                numbers = [number for number in numbers if number not in taken]
            if numbers:
                self.runs.append((topic, numbers))

    def take(self, count: int) -> Iterator[tuple[UUID, Sequence[int]]]:
        """Take the next ``count`` partitions, or as many as remain."""
        while count > 0 and not self.empty:
            topic, numbers = self.runs[self._run]
            taken = numbers[self._start : self._start + count]
            count -= len(taken)
            self._start += len(taken)
            if self._start == len(numbers):
                self._run += 1
                self._start = 0
            if taken:
                yield topic, taken

    @property
    def empty(self) -> bool:
        """Whether all have been taken."""
        return self._run == len(self.runs)


def _owned(spec: GroupSpec) -> Mapping[UUID, Collection[int]]:
    if spec.owned is not None:
        return spec.owned
    owned: dict[UUID, set[int]] = {}
    for member in spec.members.values():
        for topic, numbers in member.assigned.items():
            owned.setdefault(topic, set()).update(numbers)
    return owned
