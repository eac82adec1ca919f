"""A member of a consumer group (KIP-848): its metadata, its epochs, and the partitions that it owns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final, TypeAlias
from uuid import UUID

from attrs import evolve, field, frozen

from kafka_msgs.groups.assignors.java_hash_order import hash_map_order, number_order
from kafka_msgs.groups.modern_records import ModernRecords
from kafka_msgs.groups.partition_assignment import topic_partitions
from kafka_msgs.messages.consumer_group_current_member_assignment_key import ConsumerGroupCurrentMemberAssignmentKey
from kafka_msgs.messages.consumer_group_current_member_assignment_value import (
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from kafka_msgs.messages.consumer_group_member_metadata_key import ConsumerGroupMemberMetadataKey
from kafka_msgs.messages.consumer_group_member_metadata_value import (
    ClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
)
from kafka_msgs.messages.consumer_group_metadata_key import ConsumerGroupMetadataKey
from kafka_msgs.messages.consumer_group_target_assignment_member_key import ConsumerGroupTargetAssignmentMemberKey
from kafka_msgs.messages.consumer_group_target_assignment_member_value import (
    ConsumerGroupTargetAssignmentMemberValue,
    TopicPartition,
)
from kafka_msgs.messages.consumer_group_target_assignment_metadata_key import ConsumerGroupTargetAssignmentMetadataKey

__all__ = ["NO_PARTITIONS", "RECORDS", "ConsumerGroupMember", "MemberState", "Owned"]

Owned: TypeAlias = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic id, each with the member epoch of its assignment. In the order of Kafka's maps."""

NO_PARTITIONS: Final[Owned] = {}


class MemberState(IntEnum):
    """The progress of a member towards its target (``MemberState`` of Kafka)."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


_STATES: Final[Mapping[int, MemberState]] = {state.value: state for state in MemberState}

_NEW_METADATA: Final = ConsumerGroupMemberMetadataValue(
    instance_id=None, rack_id=None, server_assignor=None, classic_member_metadata=None
)


@frozen(kw_only=True)
class ConsumerGroupMember:
    """A member.

    ``metadata`` is the value of its record. ``assigned`` are the partitions that it owns, and ``revoking`` are
    partitions that it must revoke first.
    """

    member_id: str
    metadata: ConsumerGroupMemberMetadataValue = _NEW_METADATA
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Owned = field(default=NO_PARTITIONS)
    revoking: Owned = field(default=NO_PARTITIONS)

    @property
    def instance_id(self) -> str | None:
        """The name of a static member; None for a dynamic one."""
        return self.metadata.instance_id

    @property
    def regex(self) -> str:
        """The regular expression that the member subscribes to; empty for none."""
        return self.metadata.subscribed_topic_regex or ""

    @property
    def classic(self) -> ClassicMemberMetadata | None:
        """The metadata of a classic protocol member; None for a member of the consumer protocol."""
        return self.metadata.classic_member_metadata

    @property
    def rebalance_timeout_ms(self) -> int:
        """How long the member may take to revoke partitions, in milliseconds."""
        return self.metadata.rebalance_timeout_ms

    @property
    def is_revoking(self) -> bool:
        """Whether the member has partitions to revoke first."""
        return self.state is MemberState.UNREVOKED_PARTITIONS

    def is_reconciled_to(self, epoch: int) -> bool:
        """Return whether the member has reached the target of that epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch

    def owns(self, topic: UUID, partition: int) -> bool:
        """Return whether the member has a partition, including partitions that it must revoke."""
        return partition in self.assigned.get(topic, ()) or partition in self.revoking.get(topic, ())

    def with_assignment(self, epoch: int, state: MemberState, assigned: Owned, revoking: Owned) -> ConsumerGroupMember:
        """Return the member at its next epoch."""
        return evolve(self, epoch=epoch, previous_epoch=self.epoch, state=state, assigned=assigned, revoking=revoking)


def _current_value(member: ConsumerGroupMember) -> ConsumerGroupCurrentMemberAssignmentValue:
    return ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state.value,
        assigned_partitions=_topic_partitions(member.assigned),
        partitions_pending_revocation=_topic_partitions(member.revoking),
    )


def _with_current(member: ConsumerGroupMember, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerGroupMember:
    return evolve(
        member,
        epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=_STATES.get(value.state, MemberState.UNKNOWN),
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def _topic_partitions(owned: Owned) -> tuple[TopicPartitions, ...]:
    return tuple(
        TopicPartitions(topic_id=topic, partitions=tuple(epochs), assignment_epochs=tuple(epochs.values()))
        for topic, epochs in owned.items()
    )


def _owned(topics: Iterable[TopicPartitions], member_epoch: int) -> Owned:
    """Return the partitions of a record. Records of older releases have no epochs, so the member epoch is used."""
    found: dict[UUID, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (max(member_epoch, 0),) * len(topic.partitions)
        table = dict(zip(topic.partitions, epochs, strict=True))
        found[topic.topic_id] = {partition: table[partition] for partition in number_order(list(table))}
    return {topic_id: found[topic_id] for topic_id in hash_map_order(found)} if len(found) > 1 else found


RECORDS: Final = ModernRecords(
    group_key=ConsumerGroupMetadataKey,
    member_key=ConsumerGroupMemberMetadataKey,
    target_key=ConsumerGroupTargetAssignmentMemberKey,
    target_metadata_key=ConsumerGroupTargetAssignmentMetadataKey,
    current_key=ConsumerGroupCurrentMemberAssignmentKey,
    no_target={},
    target_value=lambda target: ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=topic_partitions(TopicPartition, target)
    ),
    current_value=_current_value,
    with_current=_with_current,
)
