"""The lags of all groups of a running cluster: in records, and in seconds since the first unread record.

This module defines the queries and the rows. ``broker_groups`` returns offsets and end offsets; times come from the
records themselves, which a consumer without a group reads.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import click
from attrs import frozen

from kafka_msgs.admin.groups import GroupListing
from kafka_msgs.cli.group_commands.broker_groups import BrokerGroups
from kafka_msgs.cli.group_commands.group_source import LogBounds, OffsetWithLag
from kafka_msgs.cli.render.progress import counting
from kafka_msgs.cli.render.timestamps import iso_of_ms, short_time, streams_times
from kafka_msgs.client.cluster_metadata import TopicPartition
from kafka_msgs.client.consumer import Consumer
from kafka_msgs.enums import GroupType
from kafka_msgs.report import Metric, Sample

__all__ = ["Lag", "compute_lags", "metrics", "row_of"]

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


def compute_lags(source: BrokerGroups, requested: Collection[str], *, times: bool) -> list[Lag]:
    """Return the lags of the named groups, or of all groups without names, the largest first.

    Raises ``click.ClickException`` for a group that does not exist.
    """
    listed = {group.group_id: group for group in source.list_groups()}
    for name in requested:
        if name not in listed:
            raise click.ClickException(f"there is no group {name!r}")
    chosen = [listed[name] for name in requested or listed]
    lags = list(_lags(source, chosen))
    since = _unread_times(source, [(lag.partition, lag.stored.offset) for lag in lags if lag.records]) if times else {}
    dated = [
        Lag(
            group=lag.group,
            partition=lag.partition,
            stored=lag.stored,
            end=lag.end,
            unread_since=since.get((lag.partition, lag.stored.offset)) if lag.records else None,
        )
        for lag in lags
    ]
    return sorted(dated, key=lambda lag: (lag.records is None, -(lag.records or 0), lag.group.group_id, lag.partition))


def _lags(source: BrokerGroups, groups: Iterable[GroupListing]) -> Iterator[Lag]:
    by_name = {group.group_id: group for group in groups}
    share = [name for name, group in by_name.items() if group.type == GroupType.SHARE]
    others = [name for name in by_name if name not in share]
    offsets = {**source.group_offsets(others), **source.group_offsets(share, share=True)}
    bounds: Mapping[TopicPartition, LogBounds] = source.bounds(
        {partition for stored in offsets.values() for partition in stored}
    )
    for name, stored in offsets.items():
        for partition, offset in stored.items():
            limits = bounds.get(partition)
            yield Lag(group=by_name[name], partition=partition, stored=offset, end=limits and limits.latest)


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
    }


def metrics(rows: Collection[Mapping[str, Any]]) -> list[Metric]:
    """Return the Prometheus metrics of lag rows."""
    return [
        Metric(
            name=name,
            help=about,
            samples=tuple(Sample(_labels(row), row[column]) for row in rows if row[column] is not None),
        )
        for name, about, column in (
            ("kafka_group_lag_records", "Offsets between the committed offset and the end of the partition.", "lag"),
            ("kafka_group_ahead_records", "Offsets of the commit beyond the end of the partition.", "ahead"),
            ("kafka_group_lag_seconds", "Age of the first record that the group has not read.", "lagSeconds"),
            ("kafka_group_committed_offset", "The offset that the group committed last.", "committedOffset"),
            ("kafka_group_end_offset", "The end of the partition.", "endOffset"),
        )
    ]


def _labels(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(row[name]) for name in ("group", "topic", "partition")}
