"""The input and output types of assignors.

An assignor is a pure function from the specification of a group to the assignment of each member. ``GroupSpec``
describes a consumer group or a share group, ``StreamsSpec`` a streams group. The **order** of members, topics and
partitions is part of the input: Kafka iterates over hash tables, and its assignors break ties by the order of these
tables. The functions of ``java_hash_order`` return that order.

Results have the order in which Kafka writes them to a record: topics and partitions of ``Partitions`` in the order of
Kafka's tables, subtopologies and partitions of ``TaskAssignment`` in ascending order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias
from uuid import UUID

from attrs import field, frozen

from kafka_msgs.errors import AssignorError

__all__ = [
    "NO_TASKS",
    "Assignment",
    "AssignmentMemberSpec",
    "GroupAssignor",
    "GroupSpec",
    "MemberSpec",
    "Partitions",
    "StreamsSpec",
    "SubtopologySpec",
    "TaskAssignment",
    "TaskAssignor",
    "Tasks",
    "TopicSubscription",
    "owned_partitions",
]

Partitions: TypeAlias = Mapping[UUID, Sequence[int]]
"""Partition numbers by topic id, in the order of a target assignment record."""

Assignment: TypeAlias = dict[str, Partitions]
"""The partitions of each member of a consumer group or share group. A member without an entry gets no partitions."""

Tasks: TypeAlias = Mapping[str, Sequence[int]]
"""Partition numbers by subtopology id."""


@frozen
class TopicSubscription:
    """The topics of a member. Members with the same topics may share one value.

    ``topics`` has the ids of the existing topics, in the order in which Kafka iterates over their names. ``names`` is
    the number of names, including topics that do not exist: it determines the size of one of Kafka's tables.
    """

    topics: tuple[UUID, ...]
    names: int = field()

    @names.default
    def _all(self) -> int:
        return len(self.topics)


@frozen(kw_only=True)
class MemberSpec:
    """A member of a consumer group or share group: ``MemberSubscription`` and ``MemberAssignment`` of Kafka.

    ``assigned`` is its current target assignment, in the order of the record. No assignor of the release uses racks.
    """

    subscription: TopicSubscription
    assigned: Partitions = field(factory=dict)
    instance_id: str | None = None


@frozen(kw_only=True)
class GroupSpec:
    """A consumer group or share group to assign: ``GroupSpec`` and ``SubscribedTopicDescriber`` of Kafka.

    Attributes:
        members: members by id, in the order of the ``HashMap`` that Kafka's ``TargetAssignmentBuilder`` creates.
        partitions: the number of partitions of each topic that exists, by topic id.
        homogeneous: whether all members subscribe to the same topics, as the group counts it (``SubscriptionType``).
        owned: partitions that have an owner in the target assignment of the group, by topic id. None: the
            partitions of the members.
        assignable: for share groups, partitions that may be assigned, by topic id. None: all.
    """

    members: Mapping[str, MemberSpec]
    partitions: Mapping[UUID, int]
    homogeneous: bool
    owned: Mapping[UUID, Collection[int]] | None = None
    assignable: Mapping[UUID, Collection[int]] | None = None

    def count(self, topic: UUID) -> int:
        """Return the number of partitions of a topic. Raises ``AssignorError`` if it does not exist."""
        if topic not in self.partitions:
            raise AssignorError(reason=f"Members are subscribed to topic {topic}, which does not exist.")
        return self.partitions[topic]


def owned_partitions(assignments: Iterable[Partitions]) -> Mapping[UUID, Collection[int]]:
    """Return the partitions that are in at least one of these assignments."""
    owned: dict[UUID, set[int]] = {}
    for assigned in assignments:
        for topic, numbers in assigned.items():
            owned.setdefault(topic, set()).update(numbers)
    return owned


GroupAssignor: TypeAlias = Callable[[GroupSpec], Assignment]
"""Raises ``AssignorError``."""


@frozen(kw_only=True)
class AssignmentMemberSpec:
    """A member of a streams group: ``MemberAssignmentMetadata`` and ``MemberAssignmentState`` of Kafka.

    ``active``, ``standby`` and ``warmup`` are the current tasks of the member. ``offsets`` and ``end_offsets`` are the
    sums of changelog offsets that it reported, by subtopology id and partition.
    """

    process_id: str
    active: Mapping[str, Collection[int]] = field(factory=dict)
    standby: Mapping[str, Collection[int]] = field(factory=dict)
    warmup: Mapping[str, Collection[int]] = field(factory=dict)
    instance_id: str | None = None
    rack_id: str | None = None
    client_tags: Mapping[str, str] = field(factory=dict)
    offsets: Mapping[str, Mapping[int, int]] = field(factory=dict)
    end_offsets: Mapping[str, Mapping[int, int]] = field(factory=dict)


@frozen
class SubtopologySpec:
    """A subtopology: its number of tasks is the greatest number of partitions of its input topics."""

    id: str
    partitions: int
    stateful: bool = False


@frozen(kw_only=True)
class StreamsSpec:
    """A streams group to assign: ``GroupSpec``, ``AssignmentConfigs`` and ``TopologyDescriber`` of Kafka.

    Attributes:
        members: members by id, in the order of the ``HashMap`` that Kafka's ``TargetAssignmentBuilder`` creates.
        subtopologies: the subtopologies, each id once, in the order of the topology.
        standby_replicas: ``num.standby.replicas``.
        warmup_replicas: ``num.warmup.replicas``; only ``highly_available`` uses it.
        acceptable_recovery_lag: ``acceptable.recovery.lag``, in records; only ``highly_available`` uses it.
    """

    members: Mapping[str, AssignmentMemberSpec]
    subtopologies: Sequence[SubtopologySpec]
    standby_replicas: int = 0
    warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000


@frozen
class TaskAssignment:
    """The tasks of a member of a streams group, in the order of a target assignment record."""

    active: Tasks = field(factory=dict)
    standby: Tasks = field(factory=dict)
    warmup: Tasks = field(factory=dict)


NO_TASKS: Final = TaskAssignment()
"""The assignment of a member without tasks."""

TaskAssignor: TypeAlias = Callable[[StreamsSpec], dict[str, TaskAssignment]]
"""Returns an entry for each member. Raises ``AssignorError``."""
