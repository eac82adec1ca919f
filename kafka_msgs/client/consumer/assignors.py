"""Client-side assignors of classic groups: range, round-robin, sticky and cooperative-sticky.

An assignor is a function from partition counts, members and partition racks to each member's partitions. The assignors
produce the same results as Kafka's ``RangeAssignor``, ``RoundRobinAssignor``, ``StickyAssignor`` and
``CooperativeStickyAssignor``, so a group may mix different client libraries. ``ASSIGNORS`` lists them all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Final

from attrs import frozen

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.consumer_protocol import Assigned, AssignorMember, UserData
from kafka_msgs.client.consumer.racks import NO_RACKS, Racks
from kafka_msgs.client.consumer.range_assignor import assign_range, subscribers_by_topic
from kafka_msgs.client.consumer.sticky_assignor import assign_cooperatively, assign_sticky

__all__ = ["ASSIGNORS", "Assignor", "assign_round_robin"]


def assign_round_robin(
    counts: Mapping[str, int], members: Sequence[AssignorMember], racks: Racks = NO_RACKS
) -> Assigned:
    """Deal all partitions of all topics, in order, to the members in turn (Kafka's ``RoundRobinAssignor``).

    Members that do not subscribe to a topic are skipped. Racks are ignored.
    """
    assigned: Assigned = {member.member_id: [] for member in members}
    ordered = sorted(members, key=lambda member: member.rank)
    turn = cycle(ordered)
    for topic in sorted(subscribers_by_topic(counts, ordered)):
        for number in range(counts[topic]):
            member = next(each for each in turn if topic in each.topics)
            assigned[member.member_id].append(TopicPartition(topic, number))
    return assigned


@frozen
class Assignor:
    """A partition assignor and its protocol name.

    With ``cooperative`` a member keeps its partitions during a rebalance, and gives up only partitions that move to
    another member (KIP-429). ``user_data`` is the kind of user data in a subscription.
    """

    name: str
    assign: Callable[[Mapping[str, int], Sequence[AssignorMember], Racks], Assigned]
    cooperative: bool = False
    user_data: UserData = UserData.NOTHING


ASSIGNORS: Final[dict[str, Assignor]] = {
    assignor.name: assignor
    for assignor in (
        Assignor("range", assign_range),
        Assignor("roundrobin", assign_round_robin),
        Assignor("sticky", assign_sticky, user_data=UserData.PARTITIONS),
        Assignor("cooperative-sticky", assign_cooperatively, cooperative=True, user_data=UserData.GENERATION),
    )
}
"""The assignors by their names in ``partition.assignment.strategy``."""
