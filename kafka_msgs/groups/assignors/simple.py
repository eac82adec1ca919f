"""Kafka's ``SimpleAssignor``: members of a share group share partitions.

If a group has more members than partitions, several members get the same partition. Members keep their partitions as
far as balance allows. If members subscribe to different topics, each topic is divided separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import Final, TypeAlias
from uuid import UUID

from kafka_msgs.errors import AssignorError
from kafka_msgs.groups.assignors.assignment_builder import AssignmentBuilder, in_order
from kafka_msgs.groups.assignors.java_hash_order import HashTable, NumberTable, map_copy_capacity
from kafka_msgs.groups.assignors.spec import Assignment, GroupSpec, Partitions
from kafka_msgs.groups.runtime.timeline_map import java_hash_code

__all__ = ["assign_simple"]

_Partition: TypeAlias = tuple[UUID, int]

_NOBODY: Final = NumberTable()


def assign_simple(spec: GroupSpec) -> Assignment:
    """Assign partitions to one or more members each. Raises ``AssignorError`` for a topic that does not exist."""
    subscriptions = [member.subscription for member in spec.members.values()]
    if not any(each.names if spec.homogeneous else each.topics for each in subscriptions):
        return {}
    targets = [AssignmentBuilder(member.assigned) for member in spec.members.values()]
    if spec.homogeneous:
        _share_all(spec, targets)
    else:
        _share_each(spec, targets)
    return {member_id: target.result() for member_id, target in zip(spec.members, targets, strict=True)}


def _share_all(spec: GroupSpec, targets: Sequence[AssignmentBuilder]) -> None:
    """Divide the partitions of all topics among all members, which subscribe to the same topics."""
    topics = next(iter(spec.members.values())).subscription.topics
    share = _Share(spec, topics, range(len(targets)), targets, _pair_code)
    for member, target in enumerate(targets):
        owned = in_order(target.assigned)
        share.keep(member, {topic: numbers for topic, numbers in owned.items() if topic in topics})
        for topic in owned.keys() - set(topics):
            target.drop(topic)
    share.assign()


def _share_each(spec: GroupSpec, targets: Sequence[AssignmentBuilder]) -> None:
    """Divide each topic's partitions among its subscribers. Partitions of topics without subscribers do not move."""
    topics: HashTable[UUID] = HashTable(java_hash_code)
    subscribers: dict[UUID, list[int]] = {}
    for number, member in enumerate(spec.members.values()):
        for topic in member.subscription.topics:
            topics.put(topic)
            subscribers.setdefault(topic, []).append(number)
    owned = [in_order(target.assigned) for target in targets]
    for topic in topics.walk():
        share = _Share(spec, [topic], subscribers[topic], targets, _number_code)
        for number, each in enumerate(owned):
            if topic in each:
                share.keep(number, {topic: each[topic]})
        share.assign()


def _pair_code(partition: _Partition) -> int:
    """Return the hash code of Kafka's ``TopicIdPartition``, a record of two."""
    return 31 * java_hash_code(partition[0]) + partition[1]


def _number_code(partition: _Partition) -> int:
    return partition[1]


class _Share:
    """Divides partitions among subscribers, which are numbers of members."""

    def __init__(
        self,
        spec: GroupSpec,
        topics: Sequence[UUID],
        subscribers: Sequence[int],
        targets: Sequence[AssignmentBuilder],
        code: Callable[[_Partition], int],
    ) -> None:
        self.targets = targets
        self.wanted = [(topic, number) for topic in topics for number in _assignable(spec, topic)]
        self.sharing = -(-len(subscribers) // len(self.wanted)) if self.wanted else 0
        share = self.sharing * len(self.wanted) / len(subscribers)
        self.desired = {
            member: ceil(share * (place + 1)) - ceil(share * place) for place, member in enumerate(subscribers)
        }
        self.holders: dict[_Partition, NumberTable] = {}
        self.held: dict[int, HashTable[_Partition]] = {}
        self.table = HashTable(code, capacity=map_copy_capacity(len(self.wanted) + 1))
        self.code = code

    def keep(self, member: int, owned: Partitions) -> None:
        """Record a member's current partitions of the topics, in the order of Kafka's tables."""
        for topic, numbers in owned.items():
            for number in numbers:
                partition = (topic, number)
                self.table.compute(partition)
                self.holders.setdefault(partition, NumberTable()).put(member)
                self.held.setdefault(member, HashTable(self.code)).put(partition)

    def assign(self) -> None:
        """Remove surplus partitions from members and surplus members from partitions, then fill open shares."""
        for member, held in self.held.items():
            for partition in held.walk()[: max(len(held) - self.desired.get(member, 0), 0)]:
                self._take(partition, member)
        for partition, holders in self.holders.items():
            for member in holders.walk()[: max(len(holders) - self.sharing, 0)]:
                self._take(partition, member)
        for partition in self.wanted:
            self.table.compute(partition)
        for member, partitions in self._give().items():
            for topic, numbers in groupby(partitions, key=itemgetter(0)):
                listed = [number for _, number in numbers]
                self.targets[member].add(topic, list(dict.fromkeys(listed)))
                if len(set(listed)) < len(listed):
                    self.targets[member].add(topic, ())

    def _take(self, partition: _Partition, member: int) -> None:
        self.held[member].remove(partition)
        self.holders[partition].remove(member)
        self.targets[member].remove(*partition)

    def _give(self) -> dict[int, list[_Partition]]:
        """Return the new partitions of each member.

        Partitions with too few members go in turn to members below their share. A partition that all of these members
        already have gets no further members. As in Kafka, a partition may go to a member twice if there are few
        members, which has the effect of one assignment.
        """
        given: dict[int, list[_Partition]] = {}
        room = {member: count - len(self.held.get(member, ())) for member, count in self.desired.items()}
        unfilled = [member for member in sorted(room) if room[member] > 0]
        place, useful = 0, False
        for partition in self.table.walk():
            holders = self.holders.get(partition, _NOBODY)
            missing = self.sharing - len(holders)
            while missing > 0:
                if place == len(unfilled):
                    if not useful:
                        break
                    place, useful = 0, False
                    if not unfilled:
                        raise AssignorError(reason="No member is left for a partition that is to be shared")
                member = unfilled[place]
                place += 1
                if member in holders:
                    continue
                missing -= 1
                useful = True
                gained = given.setdefault(member, [])
                if not gained or gained[-1] != partition:
                    room[member] -= 1
                gained.append(partition)
                if room[member] <= 0:
                    place -= 1
                    del unfilled[place]
            if not unfilled:
                break
        return given


def _assignable(spec: GroupSpec, topic: UUID) -> Sequence[int]:
    numbers = range(spec.count(topic))
    if spec.assignable is None:
        return numbers
    allowed = spec.assignable.get(topic, ())
    return [number for number in numbers if number in allowed]
