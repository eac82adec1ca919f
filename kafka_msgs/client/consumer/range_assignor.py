"""The range assignor: each member gets a range of consecutive partitions of each topic.

Kafka's class is ``RangeAssignor``. If members have racks, it first assigns partitions with a replica in the rack of a
member (KIP-881). In this case, topics with the same members and the same number of partitions are co-partitioned: a
member gets the same partition numbers of each topic, so that it can join their records.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.consumer_protocol import Assigned, AssignorMember
from kafka_msgs.client.consumer.racks import NO_RACKS, Racks, rack_affinity

__all__ = ["assign_range", "subscribers_by_topic"]


def assign_range(counts: Mapping[str, int], members: Sequence[AssignorMember], racks: Racks = NO_RACKS) -> Assigned:
    """Assign each member a range of consecutive partitions of each subscribed topic.

    ``counts`` contains the number of partitions of each existing topic. If a topic cannot be divided evenly, the first
    members get one additional partition each.
    """
    assigned: Assigned = {member.member_id: [] for member in members}
    ordered = sorted(members, key=lambda member: member.rank)
    takers = subscribers_by_topic(counts, ordered)
    shares = [_Topic(topic, counts[topic], takers[topic], racks, assigned) for topic in sorted(takers)]
    if any(share.racks_matter for share in shares):
        for together in _alike(shares):
            if len(together) > 1:
                _deal_together(together)
            elif together[0].racks_matter:
                together[0].deal_near()
    for share in shares:
        share.deal_rest()
    return {member_id: sorted(partitions) for member_id, partitions in assigned.items()}


def subscribers_by_topic(
    counts: Mapping[str, int], members: Sequence[AssignorMember]
) -> dict[str, list[AssignorMember]]:
    """Return the subscribers of each existing topic. Topics without subscribers are omitted."""
    takers: dict[str, list[AssignorMember]] = {}
    for member in members:
        for topic in member.topics:
            if topic in counts:
                takers.setdefault(topic, []).append(member)
    return takers


class _Topic:
    """One topic, its subscribers in order, and its unassigned partitions."""

    def __init__(self, name: str, count: int, takers: list[AssignorMember], racks: Racks, assigned: Assigned) -> None:
        self.name = name
        self.takers = takers
        self.left = [True] * count
        self.racks = [racks.get(TopicPartition(name, number), frozenset()) for number in range(count)]
        partitions = [TopicPartition(name, number) for number in range(count)]
        self.racks_matter = bool(rack_affinity(takers, partitions, racks))
        self._assigned = assigned
        self._share, self._extra = divmod(count, len(takers))
        self._given = dict.fromkeys((each.member_id for each in takers), 0)

    def room(self, member: AssignorMember) -> int:
        """Return the number of partitions that a member may still get."""
        return self._share + (self._extra > 0) - self._given[member.member_id]

    def give(self, member: AssignorMember, number: int) -> None:
        """Assign a partition to a member below its share."""
        self.left[number] = False
        self._assigned[member.member_id].append(TopicPartition(self.name, number))
        self._given[member.member_id] += 1
        self._extra -= self._given[member.member_id] > self._share

    def deal_near(self) -> None:
        """Assign each member partitions with a replica in its rack. Members without a rack may get any partition."""
        queues: dict[str | None, deque[int]] = {None: deque(range(len(self.left)))}
        for number, racks in enumerate(self.racks):
            for rack in racks:
                queues.setdefault(rack, deque()).append(number)
        for member in self.takers:
            self._fill(member, queues.get(member.rack or None, deque()))

    def deal_rest(self) -> None:
        """Assign the remaining partitions to the members in order, up to their shares."""
        queue = deque(number for number, is_left in enumerate(self.left) if is_left)
        for member in self.takers:
            self._fill(member, queue)

    def _fill(self, member: AssignorMember, queue: deque[int]) -> None:
        while queue and self.room(member) > 0:
            number = queue.popleft()
            if self.left[number]:
                self.give(member, number)


def _alike(topics: Iterable[_Topic]) -> Collection[list[_Topic]]:
    """Group the topics by subscribers and number of partitions."""
    groups: dict[object, list[_Topic]] = {}
    for topic in topics:
        members = tuple(each.member_id for each in topic.takers)
        groups.setdefault((members, len(topic.left)), []).append(topic)
    return groups.values()


def _deal_together(topics: Sequence[_Topic]) -> None:
    """Assign each partition number, in all topics, to the first member below its share that is local to all of them.

    A member without a rack counts as local.
    """
    first = topics[0]
    queues: dict[str | None, deque[tuple[int, AssignorMember]]] = {}
    for place, member in enumerate(first.takers):
        queues.setdefault(member.rack or None, deque()).append((place, member))
    for number in range(len(first.left)):
        near: set[str | None] = {None, *frozenset.intersection(*(each.racks[number] for each in topics))}
        heads = []
        for rack in near & queues.keys():
            queue = queues[rack]
            while queue and first.room(queue[0][1]) <= 0:
                queue.popleft()
            heads += [queue[0]] if queue else []
        if heads:
            _, member = min(heads, key=lambda head: head[0])
            for topic in topics:
                topic.give(member, number)
