"""Target assignments of partitions, for consumer groups and share groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any
from uuid import UUID

from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import AssignorError, GroupError
from kafka_msgs.groups.assignors.spec import (
    Assignment,
    GroupAssignor,
    GroupSpec,
    MemberSpec,
    Partitions,
    TopicSubscription,
)
from kafka_msgs.groups.modern_group import ModernGroup
from kafka_msgs.groups.modern_records import ModernRecords
from kafka_msgs.groups.operation import OperationContext
from kafka_msgs.groups.runtime.shard_operation import Record
from kafka_msgs.groups.topics_image import TopicsImage

__all__ = ["compute_target", "described_partitions", "same_partitions", "topic_partitions"]


def compute_target(
    op: OperationContext,
    group: ModernGroup[Any, Partitions],
    records: ModernRecords,
    epoch: int,
    assignor: GroupAssignor,
    *,
    members: Mapping[str, Any],
    targets: Mapping[str, Partitions],
    subscription: Callable[[Any], TopicSubscription],
    **inputs: Any,
) -> tuple[Assignment, list[Record]]:
    """Compute the target assignment of a group epoch. Return it, and its records.

    ``members`` have the order of Kafka's table, and ``targets`` are their current targets. ``subscription`` returns the
    topics of a member, and ``inputs`` are the other fields of the assignor's ``GroupSpec``. Raises ``GroupError``.
    """
    spec = GroupSpec(
        members={
            member_id: MemberSpec(
                subscription=subscription(member), assigned=targets.get(member_id, {}), instance_id=member.instance_id
            )
            for member_id, member in members.items()
        },
        partitions={topic.id: topic.partitions for topic in op.image.topics.values()},
        **inputs,
    )
    try:
        assignment = assignor(spec)
    except AssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
    written = [
        records.target(group.group_id, member_id, assignment.get(member_id, {}))
        for member_id in members
        if not same_partitions(assignment.get(member_id, {}), targets.get(member_id))
    ]
    return assignment, [*written, records.target_metadata(group.group_id, epoch, op.now)]


def same_partitions(one: Partitions, other: Partitions | None) -> bool:
    """Return whether two assignments have the same partitions, in any order."""
    if other is None or one.keys() != other.keys():
        return False
    return all(set(partitions) == set(other[topic]) for topic, partitions in one.items())


def topic_partitions(cls: Callable[..., Any], partitions: Mapping[UUID, Iterable[int]]) -> tuple[Any, ...]:
    """Return partitions by topic in the form of a message, whose elements have the class ``cls``."""
    return tuple(cls(topic_id=topic, partitions=tuple(each)) for topic, each in partitions.items())


def described_partitions(
    cls: Callable[..., Any], partitions: Mapping[UUID, Iterable[int]], image: TopicsImage
) -> tuple[Any, ...]:
    """Return partitions by topic in the form of a description. Topics that no longer exist are omitted."""
    return tuple(
        cls(topic_id=topic, topic_name=image.by_id[topic].name, partitions=tuple(each))
        for topic, each in partitions.items()
        if topic in image.by_id
    )
