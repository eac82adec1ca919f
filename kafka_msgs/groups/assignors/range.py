"""Kafka's ``RangeAssignor``: each member gets ranges of neighbouring partitions.

Each subscriber of a topic gets a range of partitions of about the same length. If all members subscribe to the same
topics, and these have the same number of partitions, each member gets the same partition numbers of every topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from uuid import UUID

from kafka_msgs.groups.assignors.java_hash_order import HashTable, hash_map_order, map_copy_capacity, sorted_strings
from kafka_msgs.groups.assignors.spec import Assignment, GroupSpec, MemberSpec, TopicSubscription
from kafka_msgs.groups.runtime.timeline_map import java_hash_code, string_key

__all__ = ["assign_range"]


def assign_range(spec: GroupSpec) -> Assignment:
    """Give each member its range of each topic. Raises ``AssignorError`` for a topic that does not exist.

    Static members come first, by instance id, so that they keep their ranges when they rejoin with a new member id.
    """
    members = _in_order(spec.members)
    subscriptions = [spec.members[member_id].subscription for member_id in members]
    if spec.homogeneous and members:
        subscriptions = [TopicSubscription(subscriptions[0].topics)] * len(members)
    distinct = {id(each): each for each in subscriptions}
    counts = Counter(map(id, subscriptions))
    takers: dict[UUID, tuple[int, ...]] = {}
    for key, subscription in distinct.items():
        for topic in subscription.topics:
            takers[topic] = (*takers.get(topic, ()), key)
    alike = {topic: (spec.count(topic), keys) for topic, keys in takers.items()}
    runs = {each: iter(_runs(each[0], sum(counts[key] for key in each[1]))) for each in set(alike.values())}
    tables = {
        key: _Table(subscription, {topic: runs[alike[topic]] for topic in subscription.topics})
        for key, subscription in distinct.items()
    }
    return {
        member_id: tables[id(subscription)].next()
        for member_id, subscription in zip(members, subscriptions, strict=True)
    }


def _in_order(members: Mapping[str, MemberSpec]) -> list[str]:
    """Return the ids of static members by instance id, followed by the ids of dynamic members."""
    static = [(string_key(each.instance_id), key) for key, each in members.items() if each.instance_id is not None]
    dynamic = [key for key, each in members.items() if each.instance_id is None]
    static.sort(key=lambda each: each[0])
    return [*(key for _, key in static), *sorted_strings(dynamic)]


def _runs(partitions: int, takers: int) -> list[range]:
    """Return a range for each subscriber of a topic."""
    share, extra = divmod(partitions, takers)
    starts = [place * share + min(place, extra) for place in range(takers + 1)]
    return list(map(range, starts, starts[1:]))


class _Table:
    """The assignment of a member with a given subscription, in the order of the ``HashMap`` that Kafka creates for it.

    Topics with the same number of partitions and the same subscribers share an iterator of ranges.
    """

    def __init__(self, subscription: TopicSubscription, runs: Mapping[UUID, Iterator[range]]) -> None:
        self._topics = subscription.topics
        self._capacity = map_copy_capacity(subscription.names)
        table = HashTable(java_hash_code, subscription.topics, capacity=self._capacity)
        self._runs = {topic: runs[topic] for topic in table.walk()}
        self._distinct = set(runs.values())
        self._doubled = table.capacity != self._capacity

    def next(self) -> dict[UUID, range]:
        """Return the next range of each topic, without empty ranges."""
        row = {runs: next(runs) for runs in self._distinct}
        if len(row) == 1:
            [run] = row.values()
            return dict.fromkeys(self._runs, run) if run else {}
        given = {topic: run for topic, runs in self._runs.items() if (run := row[runs])}
        if self._doubled and len(given) < len(self._topics):
            kept = (topic for topic in self._topics if topic in given)
            return {topic: given[topic] for topic in hash_map_order(kept, capacity=self._capacity)}
        return given
