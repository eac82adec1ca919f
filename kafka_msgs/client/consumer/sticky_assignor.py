"""The sticky assignors: balanced assignments with as few partition moves as possible.

Each member keeps its owned partitions as far as the balance allows. The cooperative assignor leaves a moving partition
unassigned during the current rebalance: its owner first gives it up, and the next rebalance assigns it to the new owner
(KIP-429). If members have racks, a partition goes to a member in a rack with a replica if the balance allows it
(KIP-881), and members do not keep partitions without a replica in their rack. Kafka's classes are
``AbstractStickyAssignor``, ``StickyAssignor`` and ``CooperativeStickyAssignor``. If all members subscribe to the same
topics, the result is identical to Kafka's; otherwise it has the same properties.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heapreplace
from typing import Final

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.consumer_protocol import Assigned, AssignorMember
from kafka_msgs.client.consumer.racks import NO_RACKS, RackAffinity, Racks, rack_affinity

__all__ = ["assign_cooperatively", "assign_sticky", "drop_transfers"]

_AFTER: Final = "\0"
"""A suffix that turns a member id into the next string in sort order: the next turn starts after that member."""


def assign_cooperatively(
    counts: Mapping[str, int], members: Sequence[AssignorMember], racks: Racks = NO_RACKS
) -> Assigned:
    """Return the sticky assignment without partitions that would change owners."""
    return drop_transfers(assign_sticky(counts, members, racks), members)


def assign_sticky(counts: Mapping[str, int], members: Sequence[AssignorMember], racks: Racks = NO_RACKS) -> Assigned:
    """Return a balanced assignment in which members keep as many of their partitions as the balance allows.

    ``counts`` contains the number of partitions of each existing topic.
    """
    topics = frozenset[str]().union(*(member.topics for member in members))
    partitions = list(_all_partitions(counts, topics))
    near = rack_affinity(members, partitions, racks)
    owned = {
        member_id: [each for each in mine if not near.is_remote(member_id, each)]
        for member_id, mine in _valid_claims(counts, members).items()
    }
    if all(member.topics == topics for member in members):
        return _assign_equals(partitions, owned, near)
    return _assign_different(partitions, members, owned, near)


def drop_transfers(assigned: Assigned, members: Sequence[AssignorMember]) -> Assigned:
    """Remove each partition from its new owner while another member still owns it."""
    owners: dict[TopicPartition, set[str]] = {}
    for member in members:
        for partition in member.owned:
            owners.setdefault(partition, set()).add(member.member_id)
    return {
        member_id: [each for each in partitions if each not in owners or member_id in owners[each]]
        for member_id, partitions in assigned.items()
    }


def _valid_claims(counts: Mapping[str, int], members: Sequence[AssignorMember]) -> Assigned:
    """Return the valid ownership claims of each member.

    The partition must exist, and the member must still subscribe to its topic. If several members claim a partition,
    the claim with the highest generation is valid; if two members share that generation, no claim is valid.
    """
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member in members:
        for partition in member.owned:
            if partition.topic not in member.topics or partition.partition >= counts.get(partition.topic, 0):
                continue
            generation, _ = best.get(partition, (member.generation - 1, None))
            if member.generation >= generation:
                best[partition] = (member.generation, None if member.generation == generation else member.member_id)
    claims: Assigned = {member.member_id: [] for member in members}
    for member in members:
        mine = (each for each in dict.fromkeys(member.owned) if best.get(each, (0, None))[1] == member.member_id)
        claims[member.member_id].extend(mine)
    return claims


def _all_partitions(counts: Mapping[str, int], topics: frozenset[str]) -> Iterator[TopicPartition]:
    for topic in sorted(topics):
        for number in range(counts.get(topic, 0)):
            yield TopicPartition(topic, number)


def _assign_equals(partitions: Sequence[TopicPartition], owned: Assigned, near: RackAffinity) -> Assigned:
    """Divide partitions among members with identical subscriptions.

    Each member gets the lower quota, and as many members as needed get one more partition. Members keep their
    partitions up to their quota. The remaining partitions go in order to members with free quota, starting with members
    below the lower quota.
    """
    low, richer = divmod(len(partitions), len(owned) or 1)
    high = low + (richer > 0)
    assigned: Assigned = {}
    for member_id, claimed in sorted(owned.items()):
        mine = sorted(claimed, key=lambda each: (each.partition, each.topic))
        rich = high > low and len(mine) >= high and richer > 0
        richer -= rich
        assigned[member_id] = mine[: high if rich else low]
    taken = {partition for mine in assigned.values() for partition in mine}
    left = [each for each in partitions if each not in taken]
    dealer = _Dealer(assigned, low, richer)
    if near:
        left = dealer.deal_near(left, near)
    dealer.deal(left)
    return assigned


class _Dealer:
    """A dealer that fills members up to the lower quota, then deals one more partition to some of them."""

    def __init__(self, assigned: Assigned, low: int, richer: int) -> None:
        self._assigned = assigned
        self._low = low
        self._richer = richer
        self._below = sorted(member for member, mine in assigned.items() if len(mine) < low)
        self._at_low = dict.fromkeys(sorted(member for member, mine in assigned.items() if len(mine) == low))

    def deal(self, partitions: Iterable[TopicPartition]) -> None:
        """Deal partitions to the members in turn."""
        below, at_low = deque(self._below), deque(self._at_low)
        for partition in partitions:
            if below:
                member = below.popleft()
                self._assigned[member].append(partition)
                (below if len(self._assigned[member]) < self._low else at_low).append(member)
            elif self._richer:
                self._assigned[at_low.popleft()].append(partition)
                self._richer -= 1

    def deal_near(self, partitions: Iterable[TopicPartition], near: RackAffinity) -> list[TopicPartition]:
        """Deal partitions in turn to members in their racks. Return the partitions that no such member can take.

        Partitions with few members in their racks come first.
        """
        racks = _Capacities(self._below, self._at_low, near)
        left = []
        for partition in sorted(partitions, key=racks.members_near):
            member = racks.next_below(partition)
            if member is not None:
                self._assigned[member].append(partition)
                if len(self._assigned[member]) >= self._low:
                    racks.reaches_low(member)
            elif self._richer and (member := racks.next_at_low(partition)) is not None:
                self._assigned[member].append(partition)
                self._richer -= 1
            else:
                left.append(partition)
        self._below, self._at_low = racks.below, racks.at_low
        return left


class _Capacities:
    """Members with free quota by rack: below the lower quota in turn, at the lower quota in order."""

    def __init__(self, below: Sequence[str], at_low: Iterable[str], near: RackAffinity) -> None:
        self._near = near
        self._turn = ""
        self._below: dict[str, list[str]] = {}
        self._at_low: dict[str, deque[tuple[int, str]]] = {}
        self._all_below = dict.fromkeys(below)
        self._order: dict[str, int] = {}
        self._members_in: dict[str, int] = {}
        for rack in near.members.values():
            self._members_in[rack] = self._members_in.get(rack, 0) + 1
        for member in below:
            if (rack_of := near.rack(member)) is not None:
                self._below.setdefault(rack_of, []).append(member)
        for member in at_low:
            self._add_at_low(member)

    @property
    def below(self) -> list[str]:
        """The members below the lower quota."""
        return list(self._all_below)

    @property
    def at_low(self) -> dict[str, None]:
        """The members at the lower quota, in the order they reached it."""
        return dict.fromkeys(self._order)

    def members_near(self, partition: TopicPartition) -> int:
        """Return the number of members in the racks of a partition."""
        return sum(self._members_in.get(rack, 0) for rack in self._near.racks(partition))

    def next_below(self, partition: TopicPartition) -> str | None:
        """Return the next member in turn below the lower quota in the racks of a partition, or None."""
        found = [queue for rack in self._near.racks(partition) if (queue := self._below.get(rack))]
        later = [queue[place] for queue in found if (place := bisect_left(queue, self._turn)) < len(queue)]
        member = min(later or [queue[0] for queue in found], default=None)
        if member is not None:
            self._turn = member + _AFTER
        return member

    def reaches_low(self, member: str) -> None:
        """Record that a member has reached the lower quota."""
        rack = self._near.members[member]
        queue = self._below[rack]
        del queue[bisect_left(queue, member)]
        del self._all_below[member]
        self._add_at_low(member)

    def next_at_low(self, partition: TopicPartition) -> str | None:
        """Remove and return the first member at the lower quota in the racks of a partition, or None."""
        queues = [queue for rack in self._near.racks(partition) if (queue := self._at_low.get(rack))]
        if not queues:
            return None
        _, member = min(queues, key=lambda queue: queue[0]).popleft()
        del self._order[member]
        return member

    def _add_at_low(self, member: str) -> None:
        place = self._order[member] = next(reversed(self._order.values()), -1) + 1
        if (rack := self._near.rack(member)) is not None:
            self._at_low.setdefault(rack, deque()).append((place, member))


def _assign_different(
    partitions: Iterable[TopicPartition], members: Sequence[AssignorMember], owned: Assigned, near: RackAffinity
) -> Assigned:
    """Divide partitions among members with different subscriptions.

    Each partition without an owner goes to the subscriber with the fewest partitions. A first pass assigns partitions
    with subscribers in their racks, a second pass the remaining partitions; each pass starts with the partitions with
    the fewest subscribers. Partitions then move from a member to a subscriber with at least two fewer partitions until
    no such move is possible. Each move lowers the sum of the squared loads, so the loop ends.
    """
    takers: dict[str, list[str]] = {}
    for member in members:
        for topic in member.topics:
            takers.setdefault(topic, []).append(member.member_id)
    order = sorted(partitions, key=lambda each: (len(takers[each.topic]), each))
    assigned = {member: set(mine) for member, mine in owned.items()}
    owner = {partition: member for member, mine in assigned.items() for partition in mine}
    loads = _Loads(takers, assigned, near)
    for only_near in (True, False):
        for partition in order:
            if partition not in owner and (target := loads.least(partition, only_near=only_near)) is not None:
                owner[partition] = target
                assigned[target].add(partition)
    _level(order, takers, assigned, owner, near)
    return {member: sorted(mine) for member, mine in assigned.items()}


def _level(
    partitions: Sequence[TopicPartition],
    takers: Mapping[str, Sequence[str]],
    assigned: dict[str, set[TopicPartition]],
    owner: dict[TopicPartition, str],
    near: RackAffinity,
) -> None:
    """Move partitions to members with at least two fewer partitions, until a full pass moves none."""
    moved = True
    while moved:
        moved = False
        loads = _Loads(takers, assigned, near)
        for partition in partitions:
            source = owner[partition]
            for only_near in (True, False):
                target = loads.least(partition, only_near=only_near)
                if target is not None and len(assigned[source]) >= len(assigned[target]) + 2:
                    assigned[source].remove(partition)
                    assigned[target].add(partition)
                    owner[partition] = target
                    moved = True
                    break


class _Loads:
    """The subscribers of each topic by rack, starting with the fewest partitions.

    The queues adapt to growing loads. After a load shrinks, the caller must create a new object.
    """

    def __init__(
        self, takers: Mapping[str, Sequence[str]], assigned: Mapping[str, set[TopicPartition]], near: RackAffinity
    ) -> None:
        self._assigned = assigned
        self._near = near
        self._queues: dict[str, dict[str | None, list[tuple[int, str]]]] = {}
        for topic, members in takers.items():
            queues = self._queues[topic] = {}
            for member in members:
                queues.setdefault(near.rack(member), []).append((len(assigned[member]), member))
            for queue in queues.values():
                heapify(queue)

    def least(self, partition: TopicPartition, *, only_near: bool) -> str | None:
        """Return the subscriber with the fewest partitions; with ``only_near``, skip racks without replicas."""
        queues = self._queues[partition.topic]
        racks = queues.keys() & {None, *self._near.racks(partition)} if only_near else queues.keys()
        return min((self._first(queues[rack]) for rack in racks), default=(0, None))[1]

    def _first(self, queue: list[tuple[int, str]]) -> tuple[int, str]:
        while queue[0][0] != len(self._assigned[queue[0][1]]):
            heapreplace(queue, (len(self._assigned[queue[0][1]]), queue[0][1]))
        return queue[0]
