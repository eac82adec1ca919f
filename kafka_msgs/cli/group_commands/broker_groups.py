"""Groups of a running cluster. ``kafka_msgs.admin`` sends the requests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from attrs import frozen

from kafka_msgs.admin.admin import Admin
from kafka_msgs.admin.groups import AnyGroupDescription, GroupListing
from kafka_msgs.admin.offset_resets import OffsetChange, OffsetTarget
from kafka_msgs.admin.partitions import OffsetSpec
from kafka_msgs.admin.results import Results
from kafka_msgs.cli.group_commands.group_source import LogBounds, Offsets, OffsetWithLag
from kafka_msgs.cli.render.output import echo
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.error_codes import ErrorCode
from kafka_msgs.errors import BrokerError

__all__ = ["BrokerGroups"]

V = TypeVar("V")

_NONE = -1
"""The protocol's number for a missing offset or epoch."""


@frozen
class BrokerGroups:
    """The groups of a cluster's coordinators."""

    admin: Admin

    def list_groups(self) -> Sequence[GroupListing]:
        """Return all groups; raises if a broker does not respond, because it may coordinate some groups."""
        return sorted(self.admin.list_groups().all(), key=lambda each: each.group_id)

    def describe_groups(self, groups: Collection[str], *, listed: bool = False) -> Mapping[str, AnyGroupDescription]:
        """Return the groups as described by their coordinators."""
        found = self.admin.describe_groups(groups)
        return _existing(found) if listed else found.all()

    def group_offsets(self, groups: Collection[str], *, share: bool = False) -> Mapping[str, Offsets]:
        """Return the offsets of groups, with one request per coordinator for any number of partitions."""
        none: dict[str, Offsets] = {group: {} for group in groups}
        if share:
            started = _existing(self.admin.list_share_group_offsets(dict.fromkeys(groups)))
            return none | {
                group: {
                    place: OffsetWithLag(
                        offset=each.start_offset, leader_epoch=_known(each.leader_epoch), lag=_known(each.lag)
                    )
                    for place, each in found.all().items()
                    if each.start_offset >= 0
                }
                for group, found in started.items()
            }
        committed = _existing(self.admin.list_offsets_of_groups(dict.fromkeys(groups)))
        return none | {
            group: {
                place: OffsetWithLag(offset=each.offset, leader_epoch=_known(each.leader_epoch), metadata=each.metadata)
                for place, each in found.all().items()
                if each.offset >= 0
            }
            for group, found in committed.items()
        }

    def bounds(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, LogBounds]:
        """Return the bounds of the partitions that exist and have a leader; warn of those without a leader."""
        led = self._with_leader(partitions)
        if not led:
            return {}
        first, last = (
            self.admin.list_offsets(dict.fromkeys(led, spec)).ok for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST)
        )
        return {place: LogBounds(first[place].offset, last[place].offset) for place in first.keys() & last.keys()}

    def _with_leader(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        if not partitions:
            return []
        topics = self.admin.describe_topics({each.topic for each in partitions}).ok
        leaders = {
            TopicPartition(str(name), each.partition_index): each.leader_id
            for name, topic in topics.items()
            for each in topic.partitions
        }
        existing = sorted(each for each in set(partitions) if each in leaders)
        for place in existing:
            if leaders[place] < 0:
                echo(f"Warning: {place.topic}-{place.partition} has no leader; its end is unknown.", err=True)
        return [place for place in existing if leaders[place] >= 0]

    def partitions(self, topics: Collection[str]) -> set[TopicPartition]:
        """Return every partition of topics. Raises ``BrokerError`` for a topic that does not exist."""
        found = self.admin.describe_topics(topics).all()
        return {
            TopicPartition(str(name), each.partition_index)
            for name, topic in found.items()
            for each in topic.partitions
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
        found = self.admin.list_offsets(dict.fromkeys(places, spec))
        starts = {p: each.offset if each.offset >= 0 else latest[p].offset for p, each in found.ok.items()}
        return Results({**{p: OffsetChange(_NONE, start) for p, start in starts.items()}, **found.errors})

    def report_problems(self) -> None:
        """Do nothing: requests raise their errors."""


def _existing(found: Results[str, V]) -> dict[str, V]:
    """Return the results without missing groups. Raises any other error."""
    missing = {
        group
        for group, error in found.errors.items()
        if isinstance(error, BrokerError) and error.error == ErrorCode.GROUP_ID_NOT_FOUND
    }
    return {group: found[group] for group in found if group not in missing}


def _known(number: int) -> int | None:
    return None if number == _NONE else number
