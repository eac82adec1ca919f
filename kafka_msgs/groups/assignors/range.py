"""Runs of neighbouring partitions: Kafka's ``RangeAssignor``.

Each subscriber of a topic gets a run of partitions of about the same length. Where all members subscribe to the same
topics and these have the same number of partitions, each member gets the same numbers of each topic.
"""

from __future__ import annotations

from uuid import UUID

from attrs import define

from kafka_msgs.groups.assignors.java_order import hash_map_order, map_copy_capacity, string_key
from kafka_msgs.groups.assignors.spec import Assignment, GroupSpec, Member

__all__ = ["assign_range"]


@define
class _Runs:
    """The runs of one topic, given out one after the other."""

    partitions: int
    takers: int = 0
    taken: int = 0
    start: int = 0

    def next(self) -> range:
        share, extra = divmod(self.partitions, self.takers)
        run = range(self.start, self.start + share + (self.taken < extra))
        self.taken += 1
        self.start = run.stop
        return run


def assign_range(spec: GroupSpec) -> Assignment:
    """Give each member its run of each topic. Raises ``AssignorError`` for a topic that does not exist.

    Static members come first, by instance id, so that they keep their runs when they come back with a new member id.
    """
    members = sorted(spec.members.items(), key=_rank)
    topics = [member.subscription.topics for _, member in members]
    sizes = [member.subscription.names for _, member in members]
    if spec.homogeneous and members:
        topics = [topics[0]] * len(members)
        sizes = [len(topics[0])] * len(members)
    runs = _count_takers(topics, spec)
    ordered: dict[tuple[int, tuple[UUID, ...]], list[UUID]] = {}
    assignment: Assignment = {}
    for (member_id, _), subscribed, size in zip(members, topics, sizes, strict=True):
        given = {topic: run for topic in subscribed if (run := runs[topic].next())}
        table = (size, tuple(given))
        if table not in ordered:
            ordered[table] = hash_map_order(given, capacity=map_copy_capacity(size))
        assignment[member_id] = {topic: given[topic] for topic in ordered[table]}
    return assignment


def _rank(item: tuple[str, Member]) -> tuple[bool, bytes]:
    member_id, member = item
    if member.instance_id is None:
        return (True, string_key(member_id))
    return (False, string_key(member.instance_id))


def _count_takers(topics: list[tuple[UUID, ...]], spec: GroupSpec) -> dict[UUID, _Runs]:
    runs: dict[UUID, _Runs] = {}
    for subscribed in topics:
        for topic in subscribed:
            if topic not in runs:
                runs[topic] = _Runs(spec.count(topic))
            runs[topic].takers += 1
    return runs
