"""Runs of neighbouring partitions: Kafka's ``RangeAssignor``.

Each subscriber of a topic gets a run of partitions of about the same length. Where all members subscribe to the same
topics and these have the same number of partitions, each member gets the same numbers of each topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from uuid import UUID

from kafka_msgs.groups.assignors.java_order import HashTable, hash_map_order, map_copy_capacity, string_key
from kafka_msgs.groups.assignors.spec import Assignment, GroupSpec, Member, Subscription
from kafka_msgs.groups.timeline import hash_code

__all__ = ["assign_range"]


def assign_range(spec: GroupSpec) -> Assignment:
    """Give each member its run of each topic. Raises ``AssignorError`` for a topic that does not exist.

    Static members come first, by instance id, so that they keep their runs when they come back with a new member id.
    """
    members = sorted(spec.members.items(), key=_rank)
    subscriptions = [member.subscription for _, member in members]
    if spec.homogeneous and members:
        subscriptions = [Subscription(subscriptions[0].topics)] * len(members)
    distinct = {id(each): each for each in subscriptions}
    counts = Counter(map(id, subscriptions))
    takers: Counter[UUID] = Counter()
    for key, subscription in distinct.items():
        for topic in subscription.topics:
            takers[topic] += counts[key]
    sizes = {topic: (spec.count(topic), count) for topic, count in takers.items()}
    alike = {size: _runs(*size) for size in set(sizes.values())}
    runs = {topic: iter(alike[size]) for topic, size in sizes.items()}
    tables = {key: _Table(subscription, runs) for key, subscription in distinct.items()}
    return {
        member_id: tables[id(subscription)].next()
        for (member_id, _), subscription in zip(members, subscriptions, strict=True)
    }


def _rank(item: tuple[str, Member]) -> tuple[bool, bytes]:
    member_id, member = item
    if member.instance_id is None:
        return (True, string_key(member_id))
    return (False, string_key(member.instance_id))


def _runs(partitions: int, takers: int) -> list[range]:
    """Return a run for each subscriber of a topic."""
    share, extra = divmod(partitions, takers)
    starts = [place * share + min(place, extra) for place in range(takers + 1)]
    return list(map(range, starts, starts[1:]))


class _Table:
    """What a member with a certain subscription gets, in the order of the ``HashMap`` that Kafka makes for it."""

    def __init__(self, subscription: Subscription, runs: Mapping[UUID, Iterator[range]]) -> None:
        self._topics = subscription.topics
        self._capacity = map_copy_capacity(subscription.names)
        table = HashTable(hash_code, subscription.topics, capacity=self._capacity)
        self._runs = [(topic, runs[topic]) for topic in table.walk()]
        self._doubled = table.capacity != self._capacity

    def next(self) -> dict[UUID, range]:
        """Return the next run of each topic, without those that are empty."""
        given = {topic: run for topic, runs in self._runs if (run := next(runs))}
        if self._doubled and len(given) < len(self._topics):
            kept = (topic for topic in self._topics if topic in given)
            return {topic: given[topic] for topic in hash_map_order(kept, capacity=self._capacity)}
        return given
