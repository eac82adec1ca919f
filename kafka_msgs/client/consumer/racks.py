"""Racks of members and of replicas: a member reads cheaper from a replica in its own rack (KIP-881).

Kafka's class is ``AbstractPartitionAssignor``. ``range_assignor`` and ``sticky_assignor`` prefer partitions with a
replica in the rack of a member, where that does not make the shares less even.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from attrs import frozen

from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer.consumer_protocol import AssignorMember

__all__ = ["NO_RACKS", "RackAffinity", "Racks", "rack_affinity"]

Racks: TypeAlias = Mapping[TopicPartition, frozenset[str]]
"""The racks that have a replica of a partition. A partition that is missing has none."""

NO_RACKS: Final[Racks] = {}
_NOWHERE: Final[frozenset[str]] = frozenset()


@frozen
class RackAffinity:
    """The racks of members by member id, and of partitions. It is empty, and false, where racks do not matter."""

    members: Mapping[str, str]
    partitions: Racks

    def __bool__(self) -> bool:
        return bool(self.members)

    def rack(self, member_id: str) -> str | None:
        """Return the rack of a member, or None if it has none that matters."""
        return self.members.get(member_id)

    def racks(self, partition: TopicPartition) -> frozenset[str]:
        """Return the racks of a partition."""
        return self.partitions.get(partition, _NOWHERE)

    def is_remote(self, member_id: str, partition: TopicPartition) -> bool:
        """Whether a member has a rack, and the partition has no replica there."""
        rack = self.members.get(member_id)
        return rack is not None and rack not in self.racks(partition)


def rack_affinity(
    members: Iterable[AssignorMember], partitions: Collection[TopicPartition], racks: Racks
) -> RackAffinity:
    """Return the racks of members and partitions, if they matter.

    They do not matter if no member is in a rack with replicas, nor if every partition has replicas in the same racks.
    """
    of_members = {member.member_id: member.rack for member in members if member.rack}
    found = [racks.get(partition, _NOWHERE) for partition in partitions] if of_members else []
    everywhere = _NOWHERE.union(*found)
    if everywhere.isdisjoint(of_members.values()) or all(each == everywhere for each in found):
        return RackAffinity({}, {})
    return RackAffinity(of_members, racks)
