"""Racks of members and replicas: reading from a replica in the member's own rack is cheaper (KIP-881).

Kafka's class is ``AbstractPartitionAssignor``. ``range_assignor`` and ``sticky_assignor`` prefer partitions with a
replica in the member's rack, as long as the assignment stays equally balanced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from attrs import frozen

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.consumer_protocol import AssignorMember

__all__ = ["NO_RACKS", "RackAffinity", "Racks", "rack_affinity"]

Racks: TypeAlias = Mapping[TopicPartition, frozenset[str]]
"""The racks of the replicas of each partition. Partitions without racks may be missing."""

NO_RACKS: Final[Racks] = {}
_NOWHERE: Final[frozenset[str]] = frozenset()


@frozen
class RackAffinity:
    """The racks of members by member id, and the racks of partitions. Empty and false if racks are irrelevant."""

    members: Mapping[str, str]
    partitions: Racks

    def __bool__(self) -> bool:
        return bool(self.members)

    def rack(self, member_id: str) -> str | None:
        """Return the relevant rack of a member, or None."""
        return self.members.get(member_id)

    def racks(self, partition: TopicPartition) -> frozenset[str]:
        """Return the racks of a partition."""
        return self.partitions.get(partition, _NOWHERE)

    def is_remote(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether a member has a rack without a replica of the partition."""
        rack = self.members.get(member_id)
        return rack is not None and rack not in self.racks(partition)


def rack_affinity(
    members: Iterable[AssignorMember], partitions: Collection[TopicPartition], racks: Racks
) -> RackAffinity:
    """Return the racks of members and partitions if they are relevant.

    Racks are irrelevant if no member is in a rack with replicas, or if all partitions have replicas in the same racks.
    """
    of_members = {member.member_id: member.rack for member in members if member.rack}
    found = [racks.get(partition, _NOWHERE) for partition in partitions] if of_members else []
    everywhere = _NOWHERE.union(*found)
    if everywhere.isdisjoint(of_members.values()) or all(each == everywhere for each in found):
        return RackAffinity({}, {})
    return RackAffinity(of_members, racks)
