"""Every group in log directories, as its coordinator would describe it, with committed offsets and lag.

This module runs the reducers of ``__consumer_offsets`` and ``__share_group_state`` over local partitions, in memory.
The jobs run the same reducers over any number of tasks. Memory use grows with the state, not with the logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from attrs import define, evolve, field, frozen

from kafka_msgs.analysis.commit_windows import CommitWindows
from kafka_msgs.analysis.committed_offsets import CommittedOffsets
from kafka_msgs.analysis.in_memory import ReadProblem, read_partition
from kafka_msgs.analysis.offset_tables import OFFSETS, EndOffsets, described_groups, with_first_commits, with_windows
from kafka_msgs.analysis.record_classification import OFFSETS_TOPIC, RECORD_COLUMNS, classify
from kafka_msgs.analysis.share_offsets import SHARE_STATE_TOPIC, ShareOffsets
from kafka_msgs.internal_topics.coordinator_partition import partition_for_key
from kafka_msgs.internal_topics.group_descriptions import GroupDescription, describe_group
from kafka_msgs.internal_topics.replay import ReplayedGroup
from kafka_msgs.log.log_directory import Partition
from kafka_msgs.log.metadata_log_state import read_metadata_log_state
from kafka_msgs.log.partition_discovery import EndOffsets as Ends
from kafka_msgs.log.partition_discovery import Progress, end_offsets_of, topic_names

__all__ = ["GroupOffset", "GroupWithOffsets", "GroupsRead", "read_groups"]

_FIELDS: Final = {
    "topic": "topic",
    "partition": "topicPartition",
    "offset": "committedOffset",
    "leader_epoch": "leaderEpoch",
    "metadata": "metadata",
    "commit_timestamp": "commitTimestampMs",
    "expire_timestamp": "expireTimestampMs",
    "end_offset": "endOffset",
    "lag": "lag",
    "ahead": "ahead",
    "log_partition": "logPartition",
    "first_commit_timestamp": "firstCommitMs",
    "first_commit_offset": "firstCommitOffset",
    "window": "window",
}
"""The attributes of an offset, and the columns of ``OFFSETS``, ``with_first_commits`` and ``with_windows``."""


@frozen(kw_only=True)
class GroupOffset:
    """The committed offset of a group for one partition, or the start offset of a share group.

    Times are in milliseconds since the epoch. ``lag`` is the number of unread offsets, at least 0; as in Kafka's tools,
    markers and compacted records count. ``ahead`` is the number of offsets by which the commit is beyond the end, as
    after a truncation. Both are None if the end of the partition is unknown. ``log_partition`` is the partition of
    the internal topic. A ``stale`` offset is in a partition that the group's coordinator does not read: the number of
    partitions was raised since. The first commit is the oldest remaining one outside transactions. ``window`` contains
    the latest commits with the attributes of an ``Observation``, if they were requested. Values that the commit does
    not have are None.
    """

    topic: str
    partition: int
    offset: int
    leader_epoch: int | None
    metadata: str | None
    commit_timestamp: int | None
    expire_timestamp: int | None
    topic_id: UUID | None
    end_offset: int | None
    lag: int | None
    ahead: int | None
    log_partition: int
    stale: bool
    first_commit_timestamp: int | None = None
    first_commit_offset: int | None = None
    window: Sequence[Mapping[str, int]] | None = None

    def row(self) -> dict[str, Any]:
        """Return the offset with the column names of the table ``offsets``, of first commits and of windows."""
        return {column: getattr(self, name) for name, column in _FIELDS.items()}


@frozen(kw_only=True)
class GroupWithOffsets:
    """A group: the description from its coordinator, and its committed offsets by topic and partition.

    Stale offsets do not count in the sums.
    """

    description: GroupDescription
    offsets: tuple[GroupOffset, ...]

    @property
    def served(self) -> tuple[GroupOffset, ...]:
        """The offsets that the coordinator returns: all that are not stale."""
        return tuple(each for each in self.offsets if not each.stale)

    @property
    def lag(self) -> int | None:
        """The sum of the known lags. None if no lag is known."""
        return _sum(each.lag for each in self.served)

    @property
    def ahead(self) -> int | None:
        """The sum of the known distances beyond the ends. It does not reduce the lag."""
        return _sum(each.ahead for each in self.served)

    @property
    def last_commit(self) -> int | None:
        """The time of the latest commit. None without a commit."""
        return max((each.commit_timestamp for each in self.served if each.commit_timestamp is not None), default=None)

    def row(self) -> dict[str, Any]:
        """Return the group with the column names of the table ``groups``, its protocol, and the time as a number."""
        return {
            "group": self.description.group_id,
            "kind": self.description.kind,
            "protocol": self.description.protocol_type,
            "state": self.description.state,
            "epoch": self.description.epoch,
            "members": len(self.description.members),
            "partitions": len(self.served),
            "lag": self.lag,
            "ahead": self.ahead,
            "lastCommitMs": self.last_commit,
        }


def _sum(numbers: Iterable[int | None]) -> int | None:
    known = [each for each in numbers if each is not None]
    return sum(known) if known else None


@frozen(kw_only=True)
class GroupsRead:
    """All groups, by name, and the problems."""

    groups: tuple[GroupWithOffsets, ...]
    problems: tuple[ReadProblem, ...]


def read_groups(
    partitions: Sequence[Partition],
    end_offsets: Ends | None = None,
    *,
    windows: bool = False,
    progress: Progress | None = None,
) -> GroupsRead:
    """Return the groups in partitions of ``__consumer_offsets``, with the share offsets in ``__share_group_state``.

    ``end_offsets`` are used for the lags; by default, they are the ends of ``partitions``. Those are read after the
    commits, so that no commit is beyond its end because a running broker appends records meanwhile. Unreadable records
    and damaged parts of files become problems. All other records count. ``windows`` adds the latest commits to each
    offset, for its status. Raises ``OSError``.
    """
    commits: dict[int, _Commits] = {}
    shares: dict[int, ShareOffsets] = {}
    problems: list[ReadProblem] = []
    reducer: _Commits | ShareOffsets
    for each in partitions:
        if each.topic == OFFSETS_TOPIC:
            reducer = commits[each.partition] = _Commits(CommitWindows() if windows else None)
        elif each.topic == SHARE_STATE_TOPIC:
            reducer = shares[each.partition] = ShareOffsets()
        else:
            continue
        problems += read_partition(each, reducer.add, RECORD_COLUMNS, progress or Progress())
    ends = EndOffsets.of(end_offsets_of(partitions) if end_offsets is None else end_offsets)
    names = topic_names(partitions)
    starts = _by_group(_offsets(state.offsets(number, names, ends)) for number, state in shares.items())
    parts = {number: _Part.of(number, state, ends) for number, state in commits.items()}
    count = _partition_count(partitions, parts)
    groups = sorted({name for part in parts.values() for name in part.names})
    found = tuple(_group(name, parts, starts, count) for name in groups)
    return GroupsRead(groups=found, problems=tuple(problems))


def _partition_count(partitions: Iterable[Partition], parts: Mapping[int, _Part]) -> int:
    """Return the number of partitions of ``__consumer_offsets``, 0 if unknown.

    Without the metadata log, the directories may contain only some partitions. Then most groups seem misplaced.
    """
    numbers = [number for topic, number in read_metadata_log_state(partitions).placements if topic == OFFSETS_TOPIC]
    count = max(numbers or parts, default=-1) + 1
    placed = [partition_for_key(name, count) == number for number, part in parts.items() for name in part.offsets]
    return count if numbers or sum(placed) * 4 >= len(placed) * 3 else 0


@define
class _Commits:
    """The state of a partition of ``__consumer_offsets``: its live records, and the windows of its latest commits."""

    windows: CommitWindows | None
    offsets: CommittedOffsets = field(factory=CommittedOffsets)

    def add(self, records: pa.RecordBatch, file: str, segment: int) -> pa.Table:
        """Add the next records; return the problems among them."""
        found = classify(records, file, segment)
        self.offsets.add(found)
        if self.windows is not None:
            self.windows.add(found)
        return found.problems


@define
class _Part:
    """The groups of one partition of ``__consumer_offsets``: their descriptions, and their offsets."""

    described: Mapping[str, GroupDescription]
    offsets: Mapping[str, list[dict[str, Any]]]

    @classmethod
    def of(cls, number: int, state: _Commits, ends: EndOffsets) -> _Part:
        rows = state.offsets.rows
        table = with_first_commits(pa.Table.from_batches(state.offsets.offsets(number, ends), OFFSETS), rows)
        if state.windows is not None:
            table = with_windows(table, state.windows.windows())
        return cls({each.group_id: each for each in described_groups(rows)}, _by_group([_offsets(table)]))

    @property
    def names(self) -> set[str]:
        return self.described.keys() | self.offsets.keys()

    def description(self, name: str) -> GroupDescription:
        """Return a group's description. A coordinator loads a group that has only offsets as an empty classic one."""
        alone = ReplayedGroup(group_id=name, kind=None, records=(), offsets={})
        return self.described.get(name) or evolve(describe_group(alone), epoch=None)

    def last_commit(self, name: str) -> int:
        times = (each["commit_timestamp"] for each in self.offsets.get(name, ()))
        return max((each for each in times if each is not None), default=-1)


