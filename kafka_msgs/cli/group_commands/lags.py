"""The lags of all groups of a running cluster: in records, and in seconds since the first unread record.

This module defines the queries and the rows. ``broker_groups`` returns offsets and end offsets; times come from the
records themselves, which a consumer without a group reads.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from attrs import evolve, frozen

from kafka_msgs.admin.groups import GroupListing, GroupMember
from kafka_msgs.admin.streams_groups import StreamsGroupMemberDescription
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
from kafka_msgs.cli.group_commands.describe_rows import assigned_places
from kafka_msgs.cli.group_commands.group_source import OffsetWithLag
from kafka_msgs.cli.group_commands.lag_options import LagOptions
from kafka_msgs.cli.group_commands.name_filter import NameFilter
from kafka_msgs.cli.render.progress import counting
from kafka_msgs.cli.render.timestamps import iso_of_ms, short_time, streams_times
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.enums import GroupType

__all__ = ["Lag", "compute_lags", "row_of"]

_ONE_FETCH_BYTES: Final = 64 * 1024
_QUIET_SECONDS: Final = 1.0
"""The wait after which a partition counts as having no more records: only transaction markers remain."""

Position = tuple[TopicPartition, int]


@frozen(kw_only=True)
class Lag:
    """The lag of a group in one partition.

    ``unread_since`` is the time of the first unread record, in milliseconds since the epoch. It is None if all records
    are read, if times were not requested, or if the record has no time.
    """

    group: GroupListing
    partition: TopicPartition
    stored: OffsetWithLag
    end: int | None
    owner: GroupMember | StreamsGroupMemberDescription | None = None
    unread_since: int | None = None

    @property
    def records(self) -> int | None:
        """The number of remaining offsets, at least 0; for share groups, the coordinator's lag."""
        if self.group.type == GroupType.SHARE:
            return self.stored.lag
        return None if self.end is None else max(0, self.end - self.stored.offset)

    @property
    def ahead(self) -> int | None:
        """The number of offsets by which the commit is beyond the end of the partition."""
        return None if self.end is None else max(0, self.stored.offset - self.end)

    def seconds(self, now: float) -> float | None:
        """Return how long the first unread record has been waiting: 0 if all records are read."""
        if self.records is not None and self.records <= 0:
            return 0.0
        return None if self.unread_since is None else max(0.0, now - self.unread_since / 1000)


def compute_lags(source: BrokerGroups, options: LagOptions) -> list[Lag]:
    """Return the lags of the selected groups and topics, the largest first.

    Raises ``click.ClickException`` for a group that does not exist.
    """
    listed = {group.group_id: group for group in source.list_groups()}
    lags = list(_lags(source, [listed[name] for name in options.select_groups(listed)], options.topic_filter))
    places = [] if options.records_only else [(lag.partition, lag.stored.offset) for lag in lags if lag.records]
    since = _unread_times(source, places) if places else {}
    dated = [
        evolve(lag, unread_since=since.get((lag.partition, lag.stored.offset))) if lag.records else lag for lag in lags
    ]
    return sorted(dated, key=lambda lag: (lag.records is None, -(lag.records or 0), lag.group.group_id, lag.partition))


def _lags(source: BrokerGroups, groups: Iterable[GroupListing], topics: NameFilter) -> Iterator[Lag]:
    by_name = {group.group_id: group for group in groups}
    share = [name for name, group in by_name.items() if group.type == GroupType.SHARE]
    others = [name for name in by_name if name not in share]
    found = {**source.group_offsets(others), **source.group_offsets(share, share=True)}
    offsets = {
        name: {place: offset for place, offset in stored.items() if topics.accepts(place.topic)}
        for name, stored in found.items()
    }
    owners = {
        name: assigned_places(group) for name, group in source.describe_groups(list(by_name), listed=True).items()
    }
    bounds = source.bounds({partition for stored in offsets.values() for partition in stored})
    for name, stored in offsets.items():
        for partition, offset in stored.items():
            limits = bounds.get(partition)
            owner = owners.get(name, {}).get(partition)
            end = limits and limits.latest
            yield Lag(group=by_name[name], partition=partition, stored=offset, end=end, owner=owner)


def _unread_times(source: BrokerGroups, positions: Iterable[Position]) -> dict[Position, int]:
    """Return the times of the first records at or after positions, if they have one.

    A consumer has one position per partition, so several groups in one partition need several rounds.
    """
    todo: dict[TopicPartition, list[int]] = {}
    for partition, offset in sorted(set(positions)):
        todo.setdefault(partition, []).append(offset)
    times: dict[Position, int] = {}
    settings = {"partition_max_bytes": _ONE_FETCH_BYTES, "auto_offset_reset": "earliest"}
    consumer = Consumer(source.admin.client, **settings)  # type: ignore[arg-type]
    with counting("first unread records found") as progress:
        while todo:
            progress(len(times))
            round_of = {partition: offsets.pop() for partition, offsets in todo.items()}
            for position, timestamp in _first_times(consumer, round_of):
                times[position] = timestamp
                progress(len(times))
            todo = {partition: offsets for partition, offsets in todo.items() if offsets}
    consumer.close()
    return times


def _first_times(consumer: Consumer, positions: Mapping[TopicPartition, int]) -> Iterator[tuple[Position, int]]:
    """Read one record at each position; yield their times as the records arrive."""
    consumer.assign(positions)
    consumer.resume(*positions)
    consumer.seek(positions)
    waiting = set(positions)
    while waiting:
        records = consumer.poll(_QUIET_SECONDS)
        if not records:
            break
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            if partition in waiting:
                waiting.discard(partition)
                if record.timestamp >= 0:
                    yield (partition, positions[partition]), record.timestamp
        consumer.pause(*(positions.keys() - waiting))


def row_of(lag: Lag, now: float | None = None) -> dict[str, Any]:
    """Return the row of a lag, with the column names that rows from files have."""
    seconds = lag.seconds(time.time() if now is None else now)
    return {
        "group": lag.group.group_id,
        "state": str(lag.group.state),
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "committedOffset": lag.stored.offset,
        "endOffset": lag.end,
        "lag": lag.records,
        "ahead": lag.ahead,
        "lagSeconds": None if seconds is None else round(seconds, 3),
        "unreadTimestamp": lag.unread_since,
        "unreadTime": iso_of_ms(lag.unread_since),
        "unreadSince": short_time(lag.unread_since),
        "leaderEpoch": lag.stored.leader_epoch,
        "metadata": lag.stored.metadata,
        **streams_times(lag.stored.metadata),
        "commitTimestamp": None,
        "commitTime": None,
        "committed": None,
        "expireTimestamp": None,
        "expireTime": None,
        "topicId": None,
        "clientId": lag.owner and lag.owner.client_id,
        "clientHost": lag.owner and lag.owner.client_host,
        "status": None,
        "stale": False,
    }
