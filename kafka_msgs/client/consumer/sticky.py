"""The cooperative sticky assignor: balanced, and with as few moves as possible.

Each member keeps what it owned, as far as the balance allows. A partition that moves is given to nobody in this
rebalance: its owner gives it up first, and the next rebalance gives it to its new owner (KIP-429). Kafka's classes are
``AbstractStickyAssignor`` and ``CooperativeStickyAssignor``. Where all members subscribe to the same topics the result
is theirs; where they do not, it has the same properties.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heapreplace

from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.consumer.protocol import Assigned, GroupMember

__all__ = ["assign_cooperatively", "assign_sticky", "without_transfers"]


def assign_cooperatively(counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assigned:
    """Return the sticky assignment without the partitions that would change their owner."""
    return without_transfers(assign_sticky(counts, members), members)


def assign_sticky(counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assigned:
    """Return a balanced assignment in which members keep as many of their partitions as the balance allows.

    ``counts`` has the number of partitions of each topic that exists.
    """
    subscriptions = {member.topics for member in members}
    owned = _valid_claims(counts, members)
    if len(subscriptions) <= 1:
        return _assign_equals(counts, members, owned)
    return _assign_different(counts, members, owned)


def without_transfers(assigned: Assigned, members: Sequence[GroupMember]) -> Assigned:
    """Take away each partition from its new owner while another member still owns it."""
    owners: dict[TopicPartition, set[str]] = {}
    for member in members:
        for partition in member.owned:
            owners.setdefault(partition, set()).add(member.member_id)
    return {
        member_id: [each for each in partitions if each not in owners or member_id in owners[each]]
        for member_id, partitions in assigned.items()
    }


def _valid_claims(counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assigned:
    """Return what each member owned, as far as it can be believed.

    A topic must exist, and the member must still subscribe to it. Of several members that claim a partition the one
    with the highest generation is believed, and if there are two of that, nobody.
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


def _assign_equals(counts: Mapping[str, int], members: Sequence[GroupMember], owned: Assigned) -> Assigned:
    """Divide among members that all subscribe to the same topics.

    Each member gets the lower quota, and as many members as needed get one more. The members keep their partitions up
    to their quota; the rest is dealt in order to those that have room, those below the lower quota first.
    """
    topics = members[0].topics if members else frozenset()
    total = sum(counts[topic] for topic in topics if topic in counts)
    low, richer = divmod(total, len(members) or 1)
    high = low + (richer > 0)
    assigned: Assigned = {}
    for member in sorted(members, key=lambda each: each.member_id):
        mine = owned[member.member_id]
        rich = high > low and len(mine) >= high and richer > 0
        richer -= rich
        assigned[member.member_id] = mine[: high if rich else low]
    taken = {partition for partitions in assigned.values() for partition in partitions}
    left = (each for each in _all_partitions(counts, topics) if each not in taken)
    _deal(left, assigned, low, richer)
    return assigned


def _deal(left: Iterator[TopicPartition], assigned: Assigned, low: int, richer: int) -> None:
    """Deal partitions in turn to members below ``low``; then one more each to ``richer`` members that have ``low``."""
    below = deque(sorted(member for member, mine in assigned.items() if len(mine) < low))
    at_low = deque(sorted(member for member, mine in assigned.items() if len(mine) == low))
    for partition in left:
        if below:
            member = below.popleft()
            assigned[member].append(partition)
            (below if len(assigned[member]) < low else at_low).append(member)
        elif richer:
            assigned[at_low.popleft()].append(partition)
            richer -= 1


def _all_partitions(counts: Mapping[str, int], topics: frozenset[str]) -> Iterator[TopicPartition]:
    for topic in sorted(topics):
        for number in range(counts.get(topic, 0)):
            yield TopicPartition(topic, number)


def _assign_different(counts: Mapping[str, int], members: Sequence[GroupMember], owned: Assigned) -> Assigned:
    """Divide among members with different subscriptions.

    Partitions without an owner go to the member with the fewest, those with the fewest possible takers first. Then
    partitions move from a member to one that has at least two fewer, until there is none such. Each move lowers the sum
    of the squares of the loads, so this ends.
    """
    takers = {topic: sorted(m.member_id for m in members if topic in m.topics) for topic in counts}
    topics = frozenset(topic for topic, found in takers.items() if found)
    partitions = sorted(_all_partitions(counts, topics), key=lambda each: (len(takers[each.topic]), each))
    assigned = {member: set(mine) for member, mine in owned.items()}
    owner = {partition: member for member, mine in assigned.items() for partition in mine}
    for partition in partitions:
        if partition not in owner:
            owner[partition] = min(takers[partition.topic], key=lambda member: (len(assigned[member]), member))
            assigned[owner[partition]].add(partition)
    _level(partitions, takers, assigned, owner)
    return {member: sorted(mine) for member, mine in assigned.items()}


def _level(
    partitions: Sequence[TopicPartition],
    takers: Mapping[str, Sequence[str]],
    assigned: dict[str, set[TopicPartition]],
    owner: dict[TopicPartition, str],
) -> None:
    """Move partitions to members with at least two fewer, until a whole pass moves nothing."""
    moved = True
    while moved:
        moved = False
        queues = {topic: [(len(assigned[member]), member) for member in found] for topic, found in takers.items()}
        for queue in queues.values():
            heapify(queue)
        for partition in partitions:
            source, target = owner[partition], _least(queues[partition.topic], assigned)
            if len(assigned[source]) >= len(assigned[target]) + 2:
                assigned[source].remove(partition)
                assigned[target].add(partition)
                owner[partition] = target
                moved = True


def _least(queue: list[tuple[int, str]], assigned: Mapping[str, set[TopicPartition]]) -> str:
    """Return the member with the fewest partitions, as far as the heap knows; the next pass makes a new one."""
    while queue[0][0] != len(assigned[queue[0][1]]):
        heapreplace(queue, (len(assigned[queue[0][1]]), queue[0][1]))
    return queue[0][1]
