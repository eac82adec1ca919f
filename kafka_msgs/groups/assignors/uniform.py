"""Kafka's ``UniformAssignor``: members have about the same number of partitions, and most partitions stay in place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from uuid import UUID

from kafka_msgs.errors import AssignorError
from kafka_msgs.groups.assignors.assignment_builder import AssignmentBuilder, in_order
from kafka_msgs.groups.assignors.java_hash_order import copy_capacity, hash_map_order, map_copy_capacity
from kafka_msgs.groups.assignors.spec import Assignment, GroupSpec, owned_partitions

__all__ = ["assign_uniform"]

_ROUNDS: Final = 16
"""The maximum number of balancing rounds over all topics."""


def assign_heterogeneous(spec: GroupSpec) -> Assignment:
    """Assign partitions evenly. Raises ``AssignorError`` for a topic that does not exist."""
    state = _State(spec)
    if not state.subscribers:
        return {}
    state.keep(spec)
    state.assign_free()
    state.balance()
    return {member_id: target.result() for member_id, target in zip(spec.members, state.targets, strict=True)}


class _State:
    """The state of one assignment. Members are numbered in their order."""

    def __init__(self, spec: GroupSpec) -> None:
        self.subscribers: dict[UUID, list[int]] = {}
        for member, each in enumerate(spec.members.values()):
            for topic in each.subscription.topics:
                self.subscribers.setdefault(topic, []).append(member)
        self.owners: dict[UUID, list[int | None]] = {topic: [None] * spec.count(topic) for topic in self.subscribers}
        self.targets = [AssignmentBuilder(member.assigned) for member in spec.members.values()]
        self.sizes = [0] * len(self.targets)

    def keep(self, spec: GroupSpec) -> None:
        """Keep the partitions of topics that members still subscribe to."""
        for member, each in enumerate(spec.members.values()):
            subscribed = frozenset(each.subscription.topics)
            for topic, numbers in each.assigned.items():
                if topic not in subscribed:
                    self.targets[member].drop(topic)
                    continue
                owners = self.owners[topic]
                if numbers and max(numbers) >= len(owners):
                    raise AssignorError(reason=f"A member has partition {max(numbers)} of topic {topic}.")
                self.sizes[member] += len(numbers)
                for number in numbers:
                    owners[number] = member

    def assign_free(self) -> None:
        """Give the partitions without an owner to subscribers."""
        free = {
            topic: [number for number, owner in enumerate(owners) if owner is None]
            for topic, owners in self.owners.items()
        }
        for topic in self._by_load(topic for topic, numbers in free.items() if numbers):
            balancer = _Balancer(self.subscribers[topic], self.sizes)
            for number in free[topic]:
                self._move(topic, number, balancer.next_least())

    def _by_load(self, topics: Iterable[UUID]) -> list[UUID]:
        """Return topics by partitions per subscriber, most first; then by subscribers, fewest first; then by id."""

        def key(topic: UUID) -> tuple[float, int, int, int]:
            subscribers = len(self.subscribers[topic])
            most, least = topic.int >> 64, topic.int & (2**64 - 1)
            return (-len(self.owners[topic]) / subscribers, subscribers, _signed(most), _signed(least))

        return sorted(topics, key=key)

    def _move(self, topic: UUID, number: int, member: int) -> None:
        """Give a partition to a member, and take it from its owner."""
        owner = self.owners[topic][number]
        if owner is not None:
            if self.targets[owner].remove(topic, number):
                self.targets[owner].drop(topic)
            self.sizes[owner] -= 1
        share = -(-len(self.owners[topic]) // len(self.subscribers[topic]))
        self.targets[member].add(topic, (number,), capacity=map_copy_capacity(share))
        self.owners[topic][number] = member
        self.sizes[member] += 1

    def balance(self) -> None:
        """Balance topic after topic until all are balanced as they come round again, or for ``_ROUNDS`` rounds."""
        topics = self._by_load(topic for topic, subscribers in self.subscribers.items() if len(subscribers) > 1)
        last: UUID | None = None
        for topic in topics * _ROUNDS:
            if topic == last:
                return
            if self._balance_topic(topic) or last is None:
                last = topic

    def _balance_topic(self, topic: UUID) -> bool:
        """Move partitions of a topic from members with many to members with few; return whether any moved."""
        balancer = _Balancer(self.subscribers[topic], self.sizes)
        if balancer.imbalance <= 1:
            return False
        held: dict[int | None, list[int]] = {}
        for number, owner in enumerate(self.owners[topic]):
            held.setdefault(owner, []).append(number)
        moved = False
        while not balancer.balanced:
            giver = balancer.next_most()
            while giver is not None and not held.get(giver):
                balancer.exclude_most()
                giver = balancer.next_most()
            if giver is None:
                break
            number = held[giver].pop()
            taker = balancer.next_least()
            if balancer.balanced:
                break
            self._move(topic, number, taker)
            moved = True
        return moved


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


class _Balancer:
    """The subscribers of a topic by their number of partitions; selects the next receiver and the next giver.

    Two ranges of the sorted members grow towards each other. The members with the fewest partitions all rise to one
    level before the range includes the next members. The members with the most partitions all fall to one level.
    """

    def __init__(self, members: Sequence[int], sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._members = sorted(members, key=lambda member: (sizes[member], member))
        least, most = sizes[self._members[0]], sizes[self._members[-1]]
        self.imbalance = most - least
        self._least_level = least - 1
        self._least_end = self._least_next = 0
        self._most_level = most + 1
        self._most_start = self._most_end = len(members)
        self._most_next = len(members) - 1

    @property
    def balanced(self) -> bool:
        """Whether the two levels differ by one at most."""
        return self._most_level - self._least_level <= 1

    def next_least(self) -> int:
        """Return the member that receives the next partition."""
        if self._least_next >= self._least_end:
            self._least_level += 1
            while self._least_end < len(self._members) and self._size(self._least_end) == self._least_level:
                self._least_end += 1
            self._least_next = 0
        self._least_next += 1
        return self._members[self._least_next - 1]

    def next_most(self) -> int | None:
        """Return the member that gives away the next partition; None if all have been excluded."""
        if self._most_next < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_level = self._size(self._most_start - 1)
            else:
                self._most_level -= 1
            while self._most_start > 0 and self._size(self._most_start - 1) == self._most_level:
                self._most_start -= 1
            self._most_next = self._most_end - 1
        if self._most_next < 0:
            return None
        self._most_next -= 1
        return self._members[self._most_next + 1]

    def exclude_most(self) -> None:
        """Exclude the member that ``next_most`` returned: it has no partition to give away."""
        self._most_end -= 1
        place = self._most_next + 1
        self._members[place], self._members[self._most_end] = self._members[self._most_end], self._members[place]

    def _size(self, place: int) -> int:
        return self._sizes[self._members[place]]


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
        owned = spec.owned
        if owned is None:
            owned = owned_partitions(member.assigned for member in spec.members.values())
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
