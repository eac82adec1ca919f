"""Groups of a running cluster. ``kafka_msgs.admin`` sends the requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from attrs import field, frozen

from kafka_msgs.admin.admin import Admin
from kafka_msgs.admin.groups import AnyGroupDescription, GroupListing
from kafka_msgs.admin.offset_resets import OffsetChange, OffsetTarget
from kafka_msgs.admin.partitions import OffsetSpec
from kafka_msgs.admin.results import PartialList, Results
from kafka_msgs.cli.group_commands.group_source import LogBounds, Offsets, OffsetWithLag
from kafka_msgs.cli.render.output import echo
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError

__all__ = ["BrokerGroups", "PartialBrokerGroups"]

K = TypeVar("K")
V = TypeVar("V")

_NONE = -1
"""The protocol's number for a missing offset or epoch."""


@frozen
class BrokerGroups:
    """The groups of a cluster's coordinators."""

    admin: Admin

    def list_groups(self) -> Sequence[GroupListing]:
        """Return all groups; raises if a broker does not respond, because it may coordinate some groups."""
        return sorted(self._listed(self.admin.list_groups()), key=lambda group: group.group_id)

    def describe_groups(self, groups: Collection[str], *, listed: bool = False) -> Mapping[str, AnyGroupDescription]:
        """Return the groups as described by their coordinators."""
        described = self.admin.describe_groups(groups)
        return self._values(_existing(described)) if listed else described.all()

    def group_offsets(self, groups: Collection[str], *, share: bool = False) -> Mapping[str, Offsets]:
        """Return the offsets of groups, with one request per coordinator for any number of partitions."""
        none: dict[str, Offsets] = {group: {} for group in groups}
        if share:
            started = self._values(_existing(self.admin.list_share_group_offsets(dict.fromkeys(groups))))
            return none | {
                group: {
                    partition: OffsetWithLag(
                        offset=stored.start_offset, leader_epoch=_known(stored.leader_epoch), lag=_known(stored.lag)
                    )
                    for partition, stored in self._values(starts).items()
                    if stored.start_offset >= 0
                }
                for group, starts in started.items()
            }
        committed = self._values(_existing(self.admin.list_offsets_of_groups(dict.fromkeys(groups))))
        return none | {
            group: {
                partition: OffsetWithLag(
                    offset=stored.offset, leader_epoch=_known(stored.leader_epoch), metadata=stored.metadata
                )
                for partition, stored in self._values(offsets).items()
                if stored.offset >= 0
            }
            for group, offsets in committed.items()
        }

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        """Return the bounds of the partitions that exist and have a leader; warn of those without a leader."""
        led = self._with_leader(partitions)
        if not led:
            return {}
        first, last = (
            self.admin.list_offsets(dict.fromkeys(led, spec)).ok for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        )
        return {
            partition: LogBounds(first[partition].offset, last[partition].offset)
            for partition in first.keys() & last.keys()
        }

    def _with_leader(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        if not partitions:
            return []
        topics = self.admin.describe_topics({partition.topic for partition in partitions}).ok
        leaders = {
            TopicPartition(str(name), partition.partition_index): partition.leader_id
            for name, topic in topics.items()
            for partition in topic.partitions
        }
        existing = sorted(partition for partition in set(partitions) if partition in leaders)
        for partition in existing:
            if leaders[partition] < 0:
                echo(f"Warning: {partition.topic}-{partition.partition} has no leader; its end is unknown.", err=True)
        return [partition for partition in existing if leaders[partition] >= 0]

    def partitions(self, topics: Collection[str]) -> set[TopicPartition]:
        """Return every partition of topics. Raises ``BrokerError`` for a topic that does not exist."""
        described = self.admin.describe_topics(topics).all()
        return {
            TopicPartition(str(name), partition.partition_index)
            for name, topic in described.items()
            for partition in topic.partitions
        }

    def planned(
        self, group: str, target: OffsetTarget | Mapping[TopicPartition, int], places: Collection[TopicPartition]
    ) -> Results[TopicPartition, OffsetChange]:
        """Return the planned offsets of a group."""
        return self.admin.plan_offset_reset(group, target, places)

    def planned_starts(
        self, target: OffsetTarget, places: Collection[TopicPartition]
    ) -> Results[TopicPartition, OffsetChange]:
        """Return the planned start offsets of a share group; a time without a record means the end."""
        latest = self.admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        spec = {"earliest": OffsetSpec.EARLIEST, "latest": OffsetSpec.LATEST}.get(target.kind, target.value)
        offsets = self.admin.list_offsets(dict.fromkeys(places, spec))
        starts = {p: offset.offset if offset.offset >= 0 else latest[p].offset for p, offset in offsets.ok.items()}
        return Results({**{p: OffsetChange(_NONE, start) for p, start in starts.items()}, **offsets.errors})

    def report_problems(self) -> None:
        """Do nothing: requests raise their errors."""

    def _listed(self, found: PartialList[V]) -> Sequence[V]:
        """Return the whole list. Raises the first error."""
        return found.all()

    def _values(self, found: Results[K, V]) -> dict[K, V]:
        """Return all values. Raises the first error."""
        return found.all()


@frozen
class PartialBrokerGroups(BrokerGroups):
    """The groups of a cluster, without the failed parts, which ``problems`` lists."""

    problems: list[str] = field(factory=list)

    def _listed(self, found: PartialList[V]) -> Sequence[V]:
        self.problems.extend(f"groups of broker {broker}: {error}" for broker, error in found.errors.items())
        return found.items

    def _values(self, found: Results[K, V]) -> dict[K, V]:
        self.problems.extend(f"{key}: {error}" for key, error in found.errors.items())
        return found.ok


def _existing(described: Results[str, V]) -> Results[str, V]:
    """Return the results without missing groups."""
    return Results({group: outcome for group, outcome in described.outcomes.items() if not _is_missing(outcome)})


def _is_missing(outcome: object) -> bool:
    return isinstance(outcome, BrokerError) and outcome.error == ErrorCode.GROUP_ID_NOT_FOUND


def _known(value: int) -> int | None:
    return None if value == _NONE else value
