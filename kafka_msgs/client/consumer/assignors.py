"""How the leader of a classic group divides partitions among the members: range, round-robin, cooperative-sticky.

An assignor is a function from partition counts and members to what each member gets. They give the same result as
Kafka's ``RangeAssignor``, ``RoundRobinAssignor`` and ``CooperativeStickyAssignor`` where members have no racks, so a
group may have clients of several kinds. ``ASSIGNORS`` is the one list of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Final

from attrs import frozen

from kafka_msgs.client.cluster import TopicPartition
from kafka_msgs.client.consumer.protocol import Assigned, GroupMember
from kafka_msgs.client.consumer.sticky import assign_cooperatively

__all__ = ["ASSIGNORS", "Assignor", "assign_range", "assign_round_robin"]


def assign_range(counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assigned:
    """Give each member a run of neighbouring partitions of each topic that it subscribes to.

    ``counts`` has the number of partitions of each topic that exists. Where a topic cannot be divided evenly, the
    members that come first get one partition more (Kafka's ``RangeAssignor``).
    """
    assigned: Assigned = {member.member_id: [] for member in members}
    ordered = sorted(members, key=lambda member: member.rank)
    for topic, takers in sorted(_takers(counts, ordered).items()):
        share, extra = divmod(counts[topic], len(takers))
        start = 0
        for place, member in enumerate(takers):
            stop = start + share + (place < extra)
            assigned[member.member_id] += (TopicPartition(topic, number) for number in range(start, stop))
            start = stop
    return assigned


def assign_round_robin(counts: Mapping[str, int], members: Sequence[GroupMember]) -> Assigned:
    """Deal all partitions of all topics, in order, to the members in turn (Kafka's ``RoundRobinAssignor``).

    A member that does not subscribe to a topic is passed over.
    """
    assigned: Assigned = {member.member_id: [] for member in members}
    ordered = sorted(members, key=lambda member: member.rank)
    turn = cycle(ordered)
    for topic in sorted(_takers(counts, ordered)):
        for number in range(counts[topic]):
            member = next(each for each in turn if topic in each.topics)
            assigned[member.member_id].append(TopicPartition(topic, number))
    return assigned


def _takers(counts: Mapping[str, int], members: Sequence[GroupMember]) -> dict[str, list[GroupMember]]:
    """Return the members that subscribe to each topic that exists."""
    takers: dict[str, list[GroupMember]] = {}
    for member in members:
        for topic in member.topics:
            if topic in counts:
                takers.setdefault(topic, []).append(member)
    return takers


@frozen
class Assignor:
    """A way to divide partitions, and its name in the protocol.

    With ``cooperative`` a member keeps its partitions while the group rebalances, and gives up only those that another
    member gets (KIP-429). With ``states_generation`` its subscription has the generation as user data.
    """

    name: str
    assign: Callable[[Mapping[str, int], Sequence[GroupMember]], Assigned]
    cooperative: bool = False
    states_generation: bool = False

    def user_data(self, generation: int) -> bytes | None:
        """Return the user data of a subscription."""
        return generation.to_bytes(4, "big", signed=True) if self.states_generation else None


ASSIGNORS: Final[dict[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_range),
        Assignor("roundrobin", assign_round_robin),
        Assignor("cooperative-sticky", assign_cooperatively, cooperative=True, states_generation=True),
    )
}
"""The assignors by their names in ``partition.assignment.strategy``."""