def _offsets(table: pa.Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the group of each offset, and the attributes of the offset."""
    columns = {name: table[column].to_pylist() for name, column in _FIELDS.items() if column in table.column_names}
    ids = [None if each is None else UUID(each) for each in table["topicId"].to_pylist()]
    for group, *values in zip(table["group"].to_pylist(), ids, *columns.values(), strict=True):
        yield group, dict(zip(("topic_id", *columns), values, strict=True))


def _by_group(tables: Iterable[Iterable[tuple[str, dict[str, Any]]]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for table in tables:
        for name, offset in table:
            found.setdefault(name, []).append(offset)
    return found


def _group(
    name: str, parts: Mapping[int, _Part], starts: Mapping[str, list[dict[str, Any]]], count: int
) -> GroupWithOffsets:
    """Return a group from all partitions that contain it. ``count`` is the number of partitions, 0 if unknown.

    Without that number, no offset is stale, and the description in the partition with the latest commit counts.
    """
    having = {number: part for number, part in parts.items() if name in part.names}
    latest = max(having, key=lambda number: (having[number].last_commit(name), number))
    serving = partition_for_key(name, count) if count else latest
    description = having.get(serving, having[latest]).description(name)
    if description.kind == "share":
        offsets = [GroupOffset(**each, stale=False) for each in starts.get(name, ())]
    else:
        found = ((number, each) for number, part in having.items() for each in part.offsets.get(name, ()))
        offsets = [GroupOffset(**each, stale=count > 0 and number != serving) for number, each in found]
    offsets.sort(key=lambda each: (each.topic, each.partition, each.log_partition))
    return GroupWithOffsets(description=description, offsets=tuple(offsets))
