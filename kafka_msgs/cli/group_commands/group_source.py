"""Where groups come from: a broker, or the log directories of one. Both answer the same with the same values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

from attrs import frozen

from kafka_msgs.admin.groups import AnyGroupDescription, GroupListing
from kafka_msgs.client.cluster_metadata import TopicPartition

__all__ = ["GroupSource", "LogBounds", "OffsetWithLag", "Offsets"]


class LogBounds(NamedTuple):
    """The first offset of a partition, and the one after its last record."""

    earliest: int
    latest: int


@frozen(kw_only=True)
class OffsetWithLag:
    """An offset of a group: the next record to read; of a share group the first one that its members still need.

    ``leader_epoch`` and ``metadata`` are None where there is none. ``lag`` is what the coordinator counted, for share
    groups; for others it is None, and follows from the end of the partition.
    """

    offset: int
    leader_epoch: int | None = None
    metadata: str | None = None
    lag: int | None = None


Offsets = Mapping[TopicPartition, OffsetWithLag]
"""The offsets of a group."""


class GroupSource(Protocol):
    """Answers questions that only read. Each raises ``KafkaMsgsError`` where it cannot be answered as a whole."""

    def list_groups(self) -> Sequence[GroupListing]:
        """Return all groups of every type, by name."""
        ...

    def describe_groups(self, groups: Collection[str], *, listed: bool = False) -> Mapping[str, AnyGroupDescription]:
        """Return the groups with their members. Raises for a group that does not exist.

        Groups that were ``listed`` a moment ago may have been deleted since: those are left out.
        """
        ...

    def group_offsets(self, groups: Collection[str], *, share: bool = False) -> Mapping[str, Offsets]:
        """Return what groups have committed, or with ``share`` where share groups begin to read.

        A group that does not exist has no offsets.
        """
        ...

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        """Return where partitions begin and end, as far as that is known."""
        ...

    def report_problems(self) -> None:
        """Report what could not be read, and end with exit status 1 if that is anything."""
        ...
