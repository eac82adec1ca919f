"""Sources of groups: a broker, or a broker's log directories. Both return the same values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from attrs import frozen

from kafka_msgs.admin.groups import AnyGroupDescription, GroupListing
from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["GroupSource", "LogBounds", "OffsetWithLag", "Offsets"]


class LogBounds(NamedTuple):
    """The first offset of a partition, and the end offset after its last record."""

    earliest: int
    latest: int


@frozen(kw_only=True)
class OffsetWithLag:
    """An offset of a group: the next record to read; in a share group, the first record that its members still need.

    Missing ``leader_epoch`` and ``metadata`` are None. ``lag`` is the coordinator's lag for share groups; for other
    groups it is None, and follows from the end of the partition.
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str | None = None
    lag: int | None = None


Offsets = Mapping[TopicPartition, OffsetWithLag]
"""The offsets of a group."""


class GroupSource(Protocol):
    """A source for read-only queries. Each method raises ``KafkaMsgsError`` if the entire query fails."""

    def list_groups(self) -> Sequence[GroupListing]:
        """Return all groups of every type, by name."""
        ...

    def describe_groups(self, groups: Collection[str], *, listed: bool = False) -> Mapping[str, AnyGroupDescription]:
        """Return the groups with their members. Raises for a group that does not exist.

        Groups that were ``listed`` before may have been deleted since: those are omitted.
        """
        ...

    def group_offsets(self, groups: Collection[str], *, share: bool = False) -> Mapping[str, Offsets]:
        """Return committed offsets of groups, or with ``share`` start offsets of share groups.

        A group that does not exist has no offsets.
        """
        ...

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        """Return the first and end offsets of partitions, as far as they are known."""
        ...

    def report_problems(self) -> None:
        """Report read problems, and exit with status 1 if there were any."""
        ...
